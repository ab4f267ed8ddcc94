"""`workbench compare`."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.arguments import (
    add_model,
    add_step_stats,
    model_options,
    seconds,
    smart_stage_options,
    stage_options,
)
from workbench.cli.results import print_table, require_writable_results, write_results
from workbench.cli.signals import loaded
from workbench.experiments.program.toggles import USUAL
from workbench.models import MODELS

_BUDGET_S = 90.0
_COMPARISON = "comparison"
_EXAMPLES = """examples:
  workbench compare dlrm --toggle stage --toggle smart_stage --data my_clicks.tsv
  workbench compare dlrm --generate 200000 --input-latency auto --threads 2
  workbench compare dlrm --data day_0 --rows 500000 --batch-size 2048 --budget 2min
  workbench compare din --toggle fused_v2 --generate 50000
  workbench compare wdl --all --budget 5min

stage is the model's own stage; smart_stage a plan for the model without one, made from a short
trace of it; fused_v1 and fused_v2 fuse its embedding lookups; inline_executor runs its steps on one
thread, cost_model_executor schedules them by costs learned while it warms up. Join them with "+" to
switch several on at once: stage+smart_stage is a plan for the model with its own stage,
fused_v2+smart_stage one for the model with fused lookups. Each --toggle is measured by itself.

--all measures each of the six alone, and stage+smart_stage+fused_v2+cost_model_executor: eight
variants whose blocks are interleaved, so eight processes are in memory at the same time, about half
a GB each for dlrm. Starting and checking them takes two minutes or so of --budget on two cores, and
all share the rest: 4min or more says something.

The data of dlrm, deepfm and wdl is in the public Criteo format: label, I1..I13, C1..C26, separated
by tabs, without a header; fields may be empty. That of dssm is a log of advertisements, separated
by commas, that of din and dien one of sequences, separated by tabs; --generate writes examples.
Results go to --out: report.html, trace.parquet, comparison/.
"""


def add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    compare = commands.add_parser(
        "compare",
        help="measure a model without and with an optimization",
        description="Measure a model without and with an optimization, side by side.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    switches = compare.add_mutually_exclusive_group()
    add_model(compare, switches)
    switches.add_argument(
        "--all",
        action="store_true",
        help="measure every optimization alone, and all together (eight processes, see below)",
    )
    compare.add_argument(
        "--budget",
        type=seconds,
        default=_BUDGET_S,
        metavar="TIME",
        help=f"time for all of it: 60s, 2min (default {_BUDGET_S:g}s); starting many processes, or "
        "slow steps, can take longer; what is expected is said first",
    )
    compare.add_argument(
        "--out",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where results go (default results)",
    )
    add_step_stats(compare)
    compare.set_defaults(run=_compare)


def _compare(chosen: argparse.Namespace) -> int:
    from workbench.experiments.comparison.compare import compare

    loaded()
    model = MODELS[chosen.model]()
    require_writable_results(chosen.out, (_COMPARISON,))
    comparison = compare(
        model.program(model_options(chosen, model, chosen.out)),
        None if chosen.all else tuple(chosen.toggle or USUAL),
        all=chosen.all,
        stage=stage_options(chosen),
        smart_stage=smart_stage_options(chosen.threads),
        budget_s=chosen.budget,
        step_stats=chosen.step_stats,
        seed=chosen.seed,
        command=chosen.command_line,
    )
    print_table(comparison)
    comparison.save(chosen.out / _COMPARISON)
    write_results([comparison], chosen.out)
    return 0

"""`workbench compare`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.answers import show
from workbench.cli.arguments import (
    add_model,
    add_own,
    add_step_stats,
    chosen_program,
    require_toggles,
    seconds,
    smart_stage_options,
    stage_options,
    toggle_or_own,
)
from workbench.cli.commands.gate import add_gate_options, gate_code, require_gate, words_aside
from workbench.cli.results import (
    require_all_measured,
    require_writable_results,
    write_results,
)
from workbench.cli.signals import loaded

if TYPE_CHECKING:
    from workbench.core.toggles.toggle import Toggle
    from workbench.experiments.program.function_program import AnyProgram

_BUDGET_S = 90.0
_COMPARISON = "comparison"
_EXAMPLES = """examples:
  workbench compare dlrm --toggle stage --toggle smart_stage --data my_clicks.tsv
  workbench compare dlrm --generate 200000 --input-latency auto --threads 2
  workbench compare dlrm --data day_0 --rows 500000 --batch-size 2048 --budget 2min
  workbench compare din --toggle fused_v2 --generate 50000
  workbench compare wdl --all --budget 5min
  workbench compare my_model.py:build --toggle stage
  workbench compare my_model.py:build --own dim=16,32 --toggle smart_stage+dim=32
  workbench compare my_model.py:build --toggle stage --fail-if-slower 3% --markdown summary.md

stage is the model's own stage; smart_stage a plan for the model without one, made from a short
trace of it; fused_v1, fused_v2 and grouped fuse its embedding lookups, auto_fused stock lookups,
batch normalizations and interactions of vectors of its finished graph, with dense layers and
columns of text by other kernels; inline_executor runs its steps on one thread, cost_model_executor
schedules them by costs learned while it warms up. Join them with "+" to switch several on at once:
stage+smart_stage is a plan for the model with its own stage, fused_v2+smart_stage one for the model
with fused lookups, auto_fused+intra_op_threads=1 fuses and runs each op on one thread. Each
--toggle is measured by itself. TensorFlow's own toggles have choices, as in NAME=off; docs of
toggles (docs/toggles.md) say what each does. --own adds one of your program's.

--all measures each of the eight alone, and stage+smart_stage+fused_v2+cost_model_executor: ten
variants whose blocks are interleaved, so ten processes are in memory at the same time, about half
a GB each for dlrm. Starting and checking them takes two minutes or so of --budget on two cores, and
all share the rest: 4min or more says something.

The data of dlrm, deepfm and wdl is in the public Criteo format: label, I1..I13, C1..C26, separated
by tabs, without a header; fields may be empty. That of dssm is a log of advertisements, separated
by commas, that of din and dien one of sequences, separated by tabs; --generate writes examples.
A program of your own is a function in a file or module: build(optimizations), which returns
wb.Built(train_op=…), or make(), which returns (train_step, dataset) or (model, dataset); or a
wb.Program, a wb.FunctionProgram; or a model and its dataset, as in my_model.py:model,dataset. The
file runs in child processes; options of data and batches are for the six models alone.

With --fail-if-slower the exit code is 0 where the limit holds, 1 where a variant is slower, 2 after
a mistake or a failed run. A variant is slower only where its whole 95 % interval lies below the
limit; where the interval includes the limit nothing is shown, which passes, unless --strict.

Results go to --out: report.html, trace.parquet, comparison/.
"""


def add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    compare = commands.add_parser(
        "compare",
        help="measure a model, or a program of your own, without and with an optimization",
        description="Measure a program without and with an optimization, side by side.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    switches = compare.add_mutually_exclusive_group()
    add_model(compare, switches, named=toggle_or_own)
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
    add_own(compare)
    add_step_stats(compare)
    compare.add_argument(
        "--verify",
        action="store_true",
        help="compare what auto_fused fuses with the graph's own nodes, part by part, on one batch "
        "(some seconds, three times the memory of the variables)",
    )
    compare.add_argument(
        "--stop-when-clear",
        action="store_true",
        help="end the blocks once each ratio is clearly above 1, below 1, or within 1 %% of 1; the "
        "intervals then hold at every look, and are wider",
    )
    add_gate_options(compare)
    compare.set_defaults(run=_compare)


def _toggles(chosen: argparse.Namespace, program: AnyProgram) -> tuple[str | Toggle, ...]:
    from workbench.experiments.program.function_program import usual_toggles

    named = (*(chosen.toggle or ()), *chosen.own)
    return named or usual_toggles(program)


def _compare(chosen: argparse.Namespace) -> int:
    from workbench.experiments.comparison.compare import compare
    from workbench.experiments.comparison.environment import machine
    from workbench.experiments.regression.gate import require_machine, require_same

    require_toggles(chosen.toggle, chosen.own)
    loaded()
    with words_aside(chosen) as out:
        before = require_gate(chosen)
        require_writable_results(chosen.out, (_COMPARISON,))
        program = chosen_program(chosen, chosen.out)
        if before is not None:
            # Before anything runs, and not minutes later.
            require_same(before, program.name, program.settings)
            require_machine(before, machine(), chosen.any_machine)
        comparison = compare(
            program,
            None if chosen.all else _toggles(chosen, program),
            all=chosen.all,
            stage=stage_options(chosen),
            smart_stage=smart_stage_options(chosen.threads, chosen.stale_lookups),
            budget_s=chosen.budget,
            step_stats=chosen.step_stats,
            verify=chosen.verify,
            stop_when_clear=chosen.stop_when_clear,
            progress=not chosen.quiet,
            seed=chosen.seed,
            command=chosen.command_line,
        )
        show(comparison)
        comparison.save(chosen.out / _COMPARISON)
        write_results([comparison], chosen.out)
        gated = chosen.fail_if_slower is not None
        code = gate_code(chosen, comparison, before, out) if gated else 0
        require_all_measured(comparison)
        return code

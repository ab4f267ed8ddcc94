"""`workbench find-best`."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.answers import show
from workbench.cli.arguments import (
    add_model,
    add_own,
    model_options,
    seconds,
    size,
    smart_stage_options,
    stage_options,
)
from workbench.cli.results import require_writable_results, write_results
from workbench.cli.signals import loaded
from workbench.models import MODELS

_BUDGET_S = 120.0
_COMPARISON = "comparison"
_EXAMPLES = """examples:
  workbench find-best dlrm
  workbench find-best dlrm --budget 5min --memory 8GB --data my_clicks.tsv
  workbench find-best din --toggle smart_stage --toggle fused_v2 --budget 90s

The model is traced once and every combination of the toggles predicted from it. Then the most
promising ones race beside the model without any, in blocks that take turns; slower ones are dropped
early, and others take their place while there is time. Each runs in a process of its own, half a GB
for dlrm; --memory says how many at the same time. Whether the best one trains the same is checked.
Once the best so far has run a few rounds, TensorFlow's own toggles are tried on it, one by one, and
those of --own. Results go to --out: report.html, trace.parquet, comparison/.
"""


def add_find_best(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    find_best = commands.add_parser(
        "find-best",
        help="search the fastest combination of optimizations of a model",
        description="Search the fastest combination of optimizations of a model within a budget.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(
        find_best,
        find_best,
        "an optimization; all combinations of those given are searched (default: of all)",
    )
    add_own(find_best)
    find_best.add_argument(
        "--allow-another-training",
        action="store_true",
        help="choices may be the best that train another model, such as those of --own and those "
        "with fewer bits",
    )
    find_best.add_argument(
        "--budget",
        type=seconds,
        default=_BUDGET_S,
        metavar="TIME",
        help=f"time for all of it: 90s, 2min (default {_BUDGET_S:g}s)",
    )
    find_best.add_argument(
        "--memory",
        type=size,
        metavar="SIZE",
        help="what all processes may take together: 8GB, 4GiB (default: what is free)",
    )
    find_best.add_argument(
        "--out",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where results go (default results)",
    )
    find_best.set_defaults(run=_find_best)


def _find_best(chosen: argparse.Namespace) -> int:
    from workbench.experiments.search.find_best import find_best

    loaded()
    model = MODELS[chosen.model]()
    require_writable_results(chosen.out, (_COMPARISON,))
    best = find_best(
        model.program(model_options(chosen, model, chosen.out)),
        budget=chosen.budget,
        memory=chosen.memory,
        toggles=[*(chosen.toggle or ()), *chosen.own] or None,
        stage=stage_options(chosen),
        smart_stage=smart_stage_options(chosen.threads, chosen.stale_lookups),
        allow_another_training=chosen.allow_another_training,
        seed=chosen.seed,
        command=chosen.command_line,
        progress=not chosen.quiet,
    )
    show(best)
    best.comparison.save(chosen.out / _COMPARISON)
    write_results([best.comparison], chosen.out)
    return 0

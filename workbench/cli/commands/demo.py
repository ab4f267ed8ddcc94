"""`workbench demo`."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.answers import say, show
from workbench.cli.arguments import (
    GENERATED_ROWS,
    add_step_stats,
    add_toggle,
    count,
    seconds,
    smart_stage_options,
)
from workbench.cli.results import require_writable_results, write_results
from workbench.cli.signals import loaded
from workbench.core.options import StageOptions
from workbench.errors import one_line
from workbench.experiments.program.toggles import AUTO_FUSED, SMART_STAGE

if TYPE_CHECKING:
    from workbench.experiments.comparison.results import Comparison

_BUDGET_S = 40.0
_PARTS = ("1-from-disk", "2-waiting-for-input")
_ALL_ON = "smart_stage+auto_fused"
_TOGGLES = (AUTO_FUSED, SMART_STAGE, _ALL_ON)
# An input that waits is no matter of fused ops alone.
_TOGGLES_WAITING = (SMART_STAGE, _ALL_ON)


def add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="DLRM on generated clicks: all off, smart stage, auto fused, both; under 2 minutes",
        description="Train DLRM on generated clicks: all off, with its input prepared ahead by a\n"
        "smart stage, with its ops fused, and with both. First its input is from disk, then each\n"
        "batch must wait.",
        epilog="examples:\n  workbench demo\n  workbench demo --toggle stage",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument(
        "--out",
        type=Path,
        default=Path("demo"),
        metavar="DIR",
        help="where results go (default demo)",
    )
    add_toggle(demo, f"an optimization to measure (default: {', '.join(_TOGGLES)})")
    demo.add_argument(
        "--rows",
        type=count,
        default=GENERATED_ROWS,
        metavar="N",
        help="rows of the click log (default %(default)s)",
    )
    demo.add_argument(
        "--budget",
        type=seconds,
        default=_BUDGET_S,
        metavar="TIME",
        help=f"time for each of the two (default {_BUDGET_S:g}s)",
    )
    add_step_stats(demo)
    demo.set_defaults(run=_demo, traceback=False)


def _demo(chosen: argparse.Namespace) -> int:
    from workbench.experiments.comparison.compare import compare
    from workbench.models.data.criteo import check_criteo, generate_criteo
    from workbench.models.zoo.options import DlrmOptions
    from workbench.models.zoo.programs import dlrm_program

    loaded()
    require_writable_results(chosen.out, _PARTS)
    path = generate_criteo(chosen.out / "clicks.tsv", rows=chosen.rows)
    say(f"Click log: {one_line(str(path))}, {chosen.rows} rows")
    data = dataclasses.replace(check_criteo(path), generated=True)
    stage = StageOptions(num_threads=2, capacity=2)
    comparisons: list[Comparison] = []
    latency_ms = 0.0
    for number, title in enumerate(_PARTS):
        waits = f"each batch waits {latency_ms:.1f} ms" if number else "input from disk"
        say(f"\nDLRM with all off and with optimizations, {waits}")
        options = DlrmOptions(data=data, input_latency_ms=latency_ms)
        comparison = compare(
            dlrm_program(options),
            tuple(chosen.toggle or (_TOGGLES_WAITING if number else _TOGGLES)),
            stage=stage,
            smart_stage=smart_stage_options(stage.num_threads),
            budget_s=chosen.budget,
            step_stats=chosen.step_stats,
            command=chosen.command_line,
            progress=not chosen.quiet,
        )
        show(comparison)
        comparison.save(chosen.out / title)
        comparisons.append(comparison)
        # The second input waits as long as the step computes, the hardest case to hide.
        latency_ms = round(1000 / comparison.bounds[0].steps_per_s, 1)
    write_results(comparisons, chosen.out)
    return 0

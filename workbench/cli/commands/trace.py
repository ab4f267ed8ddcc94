"""`workbench trace`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from workbench.cli.answers import say_wrote, show
from workbench.cli.arguments import (
    add_model,
    add_step_stats,
    chosen_program,
    count,
    joined,
    smart_stage_options,
    stage_options,
)
from workbench.cli.signals import loaded
from workbench.errors import one_line
from workbench.files.atomic_file import home_of, make_directory, require_writable_file
from workbench.number_words import counted


def add_trace(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    trace = commands.add_parser(
        "trace",
        help="trace a few steps of a model",
        description="Trace a few warm steps of a model into a Parquet file.",
        epilog="example:\n  workbench trace dlrm --toggle smart_stage --data my_clicks.tsv",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(trace, trace)
    trace.add_argument(
        "--steps", type=count, default=30, metavar="N", help="steps to trace (default 30)"
    )
    trace.add_argument(
        "--out",
        type=Path,
        default=Path("trace.parquet"),
        metavar="FILE",
        help="the trace to write (default trace.parquet)",
    )
    trace.add_argument(
        "--chrome", type=Path, metavar="FILE", help="also write Chrome trace JSON, for Perfetto"
    )
    add_step_stats(trace)
    trace.set_defaults(run=_trace)


def _trace(chosen: argparse.Namespace) -> int:
    from workbench.experiments.comparison.trace import trace

    loaded()
    for file in filter(None, (chosen.out, chosen.chrome)):
        require_writable_file(file)
    smart_stage = smart_stage_options(chosen.threads, chosen.stale_lookups)
    optimizations = joined(chosen.toggle, stage_options(chosen), smart_stage)
    captured = trace(
        chosen_program(chosen, home_of(chosen.out)),
        optimizations,
        steps=chosen.steps,
        step_stats=chosen.step_stats,
        progress=not chosen.quiet,
    )
    make_directory(chosen.out.parent)
    captured.save(chosen.out)
    say_wrote(chosen.out)
    if chosen.chrome:
        make_directory(chosen.chrome.parent)
        captured.to_chrome(chosen.chrome)
        say_wrote(chosen.chrome)
    steps = counted(len(captured.steps()), "step")
    place = one_line(shlex.quote(str(chosen.out)))
    show(captured, f"{steps} of {captured.meta.title}. Next: workbench findings {place}")
    return 0

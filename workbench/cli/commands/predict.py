"""`workbench predict`."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.answers import say_wrote, show
from workbench.cli.arguments import (
    add_model,
    chosen_program,
    count,
    smart_stage_options,
    stage_options,
)
from workbench.cli.signals import loaded
from workbench.cli.sources import unusable_traces_are_data
from workbench.errors import DataError, one_line
from workbench.files.atomic_file import home_of, make_directory, replacing, require_writable_file

if TYPE_CHECKING:
    from workbench.core.trace.trace import Trace
    from workbench.experiments.program.function_program import AnyProgram

_EXAMPLES = """examples:
  workbench predict dlrm --generate 200000
  workbench predict dlrm --toggle smart_stage --toggle smart_stage+fused_v2 --out predicted.html
  workbench predict dlrm --cores 8 --batch-ratio 2

  workbench trace dlrm --out off.parquet
  workbench predict dlrm --trace off.parquet

The model is traced once, without any toggle, and so are a few steps of each fused graph and of the
inline executor. Every setting is then simulated from these steps.
"""


def add_predict(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    predict = commands.add_parser(
        "predict",
        help="what each optimization would give a model, from one trace",
        description="Predict from one trace what each optimization would give a model.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(predict, predict, "a setting to predict (default: all, and all combinations of them)")
    predict.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="a trace of the model without toggles, with the same data and batch size (default: "
        "take one)",
    )
    predict.add_argument(
        "--steps", type=count, default=30, metavar="N", help="steps to trace (default 30)"
    )
    predict.add_argument(
        "--cores", type=count, metavar="N", help="cores to predict for (default: the trace's)"
    )
    predict.add_argument(
        "--inter-op-threads",
        type=count,
        metavar="N",
        help="threads of the session to predict for (default: the trace's)",
    )
    predict.add_argument(
        "--batch-ratio",
        type=_ratio,
        default=1.0,
        metavar="X",
        help="size of a batch to predict for, against the trace's (default 1)",
    )
    predict.add_argument("--out", type=Path, metavar="FILE", help="also write a page")
    predict.set_defaults(run=_predict)


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = math.nan
    if not 0 < ratio < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return ratio


def _predict(chosen: argparse.Namespace) -> int:
    from workbench.experiments.what_if.predict import predict
    from workbench.viz.outlets import predictions_page

    loaded()
    if chosen.out:
        require_writable_file(chosen.out)
    saved = _saved(chosen.trace) if chosen.trace else None
    home = home_of(chosen.out) if chosen.out else Path()
    program = chosen_program(chosen, home)
    predictions = predict(
        saved or _taken(program, chosen),
        program,
        chosen.toggle,
        stage=stage_options(chosen),
        smart_stage=smart_stage_options(chosen.threads, chosen.stale_lookups),
        cores=chosen.cores,
        inter_op_threads=chosen.inter_op_threads,
        batch_ratio=chosen.batch_ratio,
        progress=not chosen.quiet,
    )
    show(predictions)
    if chosen.out:
        make_directory(chosen.out.parent)
        with replacing(chosen.out) as part:
            part.write_text(predictions_page(predictions), "utf-8")
        say_wrote(chosen.out)
    return 0


def _saved(path: Path) -> Trace:
    """Reads a trace of a model without a stage.

    Raises:
      DataError: it cannot be read, or has one.
    """
    from workbench.core.trace.trace import load_trace

    with unusable_traces_are_data():
        trace = load_trace(path)
    if (trace.tracks["kind"] == "prefetch").any():
        raise DataError(
            f"{one_line(str(path))}: its steps have a stage; expected a trace of the model without "
            "toggles, such as `workbench trace` takes"
        )
    return trace


def _taken(program: AnyProgram, chosen: argparse.Namespace) -> Trace:
    from workbench.experiments.comparison.trace import trace

    return trace(program, steps=chosen.steps, progress=not chosen.quiet)

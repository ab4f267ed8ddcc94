"""`workbench serve-bench`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from workbench.cli.answers import say, say_wrote, show
from workbench.cli.arguments import count, seconds
from workbench.cli.results import write_report
from workbench.cli.signals import loaded
from workbench.errors import OptionError
from workbench.experiments.serving.p99_limit import NONE, P99Limit
from workbench.experiments.serving.toggles import NOTHING_TO_FUSE, names, setting_of
from workbench.files.atomic_file import require_writable_file

Number = TypeVar("Number", int, float)
_BUDGET_S, _ROUNDS = 120.0, 5
_CLIENTS, _LIMIT = "1,8,32", "3x"
# What is compared where nothing is asked for, and where nothing can be fused.
_TOGGLE, _UNFUSED = "auto_fused+inline_executor", "inline_executor"
_EXAMPLES = """examples:
  workbench serve-bench my_model/1
  workbench serve-bench my_model/1 --toggle auto_fused --toggle sessions=2
  workbench serve-bench my_model/1 --requests clicks.tfrecord --rows 1,32 --clients 1,8
  workbench serve-bench my_model/1 --rate 500,1000 --p99-limit none
  workbench serve-bench my_model/1 --p99-limit 5ms --budget 5min --save serving.json
  workbench serve-bench my_model/1 --toggle steps_at_once=2 --report served.html

DIR is the folder of a SavedModel, which has saved_model.pb or saved_model.pbtxt. A SavedModel is a
program: serve only those that you trust. The model is loaded as it is, and once for each --toggle,
each time in a child process of its own, as TensorFlow Serving loads it. Clients are threads of that
process. They send requests by TensorFlow's C API, as tensors that lie ready, so no network is part
of a latency.

One client waits for each answer before it sends the next request, then several do. With --rate
requests arrive at moments that are drawn beforehand, and latencies count from these moments. Then
the highest rate is searched at which p99 stays within --p99-limit. All settings take turns.

Options that take several numbers can be repeated: --rate 500 --rate 1000 is --rate 500,1000.

Without --requests they are made from the signature, and the result says so. A file of requests is a
TFRecord of tf.train.Example records or Parquet, with a feature or a column for each input.
"""


def add_serve_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "serve-bench",
        help="measure how fast a SavedModel answers requests, as it is and with toggles",
        description="Measure how fast a SavedModel answers requests, as it is and with toggles.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", type=Path, metavar="DIR", help="the folder of a SavedModel")
    command.add_argument(
        "--signature", default="serving_default", metavar="NAME", help="(default serving_default)"
    )
    command.add_argument(
        "--requests", type=Path, metavar="FILE", help="rows of requests: TFRecord or Parquet"
    )
    command.add_argument(
        "--rows",
        action="extend",
        type=_numbers(count),
        metavar="N,…",
        help="rows of a request, a load each (default 1)",
    )
    command.add_argument(
        "--clients",
        action="extend",
        type=_numbers(count),
        metavar="N,…",
        help=f"clients that wait for answers, a load each (default {_CLIENTS})",
    )
    command.add_argument(
        "--rate",
        action="extend",
        type=_numbers(_rate),
        metavar="R,…",
        help="requests a second that arrive whether answers are there or not, a load each",
    )
    command.add_argument(
        "--p99-limit",
        type=_limit,
        default=_LIMIT,
        metavar="LIMIT",
        help="search the highest rate at which p99 is within a time, as 5ms, or so many times the "
        f"unloaded median, as 3x (default {_LIMIT}; {NONE}: no search)",
    )
    command.add_argument(
        "--toggle",
        action="append",
        type=_toggle,
        metavar="NAME",
        help=f"a setting to compare (default {_TOGGLE}, or {_UNFUSED} where nothing can be fused): "
        f"{names()}; join several by +",
    )
    command.add_argument(
        "--rounds",
        type=count,
        default=_ROUNDS,
        metavar="N",
        help=f"how often each setting has each load (default {_ROUNDS})",
    )
    command.add_argument(
        "--budget",
        type=seconds,
        default=_BUDGET_S,
        metavar="TIME",
        help=f"time for all of it: 60s, 2min (default {_BUDGET_S:g}s); many loads can take longer, "
        "and what is expected is said first",
    )
    command.add_argument("--save", type=Path, metavar="FILE", help="write the result as JSON")
    command.add_argument(
        "--report", type=Path, metavar="FILE", help="write the report: one HTML page"
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the arrivals (default 0)"
    )
    command.add_argument(
        "--traceback", action="store_true", help="when a run fails, show its traceback"
    )
    command.set_defaults(run=_serve_bench)


def _serve_bench(chosen: argparse.Namespace) -> int:
    from workbench.experiments.serving.served_model import served

    loaded()
    for file in filter(None, (chosen.save, chosen.report)):
        require_writable_file(file)
    program = served(
        chosen.model,
        signature=chosen.signature,
        requests=chosen.requests,
        rows=chosen.rows or [1],
    )
    try:
        comparison = _measured(program, chosen, chosen.toggle or [_TOGGLE])
    except OptionError as error:
        if chosen.toggle or NOTHING_TO_FUSE not in str(error):
            raise
        say(f"{error}; measuring {_UNFUSED} instead of {_TOGGLE}")
        comparison = _measured(program, chosen, [_UNFUSED])
    show(comparison)
    if chosen.save is not None:
        comparison.save(chosen.save)
        say_wrote(chosen.save)
    if chosen.report is not None:
        write_report([comparison], chosen.report)
    return 0


def _measured(program: Any, chosen: argparse.Namespace, toggles: list[str]) -> Any:
    from workbench.experiments.serving.serve_bench import serve_bench

    return serve_bench(
        program,
        toggles,
        clients=chosen.clients or _numbers(count)(_CLIENTS),
        rates=chosen.rate or [],
        p99_limit=chosen.p99_limit,
        rounds=chosen.rounds,
        budget=chosen.budget,
        seed=chosen.seed,
        command=chosen.command_line,
        progress=not chosen.quiet,
    )


def _numbers(kind: Callable[[str], Number]) -> Callable[[str], list[Number]]:
    """Numbers that commas separate; an option may be repeated, too."""

    def parsed(text: str) -> list[Number]:
        return [kind(part.strip()) for part in text.split(",")]

    return parsed


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate; expected requests a second above 0")
    return rate


def _limit(text: str) -> str:
    return _checked(text, P99Limit.of)


def _toggle(text: str) -> str:
    return _checked(text, setting_of)


def _checked(text: str, check: Callable[[str], Any]) -> str:
    try:
        check(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text

"""The command line: argument parsing, and nothing that a function could not be asked for.

Exit codes: 0 done, 1 a run failed, 2 a mistake in the arguments or the data or a place that cannot
be written, 130 cancelled by Ctrl-C, 143 by SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import workbench
from workbench.atomic_file import make_directory, require_writable_directory, require_writable_file
from workbench.core.options import Optimizations, SmartStageOptions, StageOptions
from workbench.errors import (
    DataError,
    OptionError,
    OutputError,
    UnsupportedError,
    WorkbenchError,
    one_line,
)
from workbench.experiments.program.toggles import TOGGLES, USUAL, optimizations_of
from workbench.models import MODELS

if TYPE_CHECKING:
    from workbench.experiments.comparison.results import Comparison
    from workbench.models import Model
    from workbench.models.building.model_program import ModelOptions
    from workbench.models.data.text_table import CheckedTable

_MOST_ROWS = 1_000_000
_GENERATED_ROWS = 200_000
_BUDGET_S = 90.0
_DEMO_BUDGET_S = 60.0
_COMPARISON = "comparison"
_DEMO_PARTS = ("1-from-disk", "2-waiting-for-input")
_REPORT, _TRACE = "report.html", "trace.parquet"

_TOP_EXAMPLES = """examples:
  workbench demo
  workbench compare dlrm --toggle stage --toggle smart_stage --data my_clicks.tsv
  workbench trace dlrm --toggle stage --out trace.parquet
  workbench report results
"""
_COMPARE_EXAMPLES = """examples:
  workbench compare dlrm --toggle stage --toggle smart_stage --data my_clicks.tsv
  workbench compare dlrm --generate 200000 --input-latency auto --threads 2
  workbench compare dlrm --data day_0 --rows 500000 --batch-size 2048 --budget 2min
  workbench compare din --toggle fused_v2 --generate 50000
  workbench compare wdl --all --budget 5min

stage is the model's own stage; smart_stage a plan for the model without one, made from a short
trace of it; fused_v1 and fused_v2 fuse its embedding lookups; inline_executor runs its steps on one
thread, cost_model_executor schedules them by costs learnt while it warms up. Join them with "+" to
switch several on at once: stage+smart_stage is a plan for the model with its own stage,
fused_v2+smart_stage one for the model with fused lookups. Each --toggle is measured by itself.

--all measures each of the six alone, and stage+smart_stage+fused_v2+cost_model_executor: eight
variants that take turns, so eight processes are in memory at the same time, about half a GB each
for dlrm. Starting and checking them takes two minutes or so of --budget on two cores, and all
share the rest: 4min or more says something.

The data of dlrm, deepfm and wdl is in the public Criteo format: label, I1..I13, C1..C26, separated
by tabs, without a header; fields may be empty. That of dssm is a log of advertisements, separated
by commas, that of din and dien one of sequences, separated by tabs; --generate writes examples.
Results go to --out: report.html, trace.parquet, comparison/.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A table has signs that a C locale cannot show.
            stream.reconfigure(errors="replace")
    parser = _parser()
    chosen = parser.parse_args(arguments)
    chosen.command_line = one_line(shlex.join(["workbench", *arguments]))
    with _signals():
        return _exit_code(chosen)


def _exit_code(chosen: argparse.Namespace) -> int:
    try:
        return int(chosen.run(chosen))
    except (KeyboardInterrupt, _Terminated) as stop:
        from workbench.experiments.worker.process import CANCELLED

        print(f"\n{str(stop) or CANCELLED}", file=sys.stderr)
        return 143 if isinstance(stop, _Terminated) else 130
    except (DataError, OptionError, OutputError, UnsupportedError) as error:
        print(f"workbench: error: {error}", file=sys.stderr)
        return 2
    except WorkbenchError as error:
        print(f"workbench: error: {error}", file=sys.stderr)
        if chosen.traceback:
            print(*getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of a pipe is gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


class _Terminated(BaseException):
    """SIGTERM, on its way up to where child processes are ended."""


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Ctrl-C ends the process at once until the command has loaded; SIGTERM cleans up.

    Python loses an interrupt that comes in a callback of an import, and the run would go on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(*_: Any) -> None:
        raise _Terminated

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _loaded() -> None:
    """The command has loaded what it needs: from here on Ctrl-C is an exception that cleans up."""
    on_main = threading.current_thread() is threading.main_thread()
    if on_main and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench",
        description="See, stage and measure a recommender's training step.",
        epilog=_TOP_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"workbench {workbench.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_compare(commands)
    _add_trace(commands)
    _add_report(commands)
    _add_demo(commands)
    return parser


def _add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    compare = commands.add_parser(
        "compare",
        help="measure a model without and with an optimization",
        description="Measure a model without and with an optimization, side by side.",
        epilog=_COMPARE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    switches = compare.add_mutually_exclusive_group()
    _add_model(compare, switches)
    switches.add_argument(
        "--all",
        action="store_true",
        help="measure every optimization alone, and all together (eight processes, see below)",
    )
    compare.add_argument(
        "--budget",
        type=_seconds,
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
    _add_step_stats(compare)
    compare.set_defaults(run=_compare)


def _add_trace(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    trace = commands.add_parser(
        "trace",
        help="trace a few steps of a model",
        description="Trace a few warm steps of a model into a Parquet file.",
        epilog="example:\n  workbench trace dlrm --toggle smart_stage --data my_clicks.tsv",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_model(trace, trace)
    trace.add_argument(
        "--steps", type=_count, default=30, metavar="N", help="steps to trace (default 30)"
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
    _add_step_stats(trace)
    trace.set_defaults(run=_trace)


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = commands.add_parser(
        "report",
        help="write the report of saved results again",
        description="Write the report of saved results again.",
        epilog="example:\n  workbench report results --out report.html",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument("results", type=Path, metavar="DIR", help="what compare or demo wrote to")
    report.add_argument(
        "--out", type=Path, metavar="FILE", help="the report (default DIR/report.html)"
    )
    report.set_defaults(run=_report, traceback=False)


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="DLRM on generated clicks, un-staged, staged and smart-staged, under 3 minutes",
        description="Train DLRM on generated clicks, un-staged and staged, first with its input\n"
        "from disk, then with an input that each batch must wait for.",
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
    _add_toggle(demo, "an optimization to measure (default: stage and smart_stage)")
    demo.add_argument(
        "--rows",
        type=_count,
        default=_GENERATED_ROWS,
        metavar="N",
        help="rows of the click log (default %(default)s)",
    )
    demo.add_argument(
        "--budget",
        type=_seconds,
        default=_DEMO_BUDGET_S,
        metavar="TIME",
        help=f"time for each of the two (default {_DEMO_BUDGET_S:g}s)",
    )
    _add_step_stats(demo)
    demo.set_defaults(run=_demo, traceback=False)


def _add_model(parser: argparse.ArgumentParser, switches: argparse._ActionsContainer) -> None:
    """The arguments that say what is run; `switches` gets the toggles."""
    parser.add_argument("model", choices=list(MODELS), help="the model")
    _add_toggle(
        switches, "an optimization to switch on (compare: stage and smart_stage, if none is given)"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", type=Path, metavar="FILE", help="a log in the model's format")
    source.add_argument(
        "--generate",
        type=_count,
        default=_GENERATED_ROWS,
        metavar="N",
        help="without --data: generate a log of N rows (default %(default)s)",
    )
    parser.add_argument(
        "--rows",
        type=_count,
        default=_MOST_ROWS,
        metavar="N",
        help="read at most the first N rows of --data (default %(default)s)",
    )
    parser.add_argument(
        "--batch-size", type=_count, metavar="N", help="(default: the model's own, 512 for dlrm)"
    )
    parser.add_argument(
        "--input-latency",
        type=_latency,
        default=0.0,
        metavar="MS",
        help="let each batch wait so many ms without using a CPU; auto: as long as a step computes",
    )
    parser.add_argument(
        "--threads",
        type=_count,
        default=2,
        metavar="N",
        help="prefetch threads of the stage (default 2; 1 keeps the order of batches, also in a "
        "smart stage, which chooses its own number else)",
    )
    parser.add_argument(
        "--capacity",
        type=_count,
        default=2,
        metavar="N",
        help="items the stage's buffer holds (default 2; a smart stage chooses)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of weights and generated data (default 1)"
    )
    parser.add_argument(
        "--traceback", action="store_true", help="when a run fails, show its traceback"
    )


def _add_toggle(parser: argparse._ActionsContainer, words: str) -> None:
    words += f": {', '.join(TOGGLES)}, or several joined by +"
    parser.add_argument("--toggle", action="append", type=_toggle, metavar="NAME", help=words)


def _add_step_stats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--step-stats",
        action="store_true",
        help="trace with TensorFlow's own step stats, which lengthen every step and op; without it "
        "the executor that runs the traced steps records their ops",
    )


def _toggle(text: str) -> str:
    try:
        optimizations_of(text, StageOptions(), SmartStageOptions())
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _compare(chosen: argparse.Namespace) -> int:
    from workbench.experiments.comparison.compare import compare

    _loaded()
    model = MODELS[chosen.model]()
    _require_writable_results(chosen.out, (_COMPARISON,))
    comparison = compare(
        model.program(_options(chosen, model, chosen.out)),
        None if chosen.all else tuple(chosen.toggle or USUAL),
        all=chosen.all,
        stage=_stage(chosen),
        smart_stage=_smart_stage(chosen.threads),
        budget_s=chosen.budget,
        step_stats=chosen.step_stats,
        seed=chosen.seed,
        command=chosen.command_line,
    )
    _say_table(comparison)
    comparison.save(chosen.out / _COMPARISON)
    _write_results([comparison], chosen.out)
    return 0


def _trace(chosen: argparse.Namespace) -> int:
    from workbench.experiments.comparison.compare import trace

    _loaded()
    model = MODELS[chosen.model]()
    for file in filter(None, (chosen.out, chosen.chrome)):
        require_writable_file(file)
    # Toggles may name one optimization each, or the same one again.
    on = "+".join(dict.fromkeys("+".join(chosen.toggle or ()).split("+")))
    smart = _smart_stage(chosen.threads)
    optimizations = optimizations_of(on, _stage(chosen), smart) if on else Optimizations()
    options = _options(chosen, model, chosen.out.parent)
    found = trace(
        model.program(options), optimizations, steps=chosen.steps, step_stats=chosen.step_stats
    )
    make_directory(chosen.out.parent)
    found.save(chosen.out)
    _say_wrote(chosen.out)
    if chosen.chrome:
        make_directory(chosen.chrome.parent)
        found.to_chrome(chosen.chrome)
        _say_wrote(chosen.chrome)
    return 0


def _report(chosen: argparse.Namespace) -> int:
    from workbench.experiments.comparison.results import load_comparison

    _loaded()
    out = chosen.out or chosen.results / _REPORT
    # compare saves one comparison below its directory, demo saves several.
    homes = [chosen.results, *sorted(p for p in chosen.results.glob("*") if p.is_dir())]
    saved = [home for home in homes if (home / "comparison.json").is_file()]
    comparisons = [load_comparison(home) for home in saved or [chosen.results]]
    require_writable_file(out)
    make_directory(out.parent)
    _write_report(comparisons, out)
    return 0


def _demo(chosen: argparse.Namespace) -> int:
    from workbench.experiments.comparison.compare import compare
    from workbench.models.data.criteo import check_criteo, generate_criteo
    from workbench.models.zoo.options import DlrmOptions, dlrm_program

    _loaded()
    _require_writable_results(chosen.out, _DEMO_PARTS)
    path = generate_criteo(chosen.out / "clicks.tsv", rows=chosen.rows)
    _say(f"Click log: {one_line(str(path))}, {chosen.rows} rows")
    data = check_criteo(path)
    stage = StageOptions(num_threads=2, capacity=2)
    comparisons: list[Comparison] = []
    latency_ms = 0.0
    for number, title in enumerate(_DEMO_PARTS):
        waits = f"each batch waits {latency_ms:.1f} ms" if number else "input from disk"
        _say(f"\nDLRM un-staged and staged, {waits}")
        options = DlrmOptions(data=data, input_latency_ms=latency_ms)
        comparison = compare(
            dlrm_program(options),
            tuple(chosen.toggle or USUAL),
            stage=stage,
            smart_stage=_smart_stage(stage.num_threads),
            budget_s=chosen.budget,
            step_stats=chosen.step_stats,
            command=chosen.command_line,
        )
        _say_table(comparison)
        comparison.save(chosen.out / title)
        comparisons.append(comparison)
        # The second input waits as long as the step computes, the hardest case to hide.
        latency_ms = round(1000 / comparison.bounds[0].steps_per_s, 1)
    _write_results(comparisons, chosen.out)
    return 0


def _stage(chosen: argparse.Namespace) -> StageOptions:
    return StageOptions(num_threads=chosen.threads, capacity=chosen.capacity)


def _smart_stage(threads: int) -> SmartStageOptions:
    """Several threads for the stage say that the order of batches does not matter."""
    return SmartStageOptions(reorder=threads > 1)


def _options(chosen: argparse.Namespace, model: Model, home: Path) -> ModelOptions:
    from workbench.experiments.measurement.blocks import step_time_ms

    data = _data(chosen, model, home)
    options: ModelOptions = model.options(data=data, seed=chosen.seed)
    if chosen.batch_size is not None:
        options = dataclasses.replace(options, batch_size=chosen.batch_size)
    latency_ms = chosen.input_latency
    if latency_ms is None:
        latency_ms = round(step_time_ms(model.program(options), "build_compute"), 1)
        _say(f"A step computes {latency_ms} ms; each batch waits as long")
    return dataclasses.replace(options, input_latency_ms=latency_ms)


def _data(chosen: argparse.Namespace, model: Model, home: Path) -> CheckedTable:
    if chosen.data is None:
        name = Path(model.file_name)
        path = home / f"{name.stem}-{chosen.generate}-{chosen.seed}{name.suffix}"
        data = model.check(model.generate(path, rows=chosen.generate, seed=chosen.seed))
    else:
        data = model.check(chosen.data, rows=chosen.rows)
    more = "; it has more, which --rows would add" if data.more else ""
    _say(f"{model.log.capitalize()}: {one_line(str(data.path))}, {data.rows} rows{more}")
    return data


def _say_table(comparison: Comparison) -> None:
    from workbench.viz.comparison.text import comparison_table

    print(comparison_table(comparison), flush=True)


def _write_results(comparisons: Sequence[Comparison], out: Path) -> None:
    """Writes report.html and, of the last comparison, the last variant's trace."""
    traces = [v.trace for v in comparisons[-1].variants if v.trace is not None]
    make_directory(out)
    if traces:
        traces[-1].save(out / _TRACE)
        _say_wrote(out / _TRACE)
    _write_report(comparisons, out / _REPORT)


def _require_writable_results(out: Path, comparisons: Sequence[str]) -> None:
    """Refuses a place that cannot be written before anything runs."""
    for directory in (out, *(out / name for name in comparisons)):
        require_writable_directory(directory)
    for name in (_REPORT, _TRACE):
        require_writable_file(out / name)


def _write_report(comparisons: Sequence[Comparison], path: Path) -> None:
    from workbench.viz.report import write_report

    write_report(list(comparisons), path)
    _say_wrote(path)


def _say_wrote(path: Path) -> None:
    _say(f"Wrote {one_line(str(path))}")


def _say(text: str) -> None:
    print(text, flush=True)


def _count(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdecimal() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(digits)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|sec|min|m)?", text)
    seconds = float(found[1]) * (60 if found[2] in ("min", "m") else 1) if found else 0.0
    if not 0 < seconds <= 24 * 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 60s or 2min")
    return seconds


def _latency(text: str) -> float | None:
    """Milliseconds, or None for auto."""
    if text == "auto":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:ms)?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor milliseconds such as 12.5")
    return float(found[1])


if __name__ == "__main__":
    sys.exit(main())

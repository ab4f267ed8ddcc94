"""The command line's entry: parses the arguments, runs one command, returns its exit code.

Exit codes: 0 done, 1 a run failed, 2 a mistake in the arguments or the data or a place that cannot
be written, 130 cancelled by Ctrl-C, 143 by SIGTERM. Where a command has a verdict (gate,
rerun), 1 says that something does not hold, and a failed run is 2.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
from collections.abc import Sequence
from typing import NoReturn

import workbench
from workbench.cli.answers import Answer, add_answer_options, answering, require_free_stdout
from workbench.cli.commands.cluster import add_cluster, add_cluster_demo
from workbench.cli.commands.cluster_trace import add_cluster_trace
from workbench.cli.commands.compare import add_compare
from workbench.cli.commands.critical_path import add_critical_path
from workbench.cli.commands.demo import add_demo
from workbench.cli.commands.export import add_export
from workbench.cli.commands.find_best import add_find_best
from workbench.cli.commands.findings import add_findings
from workbench.cli.commands.gate import add_gate
from workbench.cli.commands.mcp import add_mcp
from workbench.cli.commands.predict import add_predict
from workbench.cli.commands.report import add_report
from workbench.cli.commands.rerun import add_rerun
from workbench.cli.commands.serve_bench import add_serve_bench
from workbench.cli.commands.trace import add_trace
from workbench.cli.signals import Terminated, ends_cleanly
from workbench.errors import (
    DataError,
    OptionError,
    OutputError,
    UnsupportedError,
    WorkbenchError,
    one_line,
    visible,
)

_EXAMPLES = """examples:
  workbench demo
  workbench compare dlrm --toggle stage --toggle smart_stage --data my_clicks.tsv
  workbench compare my_model.py:build --toggle stage
  workbench trace dlrm --toggle stage --out trace.parquet
  workbench findings trace.parquet
  workbench predict dlrm --json
  workbench find-best dlrm --budget 3min --memory 8GB
  workbench report results
  workbench gate results --fail-if-slower 3%
  workbench rerun results/report.html
  workbench serve-bench my_model/1 --toggle auto_fused+inline_executor
  workbench cluster-demo dlrm --workers 2 --toggle smart_stage
  workbench export models/ctr models/ctr_stock
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A table has signs that a C locale cannot show.
            stream.reconfigure(errors="replace")
    chosen = _parser("--json" in arguments).parse_args(arguments)
    chosen.command_line = one_line(shlex.join(["workbench", *arguments]))
    with ends_cleanly():
        try:
            with answering(chosen) as answer:
                code = _exit_code(chosen, answer)
            answer.write(chosen.command, code)
        except BrokenPipeError:
            # The reader of a pipe is gone; there is nobody left to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 1
    return code


def _exit_code(chosen: argparse.Namespace, answer: Answer) -> int:
    try:
        require_free_stdout(chosen)
        return int(chosen.run(chosen))
    except (KeyboardInterrupt, Terminated) as stop:
        from workbench.experiments.worker.process import CANCELLED

        print(f"\n{str(stop) or CANCELLED}", file=sys.stderr)
        answer.failed("cancelled", str(stop) or CANCELLED)
        return 143 if isinstance(stop, Terminated) else 130
    except (DataError, OptionError, OutputError, UnsupportedError) as error:
        _say_error(error, answer)
        return 2
    except WorkbenchError as error:
        _say_error(error, answer)
        if chosen.traceback:
            print(*map(visible, getattr(error, "__notes__", ())), sep="\n", file=sys.stderr)
        return 2 if _has_a_verdict(chosen) else 1


def _say_error(error: WorkbenchError, answer: Answer) -> None:
    print(f"workbench: error: {visible(str(error))}", file=sys.stderr)
    answer.failed(type(error).__name__, str(error))


def _has_a_verdict(chosen: argparse.Namespace) -> bool:
    return chosen.command == "rerun" or getattr(chosen, "fail_if_slower", None) is not None


class _JsonParser(argparse.ArgumentParser):
    """A parser whose mistakes become a document, too."""

    def error(self, message: str) -> NoReturn:
        answer = Answer(json=True)
        answer.failed("OptionError", message)
        answer.write(self.prog.partition(" ")[2], 2)
        super().error(message)


def _parser(as_json: bool = False) -> argparse.ArgumentParser:
    # Those of the commands are of the same class.
    parser = (_JsonParser if as_json else argparse.ArgumentParser)(
        prog="workbench",
        description="See, stage and measure a recommender's training step.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"workbench {workbench.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_compare(commands)
    add_trace(commands)
    add_predict(commands)
    add_find_best(commands)
    add_findings(commands)
    add_critical_path(commands)
    add_report(commands)
    add_gate(commands)
    add_rerun(commands)
    add_serve_bench(commands)
    add_demo(commands)
    add_cluster(commands)
    add_cluster_demo(commands)
    add_cluster_trace(commands)
    add_export(commands)
    for command in commands.choices.values():
        add_answer_options(command)
    # Which answers in JSON of its own.
    add_mcp(commands)
    return parser

"""`workbench critical-path`."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.answers import show
from workbench.cli.signals import loaded
from workbench.cli.sources import WHAT, trace_of, unusable_traces_are_data

_EXAMPLES = """examples:
  workbench critical-path trace.parquet
  workbench critical-path results --variant "smart stage" --json

The critical path is the chain of ops and waits that the steps took as long as: to make a step
shorter, make something on it shorter.
"""


def add_critical_path(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "critical-path",
        help="the chain of ops and waits that the steps of a trace took as long as",
        description="Say which chain of ops and waits the steps of a trace took as long as.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help=WHAT)
    parser.add_argument(
        "--variant", metavar="LABEL", help="of saved results which variant (default: the baseline)"
    )
    parser.set_defaults(run=_critical_path, traceback=False)


def _critical_path(chosen: argparse.Namespace) -> int:
    from workbench.core.analysis.critical_path import critical_path

    loaded()
    with unusable_traces_are_data():
        show(critical_path(trace_of(chosen.source, chosen.variant)))
    return 0

"""`workbench findings`."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.answers import show
from workbench.cli.signals import loaded
from workbench.cli.sources import WHAT, saved_results, trace_in, unusable_traces_are_data

_EXAMPLES = """examples:
  workbench findings trace.parquet
  workbench findings results --json

Each finding says what is wrong, what the trace shows of it, what mending it gives at most, and what
to do. Of saved results the findings of each variant are said, and those of the baseline that are
gone.
"""


def add_findings(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    findings = commands.add_parser(
        "findings",
        help="what makes the steps of a trace slow, and what mends it",
        description="Say what makes the steps of a trace slow, and what mends it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    findings.add_argument("source", type=Path, metavar="SOURCE", help=WHAT)
    findings.set_defaults(run=_findings, traceback=False)


def _findings(chosen: argparse.Namespace) -> int:
    from workbench.experiments.comparison.findings import findings

    loaded()
    comparisons = saved_results(chosen.source)
    with unusable_traces_are_data():
        if comparisons is None:
            show(findings(trace_in(chosen.source)))
        for comparison in comparisons or ():
            show(findings(comparison))
    return 0

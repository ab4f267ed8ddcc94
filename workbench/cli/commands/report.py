"""`workbench report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.results import REPORT, saved_comparisons, write_report
from workbench.cli.signals import loaded
from workbench.files.atomic_file import make_directory, require_writable_file


def add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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


def _report(chosen: argparse.Namespace) -> int:
    loaded()
    out = chosen.out or chosen.results / REPORT
    comparisons = saved_comparisons(chosen.results)
    require_writable_file(out)
    make_directory(out.parent)
    write_report(comparisons, out)
    return 0

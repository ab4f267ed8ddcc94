"""What commands read and write: saved results, reports, traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.answers import say_wrote
from workbench.errors import RunError
from workbench.experiments.comparison import COMPARISON_FILE
from workbench.files.atomic_file import (
    make_directory,
    require_writable_directory,
    require_writable_file,
)

if TYPE_CHECKING:
    from workbench.experiments.comparison.results import Comparison
    from workbench.experiments.serving.results import ServingComparison

REPORT, _TRACE = "report.html", "trace.parquet"


def write_results(comparisons: Sequence[Comparison], out: Path) -> None:
    """Writes report.html and, of the last comparison, the last variant's trace."""
    traces = [v.trace for v in comparisons[-1].variants if v.trace is not None]
    make_directory(out)
    if traces:
        traces[-1].save(out / _TRACE)
        say_wrote(out / _TRACE)
    write_report(comparisons, out / REPORT)


def saved_comparisons(directory: Path) -> list[Comparison]:
    """The comparisons of a directory: one that is saved there, or those saved below it.

    Raises:
      DataError: there is none, or it cannot be read.
    """
    from workbench.experiments.comparison.results import load_comparison

    # compare saves one comparison below its directory, demo saves several.
    homes = [directory, *sorted(path for path in directory.glob("*") if path.is_dir())]
    saved = [home for home in homes if (home / COMPARISON_FILE).is_file()]
    return [load_comparison(home) for home in saved or [directory]]


def require_all_measured(comparison: Comparison) -> None:
    """Says which settings failed, once the results of the others are written.

    Raises:
      RunError: some did, which makes the exit code that of a failed run.
    """
    if comparison.failed:
        raise RunError(f"{'; '.join(comparison.failed.values())}; the others were measured")


def require_writable_results(out: Path, comparisons: Sequence[str]) -> None:
    """Refuses a place that cannot be written before anything runs."""
    for directory in (out, *(out / name for name in comparisons)):
        require_writable_directory(directory)
    for name in (REPORT, _TRACE):
        require_writable_file(out / name)


def write_report(comparisons: Sequence[Comparison | ServingComparison], path: Path) -> None:
    from workbench.viz.report import write_report

    write_report(list(comparisons), path)
    say_wrote(path)

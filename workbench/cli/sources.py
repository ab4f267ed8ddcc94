"""Traces that a command is given: of a file, of saved results or sessions, beside a report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.results import saved_comparisons
from workbench.errors import DataError, OptionError, TraceError, one_line
from workbench.experiments.session.saved import SESSION_FILE
from workbench.files.file_kinds import HEAD_BYTES, PARQUET, kind_of

if TYPE_CHECKING:
    from workbench.core.trace.trace import Trace
    from workbench.experiments.comparison.results import Comparison

WHAT = "a trace, a directory of saved results or of a session, or a report beside such"
PAGES = (".html", ".htm")


def saved_results(path: Path) -> list[Comparison] | None:
    """The comparisons of a directory, or of the directory of a report; None of a trace's file.

    Raises:
      DataError: there is none.
    """
    if (path / SESSION_FILE).is_file():
        from workbench.experiments.session.load_session import load_session

        found = {id(run.comparison): run.comparison for run in load_session(path).runs}
        return list(found.values())
    if path.is_dir():
        return saved_comparisons(path)
    if path.suffix.lower() not in PAGES:
        return None
    try:
        return saved_comparisons(path.parent)
    except DataError as error:
        raise DataError(
            f"{one_line(str(path))}: a report shows traces and does not hold them, and no saved "
            "comparison is beside it; give the directory that compare wrote"
        ) from error


def trace_of(path: Path, variant: str | None = None) -> Trace:
    """One trace: of a file, or of a variant of saved results, the baseline where none is named.

    Raises:
      DataError: it cannot be read, or no variant has one.
      OptionError: there is no such variant, or a file has none.
    """
    comparisons = saved_results(path)
    if comparisons is None:
        if variant is not None:
            raise OptionError("--variant is of saved results; a trace has no variants")
        return trace_in(path)
    from workbench.experiments.comparison.measured import trace_of_variant

    variants = [each for comparison in comparisons for each in comparison.variants]
    if variant is None:
        traced = [each.label for each in variants if each.trace is not None]
        if not traced:
            raise OptionError("no variant of the saved results has a trace")
        baseline = comparisons[0].baseline
        variant = baseline if baseline in traced else traced[0]
    return trace_of_variant(variants, variant)


def trace_in(path: Path) -> Trace:
    """The trace of a file: Workbench's own, or another tool's.

    Raises:
      DataError: it cannot be read.
    """
    from workbench.core.importing.import_trace import import_trace
    from workbench.core.trace.trace import load_trace

    try:
        with path.open("rb") as file:
            kind = kind_of(file.read(HEAD_BYTES))
        with unusable_traces_are_data():
            return load_trace(path) if kind is PARQUET else import_trace(path)
    except OSError as error:
        raise DataError(f"{one_line(str(path))!r} cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def unusable_traces_are_data() -> Iterator[None]:
    """A trace that the user gave and that cannot be used is an error of the data.

    Raises:
      DataError: in place of a `TraceError`.
    """
    try:
        yield
    except TraceError as error:
        raise DataError(str(error)) from error

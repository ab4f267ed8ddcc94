"""Calibration → what its picture and tables show, every string finished."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from workbench.core.what_if.calibration import Calibration, Check
from workbench.core.what_if.predictions import AS_GOOD
from workbench.viz.comparison.chart import shown_label
from workbench.viz.predictions.scatter import Scatter, scatter_of
from workbench.viz.predictions.withheld import Reason, reasons
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain
from workbench.viz.style.table import Table

Pieces = tuple[tuple[str, bool], ...]

# The rows that are shown at once: those with the largest errors.
_FIRST = 12


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckRow:
    """One setting, predicted and measured.

    Attributes:
      program, label: what was run, and how.
      predicted, predicted_range, measured, measured_range: ratios and their intervals.
      error: how much too high the prediction was.
      sign: whether it was on the right side of 1×; "no sign" where the measurement has none.
      intervals: whether they meet.
      wrong: whether the sign is.
      first: whether it is among those shown at once.
    """

    program: str
    label: str
    predicted: str
    predicted_range: str
    measured: str
    measured_range: str
    error: str
    sign: str
    intervals: str
    wrong: bool
    first: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class CalibrationView:
    """A calibration, ready for every outlet.

    Attributes:
      sentence: the answer, as (text, strong) pieces.
      note: what of it the intervals cover.
      scatter: the picture; None where nothing was checked.
      programs: one row for each of several programs; None of one.
      rows: the settings, those with the largest errors first.
      caption: what their table is.
      opens: what shows the rows that are not shown at once; "" where all are.
      missing: reasons, and the settings that were measured and not predicted.
    """

    sentence: Pieces
    note: str
    scatter: Scatter | None
    programs: Table | None
    rows: tuple[CheckRow, ...]
    caption: str
    opens: str
    missing: tuple[Reason, ...]


def calibration_view(calibration: Calibration) -> CalibrationView:
    """The view of a calibration."""
    checks, programs = calibration.checks, calibration.programs
    ordered = sorted(checks, key=lambda check: -abs(check.error))
    several = len({*programs, *(program for program, _, _ in calibration.missing)}) > 1
    missing = [
        (f"{program}: {label}" if several else label, reason)
        for program, label, reason in calibration.missing
    ]
    return CalibrationView(
        sentence=_sentence(calibration),
        note=_note(calibration),
        scatter=scatter_of(checks, programs) if checks else None,
        programs=_programs(calibration) if len(programs) > 1 else None,
        rows=tuple(_row(check, first=n < _FIRST) for n, check in enumerate(ordered)),
        caption="Ratios of steps/s to the traced setting, the largest error first",
        opens=f"Show all {format.integer(len(checks))}" if len(checks) > _FIRST else "",
        missing=reasons(missing),
    )


def _sentence(calibration: Calibration) -> Pieces:
    error = calibration.mean_error
    if error is None:
        return (("No setting was both predicted and measured.", True),)
    count = len(calibration.checks)
    of = f"Of {format.integer(count)} settings the mean" if count > 1 else "Of one setting the"
    right, clear = calibration.signs
    signs = f"the sign is right in {right} of {clear} that are clear"
    if not clear:
        signs = "no measured interval excludes 1×, so there is no sign to predict"
    programs = calibration.programs
    picked = sum(bool(calibration.picks_best(program)) for program in programs)
    word = "program" if len(programs) == 1 else "programs"
    return (
        (f"{of} error is ", False),
        (format.share(error), True),
        (f"; {signs}; the best was picked in ", False),
        (f"{picked}{format.NBSP}of{format.NBSP}{len(programs)}", True),
        (f" {word}.", False),
    )


def _note(calibration: Calibration) -> str:
    if not calibration.checks:
        return ""
    met = f"{format.integer(calibration.inside)} of {format.integer(len(calibration.checks))}"
    near = f"{100 * AS_GOOD:.0f}{format.NBSP}%"
    return (
        f"Intervals of prediction and measurement meet in {met}. Picked is a setting that measures "
        f"within {near} of the best one; to leave all as it was traced counts as one."
    )


def _row(check: Check, *, first: bool) -> CheckRow:
    wrong = check.clear and not check.sign_right
    return CheckRow(
        program=plain(check.program),
        label=plain(shown_label(check.label)),
        predicted=format.ratio(check.predicted),
        predicted_range=_range(check.predicted_low, check.predicted_high),
        measured=format.ratio(check.measured),
        measured_range=_range(check.measured_low, check.measured_high),
        error=format.gain(1 + check.error),
        sign="wrong" if wrong else "right" if check.clear else "no sign",
        intervals="meet" if check.inside else "apart",
        wrong=wrong,
        first=first,
    )


def _range(low: float, high: float) -> str:
    known = math.isfinite(low) and math.isfinite(high)
    return format.ratio_range(low, high) if known else format.UNKNOWN


def _programs(calibration: Calibration) -> Table:
    heads = ("Program", "settings", "mean error", "signs", "predicted best", "measured best")
    rows = [_program(calibration, name) for name in calibration.programs]
    return Table("Each program", (*heads, "picked"), tuple(rows))


def _program(calibration: Calibration, name: str) -> tuple[str, ...]:
    checks = [check for check in calibration.checks if check.program == name]
    clear = [check for check in checks if check.clear]
    best = calibration.best(name)
    assert best is not None
    predicted, measured = best
    return (
        plain(name),
        format.integer(len(checks)),
        format.share(float(np.mean([abs(check.error) for check in checks]))),
        f"{sum(check.sign_right for check in clear)}{format.NBSP}of{format.NBSP}{len(clear)}",
        _best(predicted, predicted.predicted, predicted.measured),
        _best(measured, measured.measured, measured.measured),
        "yes" if calibration.picks_best(name) else "no",
    )


def _best(check: Check, decides: float, measured: float) -> str:
    """A setting and what it measures; that of a trace where none is faster."""
    if decides <= 1:
        return "as traced"
    return f"{plain(check.label)} {format.ratio(measured)}"

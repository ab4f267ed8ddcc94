"""The runs of a session as a table against one of them, and what is said of the one shown."""

from __future__ import annotations

import dataclasses

from workbench.core.what_if.predictions import Predicted
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.measurement.equivalence import asked_otherwise
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.comparison.answer import Pieces
from workbench.viz.comparison.chart import (
    Series,
    half_width,
    labeled_ticks,
    series_of,
    shown_label,
    ticks_to,
)
from workbench.viz.comparison.receipt import Receipt, receipt
from workbench.viz.comparison.tables import blocks_table
from workbench.viz.comparison.view import Row, interval_caption, row_of, training_words
from workbench.viz.panel.settings.names import name_of
from workbench.viz.panel.settings.predicted_rate import steps_per_s
from workbench.viz.panel.settings.setting import setting_of
from workbench.viz.style import format
from workbench.viz.style.table import Table


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run of the table: its number, whether it is shown and the baseline, and its numbers."""

    number: int
    shown: bool
    baseline: bool
    row: Row


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunsView:
    """The throughput of all runs.

    Attributes:
      sentence: how the run that is shown stands to the baseline.
      rows: all runs, in the order of their numbers.
      ticks: (fraction, text) of the axis.
      caption: what the intervals are.
      receipt: whether the run that is shown trains the same.
      series: its blocks and the baseline's, in the order they ran.
      blocks: the same as a table.
      notes: of the run that is shown.
      predicts, weighs: whether a row has a prediction, and knows the memory of a step.
      calibration: predicted and measured ratios of runs, each as fractions of one axis.
    """

    sentence: Pieces
    rows: tuple[RunRow, ...]
    ticks: tuple[tuple[float, str], ...]
    caption: str
    receipt: Receipt
    series: tuple[Series, ...]
    blocks: Table | None
    notes: tuple[str, ...]
    predicts: bool
    weighs: bool
    calibration: Calibrated | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Calibrated:
    """Predicted against measured ratios: points as fractions of an axis from `first` to `last`."""

    points: tuple[tuple[float, float, str, bool], ...]
    first: str
    last: str
    words: str


def run_name(run: Run, *, inside: bool = False) -> str:
    """The name of a run: by what differs from all off; also as it stands inside a sentence."""
    return name_of(setting_of(run.optimizations), inside=inside)


def runs_view(session: Session, shown: Run, base: Run) -> RunsView:
    """The table of all runs.

    Args:
      session: its runs; at least one.
      shown: the run that is shown.
      base: the run that the others are compared with.
    """
    predicted = {run.number: _predicted_rate(session, run) for run in session.runs}
    most = [_most(run) for run in session.runs]
    ticks = ticks_to(max([*most, *(rate for rate in predicted.values() if rate)]))
    rows = tuple(_row(session, run, shown, base, ticks[-1], predicted) for run in session.runs)
    ratio = session.ratio(shown, base)
    return RunsView(
        sentence=_sentence(shown, base, ratio),
        rows=rows,
        ticks=labeled_ticks(ticks),
        caption=_caption(shown),
        receipt=receipt(shown.checks),
        series=series_of(shown.comparison, shown.comparison.ratio_of(shown.variant), ticks[-1]),
        blocks=blocks_table(
            [(shown_label(v.label), v.block_steps_per_s) for v in shown.comparison.variants]
        ),
        notes=tuple(dict.fromkeys(shown.measured.notes)),
        predicts=any(each.row.predicted_at is not None for each in rows),
        weighs=any(each.row.memory for each in rows),
        calibration=_calibrated(session, base, shown, predicted),
    )


def _row(
    session: Session,
    run: Run,
    shown: Run,
    base: Run,
    axis: float,
    predicted: dict[int, float | None],
) -> RunRow:
    is_base = run.number == base.number
    checks = run.checks
    return RunRow(
        number=run.number,
        shown=run.number == shown.number,
        baseline=is_base,
        row=row_of(
            run_name(run),
            run.measured,
            None if is_base else session.ratio(run, base),
            axis,
            training="reference" if run.is_baseline else training_words(checks),
            differs=any(not check.passed for check in checks),
            baseline=is_base,
            predicted_rate=predicted[run.number],
            predicted="",
        ),
    )


def _predicted_rate(session: Session, run: Run) -> float | None:
    """Steps/s that are predicted of a run's setting, from what its baseline measured."""
    found = session.predict(run.optimizations)
    return steps_per_s(session, found) if isinstance(found, Predicted) else None


def _most(run: Run) -> float:
    """The largest rate that is drawn of a run."""
    measured = run.measured
    known = half_width(measured.low, measured.high) is not None
    return max(measured.steps_per_s, *([measured.high] if known else [0.0]))


def result_sentence(session: Session, run: Run, base: Run) -> Pieces:
    """How a run stands to another one, as (text, strong) pieces."""
    return _sentence(run, base, session.ratio(run, base))


def _sentence(shown: Run, base: Run, ratio: Ratio | None) -> Pieces:
    name, other = run_name(shown), run_name(base, inside=True)
    measured = shown.measured
    if shown.number == base.number:
        half = half_width(measured.low, measured.high)
        return (
            (f"{name} is the baseline: ", False),
            (format.rate(measured.steps_per_s, half), True),
            (f", {format.duration(measured.step_ms_median * 1e6)} a step.", False),
        )
    if ratio is None:
        return ((f"{name} was not measured beside {other}.", False),)
    interval = f"95{format.NBSP}% {format.ratio_range(ratio.low, ratio.high)}"
    end = f" ({interval}){_training(shown)}."
    if ratio.verdict == "no clear difference":
        return (
            (f"{name} shows ", False),
            ("no clear difference", True),
            (f" to {other}{end}", False),
        )
    return (
        (f"{name} trains ", False),
        (f"{format.ratio(ratio.ratio)} as fast", True),
        (f" as {other}{end}", False),
    )


def _training(run: Run) -> str:
    checks = run.checks
    if not checks:
        return ", and whether the training is the same was not compared"
    if any(not check.passed for check in checks):
        asked = asked_otherwise(checks)
        return f", but it trains differently{f': {asked.asked_otherwise}' if asked else ''}"
    return ", and the training is the same"


def _caption(run: Run) -> str:
    steps = run.comparison.settings.get("steps_per_block", {})
    return interval_caption(run.measured, [steps[run.variant]] if run.variant in steps else [])


def _calibrated(
    session: Session, base: Run, shown: Run, predicted: dict[int, float | None]
) -> Calibrated | None:
    """Runs that were predicted and measured, on one axis; None with fewer than two."""
    pairs = []
    before = predicted[base.number]
    for run in session.runs:
        rate, ratio = predicted[run.number], session.ratio(run, base)
        if rate and before and ratio:
            pairs.append((rate / before, ratio.ratio, run))
    if len(pairs) < 2:
        return None
    low = min(1.0, *(min(a, b) for a, b, _ in pairs))
    high = max(1.0, *(max(a, b) for a, b, _ in pairs))
    span = max(high - low, 1e-9)
    errors = [abs(a / b - 1) for a, b, _ in pairs]
    points = tuple(
        (
            (a - low) / span,
            (b - low) / span,
            f"{run_name(run)}: predicted {format.ratio(a)}, measured {format.ratio(b)}",
            run.number == shown.number,
        )
        for a, b, run in pairs
    )
    predictions = session.predictions
    replay = predictions.replay if predictions else None
    words = f"Mean error {format.share(sum(errors) / len(errors))}."
    if replay:
        words += f" Replay of the unchanged trace: {format.share(abs(replay.error))} off."
    return Calibrated(points=points, first=format.ratio(low), last=format.ratio(high), words=words)

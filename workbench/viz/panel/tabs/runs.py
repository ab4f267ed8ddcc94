"""The runs of a session as a table against one of them, and what is said of the one shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.what_if.predictions import Predicted
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.measurement.equivalence import asked_otherwise
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.comparison.answer import Pieces
from workbench.viz.comparison.chart import Series, series_of, shown_label, ticks_to
from workbench.viz.comparison.environment import machine_note
from workbench.viz.comparison.receipt import Receipt, receipt
from workbench.viz.comparison.tables import blocks_table
from workbench.viz.comparison.view import interval_caption
from workbench.viz.panel.tabs.ratio_rows import RunRow, ratio_axis, run_name, run_row
from workbench.viz.style import format
from workbench.viz.style.table import Table


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunsView:
    """The throughput of all runs.

    Attributes:
      sentence: how the run that is shown stands to the baseline.
      rows: all runs, in the order of their numbers.
      groups: the same by the user's groups, those without one first.
      ticks: (fraction, text) of the axis, which is one of ratios.
      one: where the baseline is on it.
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
    groups: tuple[tuple[str, tuple[RunRow, ...]], ...]
    ticks: tuple[tuple[float, str], ...]
    one: float
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


def runs_view(session: Session, shown: Run, base: Run) -> RunsView:
    """The table of all runs.

    Args:
      session: its runs; at least one.
      shown: the run that is shown.
      base: the run that the others are compared with.
    """
    predicted = _predicted_ratios(session, base)
    axis, ticks = ratio_axis(session, base, predicted)
    rows = tuple(
        run_row(session, run, shown, base, axis, predicted[run.number]) for run in session.runs
    )
    ratio, blocks_axis = session.ratio(shown, base), _rates_axis(shown)
    return RunsView(
        sentence=_sentence(shown, base, ratio),
        rows=rows,
        groups=_groups(rows),
        ticks=ticks,
        one=1.0 / axis,
        caption=_caption(shown),
        receipt=receipt(shown.checks),
        series=series_of(shown.comparison, shown.comparison.ratio_of(shown.variant), blocks_axis),
        blocks=blocks_table(
            [(shown_label(v.label), v.block_steps_per_s) for v in shown.comparison.variants]
        ),
        notes=tuple(
            dict.fromkeys([*shown.measured.notes, *machine_note(shown.comparison.settings)])
        ),
        predicts=any(each.row.predicted_at is not None for each in rows),
        weighs=any(each.row.memory for each in rows),
        calibration=_calibrated(session, base, shown, predicted),
    )


def _predicted_ratios(session: Session, base: Run) -> dict[int, float | None]:
    """What is predicted of each run's setting against that of the baseline."""
    found = {run.number: session.predict(run.optimizations) for run in session.runs}
    # Ratios of samples/s, as those that are measured.
    ratios = {
        number: each.ratio if isinstance(each, Predicted) else None
        for number, each in found.items()
    }
    before = ratios[base.number]
    return {
        number: ratio / before if ratio and before else None for number, ratio in ratios.items()
    }


def _groups(rows: Sequence[RunRow]) -> tuple[tuple[str, tuple[RunRow, ...]], ...]:
    """Rows by group, those without one first; groups in the order of their first run."""
    names = dict.fromkeys(["", *(each.group for each in rows)])
    groups = [(name, tuple(each for each in rows if each.group == name)) for name in names]
    return tuple((name, held) for name, held in groups if held)


def _rates_axis(shown: Run) -> float:
    """The end of the axis of the blocks, in steps/s."""
    rates = [rate for each in shown.comparison.variants for rate in each.block_steps_per_s]
    return ticks_to(max([*rates, *(each.steps_per_s for each in shown.comparison.variants)]))[-1]


def result_sentence(session: Session, run: Run, base: Run) -> Pieces:
    """How a run stands to another one, as (text, strong) pieces."""
    return _sentence(run, base, session.ratio(run, base))


def _sentence(shown: Run, base: Run, ratio: Ratio | None) -> Pieces:
    name, other = run_name(shown), run_name(base, inside=True)
    measured = shown.measured
    if shown.number == base.number:
        rate = format.rate_between(measured.steps_per_s, measured.low, measured.high)
        return (
            (f"{name} is the baseline: ", False),
            (rate, True),
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
    for run in session.runs:
        foreseen, ratio = predicted[run.number], session.ratio(run, base)
        if foreseen and ratio:
            pairs.append((foreseen, ratio.ratio, run))
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

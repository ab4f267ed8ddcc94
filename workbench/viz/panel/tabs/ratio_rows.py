"""Rows of the table of runs: each drawn as its ratio to the baseline that ran beside it.

Rates of runs that did not run beside each other say nothing of one another: the machine may have
been faster then. So bars, intervals and predictions share one axis, of ratios.
"""

from __future__ import annotations

import dataclasses
import math

from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.comparison.chart import ticks_to
from workbench.viz.comparison.view import Row, rate_words, row_of, training_words
from workbench.viz.panel.settings.names import name_of
from workbench.viz.panel.settings.setting import setting_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run of the table.

    Attributes:
      number: of the run.
      shown, baseline: whether it is shown, and the run that the others are compared with.
      row: its numbers.
      setting: the name of its setting, where the user calls the run otherwise; else "".
      note, group: what the user wrote about it, and what it stands together with others by.
      beside: what the baseline gave that ran beside it, in words; "" where the row of the baseline
        says the same.
      sort: by column, what the rows are sorted by; None where it is not known.
    """

    number: int
    shown: bool
    baseline: bool
    row: Row
    setting: str
    note: str
    group: str
    beside: str
    sort: dict[str, float | str | None]


def run_name(run: Run, *, inside: bool = False) -> str:
    """The name of a run: the user's, or what differs from all off, as it stands in a sentence."""
    return run.name or setting_name(run, inside=inside)


def setting_name(run: Run, *, inside: bool = False) -> str:
    """The name of a run's setting; also as it stands inside a sentence."""
    return name_of(setting_of(run.optimizations), inside=inside)


def ratio_axis(
    session: Session, base: Run, predicted: dict[int, float | None]
) -> tuple[float, tuple[tuple[float, str], ...]]:
    """The axis of ratios, from 0 to the first round value at or above all.

    Args:
      session: its runs.
      base: what the ratios are to.
      predicted: the predicted ratio of runs by number.

    Returns:
      Its end, and (fraction, words) of its ticks.
    """
    most = [1.0, *(value for value in predicted.values() if value)]
    for run in session.runs:
        ratio = session.ratio(run, base)
        if ratio is not None:
            most.append(ratio.high if math.isfinite(ratio.high) else ratio.ratio)
    values = ticks_to(max(most))
    ticks = tuple((value / values[-1], f"{value:g}×" if value else "0") for value in values)
    return values[-1], ticks


def run_row(
    session: Session,
    run: Run,
    shown: Run,
    base: Run,
    axis: float,
    predicted: float | None,
) -> RunRow:
    """One run of the table.

    Args:
      session: its runs.
      run: of the row.
      shown, base: the run that is shown, and the one that the others are compared with.
      axis: the end of the axis, a ratio.
      predicted: its predicted ratio; None where nothing is.
    """
    is_base, checks = run.number == base.number, run.checks
    ratio = None if is_base else session.ratio(run, base)
    row = row_of(
        run_name(run),
        run.measured,
        ratio,
        1.0,
        training="reference" if run.is_baseline else training_words(checks),
        differs=any(not check.passed for check in checks),
        baseline=is_base,
        predicted_rate=None,
        predicted="",
    )
    low, at, high = _drawn(ratio)
    return RunRow(
        number=run.number,
        shown=run.number == shown.number,
        baseline=is_base,
        row=dataclasses.replace(
            row,
            bar=at / axis,
            low=low / axis,
            high=high / axis,
            predicted_at=None if predicted is None else predicted / axis,
        ),
        setting=setting_name(run) if run.name else "",
        note=run.note,
        group=run.group,
        beside=_beside(run, base),
        sort={
            "run": run.number,
            "name": run_name(run).lower(),
            "rate": run.measured.steps_per_s,
            "ratio": 1.0 if is_base else ratio.ratio if ratio else None,
            "verdict": row.verdict,
            "memory": run.measured.peak_tensor_bytes,
            "training": row.training,
        },
    )


def _drawn(ratio: Ratio | None) -> tuple[float, float, float]:
    """Low, mean and high of a ratio; of the baseline, which is the measure, a point."""
    if ratio is None:
        return 1.0, 1.0, 1.0
    if not math.isfinite(ratio.high):
        return ratio.ratio, ratio.ratio, ratio.ratio
    return ratio.low, ratio.ratio, ratio.high


def _beside(run: Run, base: Run) -> str:
    """What the baseline gave beside a run, where the baseline's own row says another rate."""
    if run.is_baseline or not base.is_baseline:
        return ""
    beside, _ = rate_words(run.comparison.variants[0])
    row, _ = rate_words(base.measured)
    return "" if beside == row else f"baseline then: {beside}"

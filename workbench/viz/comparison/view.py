"""Comparison view: what an experiment found, as finished words, fractions and tables.

Every number an outlet shows becomes a string here; charts come as fractions of their axis.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from workbench.core.analysis.mean_interval import mean_interval
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.metrics import step_metrics
from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.limit import known_limit
from workbench.experiments.comparison.measured import MeasuredVariant, Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.equivalence import Equivalence, asked_otherwise
from workbench.viz.comparison.answer import Pieces, answer, best_ratio
from workbench.viz.comparison.chart import (
    Series,
    labeled_ticks,
    predicted_rate,
    series_of,
    shown_label,
    tick_values,
)
from workbench.viz.comparison.environment import (
    environment_pairs,
    machine_note,
    prefetch_note,
    setting_pairs,
)
from workbench.viz.comparison.receipt import Receipt, receipt
from workbench.viz.comparison.tables import blocks_table, family_table, measures_table
from workbench.viz.limit.sentence import limit_sentence
from workbench.viz.style import format
from workbench.viz.style.table import Table

# Half of an interval below this share of the mean is not said.
_SHOWN_SHARE = 0.005
VERDICTS = {
    "faster": "▲ faster",
    "slower": "▼ slower",
    "no clear difference": "= no clear difference",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One variant in the table.

    `bar`, `low`, `high` and `predicted_at` are fractions of the axis; the last is None, and
    `predicted` empty, where no plan has predicted anything. `memory` is what tensors take at the
    peak of a step, empty where no trace knows.
    """

    label: str
    rate: str
    half: str
    step_time: str
    ratio: str
    interval: str
    verdict: str
    clear: bool
    harm: bool
    training: str
    differs: bool
    bar: float
    low: float
    high: float
    predicted: str = ""
    predicted_at: float | None = None
    memory: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limit:
    """One bound; `at` is its fraction of the axis."""

    name: str
    rate: str
    detail: str
    at: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompareView:
    """A comparison, ready for every outlet.

    Attributes:
      program: its name.
      sentence: the answer, as (text, strong) pieces.
      next_step: what to do with it.
      rows: the variants, the baseline first.
      ticks: (fraction, text) of the throughput axis, which starts at 0.
      caption: what the intervals are.
      limits: rates to hold the variants against.
      receipt: whether the variants train the same.
      series: blocks in the order they ran, at most the baseline and the best variant.
      blocks, metrics, families: tables; None where there is nothing to show.
      notes: what a reader must know, a sentence each.
      settings, environment: (name, value) pairs.
      command: what reproduces it.
      predicts: whether a plan has predicted a row.
      weighs: whether a trace knows how much memory a row takes.
      traces: (label, trace) of the variants that have one.
      plans: (label, plan) of the variants that have one.
    """

    program: str
    sentence: Pieces
    next_step: str
    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    caption: str
    limits: tuple[Limit, ...]
    receipt: Receipt
    series: tuple[Series, ...]
    blocks: Table | None
    metrics: Table | None
    families: Table | None
    notes: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    command: str
    predicts: bool
    weighs: bool
    traces: tuple[tuple[str, Trace], ...] = dataclasses.field(repr=False)
    plans: tuple[tuple[str, StagePlan], ...] = dataclasses.field(repr=False)


def compare_view(comparison: Comparison) -> CompareView:
    """The view of a comparison."""
    shown, first = best_ratio(comparison), answer(comparison)
    ticks = tick_values(comparison)
    axis = ticks[-1]
    traces = tuple((shown_label(v.label), v.trace) for v in comparison.variants if v.trace)
    metrics = [(label, step_metrics(trace)) for label, trace in traces]
    notes = [note for variant in comparison.variants for note in variant.notes]
    notes += _limits(comparison)
    rows = tuple(_row(comparison, variant, axis) for variant in comparison.variants)
    return CompareView(
        program=comparison.program,
        sentence=first.sentence,
        next_step=first.next_step,
        rows=rows,
        ticks=labeled_ticks(ticks),
        caption=_caption(comparison),
        limits=tuple(
            Limit(
                name=bound.name,
                rate=format.rate(bound.steps_per_s),
                detail=bound.detail,
                at=bound.steps_per_s / axis,
            )
            for bound in comparison.bounds
        ),
        receipt=receipt(comparison.equivalence),
        series=series_of(comparison, shown, axis),
        blocks=blocks_table(
            [(shown_label(v.label), v.block_steps_per_s) for v in comparison.variants]
        ),
        metrics=measures_table(metrics) if metrics else None,
        families=family_table(metrics),
        notes=tuple(
            dict.fromkeys(
                [
                    *notes,
                    *machine_note(comparison.settings),
                    *prefetch_note(comparison.environment),
                ]
            )
        ),
        settings=setting_pairs(comparison.settings),
        environment=environment_pairs(comparison.environment),
        command=comparison.command,
        predicts=any(row.predicted for row in rows),
        weighs=any(row.memory for row in rows),
        traces=traces,
        plans=tuple((shown_label(v.label), v.plan) for v in comparison.variants if v.plan),
    )


def _row(comparison: Comparison, variant: MeasuredVariant, axis: float) -> Row:
    ratio, checks = comparison.ratio_of(variant.label), comparison.checks_of(variant.label)
    is_baseline = variant.label == comparison.baseline
    predicted = predicted_rate(comparison, ratio)
    return row_of(
        shown_label(variant.label),
        variant,
        ratio,
        axis,
        training="reference" if is_baseline else training_words(checks),
        differs=any(not check.passed for check in checks),
        baseline=is_baseline,
        predicted_rate=predicted,
        predicted="" if predicted is None or ratio is None else format.ratio(ratio.predicted),
    )


def row_of(
    label: str,
    variant: MeasuredVariant,
    ratio: Ratio | None,
    axis: float,
    *,
    training: str,
    differs: bool,
    baseline: bool,
    predicted_rate: float | None,
    predicted: str,
) -> Row:
    """One variant in the table.

    Args:
      label: as it is shown.
      variant: what was measured.
      ratio: to the baseline of the table; None where it is the baseline, or not known.
      axis: the end of the throughput axis, in steps/s.
      training, differs: whether it trains as the baseline does.
      baseline: whether it is the baseline.
      predicted_rate, predicted: steps/s that were predicted, and the words; None and "" where
        nothing was.
    """
    known = math.isfinite(variant.high)
    rate, half = rate_words(variant)
    return Row(
        label=label,
        rate=rate,
        half=half,
        step_time=format.duration(variant.step_ms_median * 1e6),
        ratio="baseline" if baseline else format.ratio(ratio.ratio if ratio else None),
        interval=format.ratio_range(ratio.low, ratio.high) if ratio else "",
        verdict=VERDICTS.get(ratio.verdict, ratio.verdict) if ratio else "",
        clear=bool(ratio and ratio.verdict in ("faster", "slower")),
        harm=bool(ratio and ratio.verdict == "slower"),
        training=training,
        differs=differs,
        bar=variant.steps_per_s / axis,
        low=(variant.low if known else variant.steps_per_s) / axis,
        high=(variant.high if known else variant.steps_per_s) / axis,
        memory=_peak(variant),
        predicted=predicted,
        predicted_at=None if predicted_rate is None else predicted_rate / axis,
    )


def rate_words(variant: MeasuredVariant) -> tuple[str, str]:
    """Steps/s of a variant and its interval: "103.8" and "± 1.0"; "" where none is known."""
    return (
        format.rate(variant.steps_per_s, unit="").rstrip(),
        format.rate_interval(variant.steps_per_s, variant.low, variant.high),
    )


def training_words(checks: Sequence[Equivalence]) -> str:
    """Whether a variant trains as its baseline does, in a few words."""
    if asked := asked_otherwise(checks):
        return asked.asked_otherwise
    failed = [check.kind for check in checks if not check.passed]
    if failed:
        return f"not {', not '.join(failed)}"
    return ", ".join(check.kind for check in checks) or "not checked"


def _peak(variant: MeasuredVariant) -> str:
    """Bytes of tensors at the peak of a step, mean of the traced ones; "" where not known."""
    peaks = np.array(variant.step_peak_bytes, np.float64)
    if not len(peaks):
        return ""
    mean, interval = float(peaks.mean()), mean_interval(peaks)
    words = format.size(mean)
    if interval is None or interval[1] - interval[0] < 2 * _SHOWN_SHARE * mean:
        # What three digits cannot show is left out.
        return words
    return f"{words} {format.interval(mean, *interval, format.size)}"


def _caption(comparison: Comparison) -> str:
    steps = comparison.settings.get("steps_per_block", {})
    kept = [steps[v.label] for v in comparison.variants if v.label in steps]
    return interval_caption(comparison.variants[0], kept)


def interval_caption(variant: MeasuredVariant, steps: Sequence[int]) -> str:
    """What the intervals are: of how many blocks, and of how many steps each, where that is known.

    Args:
      variant: one of those that were measured side by side.
      steps: of a block of each variant that is spoken of.
    """
    low, high = (min(steps), max(steps)) if steps else (0, 0)
    length = f" of {low} steps" if low == high else f" of {low} to {high} steps"
    blocks = f"{len(variant.block_steps_per_s)} paired blocks"
    return f"95{format.NBSP}% interval of {blocks}{length if steps else ''}"


def _limits(comparison: Comparison) -> list[str]:
    """Of each variant whose limit is known here, the sentence that says it."""
    traced = ((shown_label(v.label), v.trace) for v in comparison.variants if v.trace)
    limits = ((label, known_limit(trace, comparison)) for label, trace in traced)
    return [f"{label}: {''.join(limit_sentence(limit))}" for label, limit in limits if limit]

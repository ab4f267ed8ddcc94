"""Requests a second of every setting, as bars beside the baseline's."""

from __future__ import annotations

import dataclasses

from workbench.experiments.serving.points import Load
from workbench.experiments.serving.results import (
    Receipt,
    ServedVariant,
    ServingComparison,
    ServingRatio,
)
from workbench.viz.comparison.chart import labeled_ticks, shown_label, ticks_to
from workbench.viz.comparison.view import VERDICTS
from workbench.viz.serving.axes import BEYOND, Ticks
from workbench.viz.serving.load_chart import Estimate, rate_parts
from workbench.viz.serving.loads import (
    estimate,
    known,
    row_counts,
    rows_name,
    telling_load,
    with_load,
)
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain


@dataclasses.dataclass(frozen=True, kw_only=True)
class BarRow:
    """One setting under one load.

    `bar`, `low` and `high` are fractions of the axis; `predicted_at` is None, since nothing
    predicts how fast a model is served.
    """

    label: str
    ratio: str
    interval: str
    verdict: str
    clear: bool
    harm: bool
    rate: str
    half: str
    p50: str
    p99: str
    p99_ratio: str
    p99_range: str
    answers: str
    differs: bool
    bar: float
    low: float
    high: float
    predicted_at: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class BarGroup:
    """The settings under one load; `heading` says which."""

    heading: str
    rows: tuple[BarRow, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Throughput:
    """Requests a second of every setting.

    Attributes:
      groups: one for each number of rows, under the load that is told.
      ticks: (fraction, words) of the axis of requests a second, which starts at 0.
      caption: what the intervals are.
    """

    groups: tuple[BarGroup, ...]
    ticks: Ticks
    caption: str


def throughput(comparison: ServingComparison) -> Throughput:
    """The bars of a comparison."""
    shown = [(rows, telling_load(comparison, rows)) for rows in row_counts(comparison)]
    ticks = ticks_to(_most(comparison, shown))
    groups = tuple(
        BarGroup(
            heading=", ".join(filter(None, [_capital(with_load(load)), rows_name(rows)])),
            rows=tuple(_row(comparison, v, load, rows, ticks[-1]) for v in comparison.variants),
        )
        for rows, load in shown
    )
    blocks = f"{comparison.rounds} paired blocks"
    return Throughput(
        groups=groups,
        ticks=labeled_ticks(ticks),
        caption=f"95{format.NBSP}% interval of {blocks}",
    )


def ratio_words(ratio: ServingRatio | None) -> tuple[str, str]:
    """A ratio and its interval as words; "" where it is not known."""
    if ratio is None:
        return "", ""
    low, high = ratio.interval.low, ratio.interval.high
    return format.ratio(ratio.interval.value), (
        format.ratio_range(low, high) if known(ratio.interval) else ""
    )


def receipt_words(receipt: Receipt) -> str:
    """What a receipt says, in a few words of a table."""
    if not receipt.requests:
        return "not compared, as no request was answered"
    if receipt.bit_equal:
        return "the same, bit by bit"
    if receipt.largest_difference is None:
        return f"others in {plain(receipt.output)}"
    words = "the same but for rounding" if receipt.passed else "others"
    return f"{words}: {receipt.largest_difference:.1e} in {plain(receipt.output)}"


def _row(
    comparison: ServingComparison, variant: ServedVariant, load: Load, rows: int, axis: float
) -> BarRow:
    point = variant.point(load, rows)
    is_baseline = variant is comparison.baseline
    per_s = p99 = None
    if not is_baseline:
        per_s = comparison.per_s_ratio(variant.label, load, rows)
        p99 = comparison.latency_ratio(variant.label, load, rows)
    ratio, interval = ratio_words(per_s)
    p99_ratio, p99_range = ratio_words(p99)
    receipts = [one for one in comparison.receipts_of(variant.label) if one.rows == rows]
    rate = estimate(point.per_s) if point.per_s else Estimate(value=0.0, low=0.0, high=0.0)
    words, half = rate_parts(rate) if point.per_s else (format.UNKNOWN, "")
    return BarRow(
        label=shown_label(plain(variant.label)),
        ratio="baseline" if is_baseline else ratio or format.UNKNOWN,
        interval=interval,
        verdict=VERDICTS.get(per_s.verdict, per_s.verdict) if per_s else "",
        clear=bool(per_s and per_s.verdict in ("faster", "slower")),
        harm=bool(per_s and per_s.verdict == "slower"),
        rate=words,
        half=half,
        p50=format.duration(point.latency.p50_ns.value if point.latency else None),
        p99=format.duration(point.latency.p99_ns.value if point.latency else None),
        p99_ratio=p99_ratio,
        p99_range=p99_range,
        answers="reference" if is_baseline else _answers(receipts),
        differs=any(one.differs for one in receipts),
        bar=rate.value / axis,
        low=rate.low / axis,
        high=min(rate.high / axis, 1.0),
    )


def _answers(receipts: list[Receipt]) -> str:
    return "; ".join(dict.fromkeys(map(receipt_words, receipts))) or "not compared"


def _most(comparison: ServingComparison, shown: list[tuple[int, Load]]) -> float:
    """The end of the axis: an interval far beyond the largest rate is cut there."""
    rates = [
        estimate(point.per_s)
        for rows, load in shown
        for variant in comparison.variants
        if (point := variant.point(load, rows)).per_s
    ]
    largest = max((rate.value for rate in rates), default=1.0)
    return min(max((rate.high for rate in rates), default=1.0), BEYOND * largest)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

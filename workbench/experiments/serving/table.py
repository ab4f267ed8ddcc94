"""A measurement of a served model as lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.experiments.measurement.statistics import Interval
from workbench.number_words import UNKNOWN, counted, duration, integer

if TYPE_CHECKING:
    from workbench.experiments.serving.points import LoadPoint, RateAtLimit
    from workbench.experiments.serving.results import (
        ServedVariant,
        ServingComparison,
        ServingRatio,
    )

_HEADS = (
    "load",
    "variant",
    "requests/s",
    "ratio",
    "p50",
    "p99",
    "p99 ratio",
    "CPU: client",
    "server",
)
_WORDS = 2  # The first columns are words, the others numbers.


def serving_text(comparison: ServingComparison) -> str:
    """The loads as a table, then the rates at the limit, the receipts, and what to know."""
    lines = [f"{comparison.program}, signature {comparison.signature!r}", ""]
    lines += aligned([_HEADS, *_rows(comparison)], words=_WORDS)
    searched = _rates(comparison)
    if searched:
        heads = ("p99 within", "variant", "requests/s", "ratio")
        lines += ["", *aligned([heads, *searched], words=_WORDS)]
    lines += ["", *_notes(comparison)]
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]], words: int) -> list[str]:
    """Rows as lines of one width a column; the first `words` columns to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number < words else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _rows(comparison: ServingComparison) -> list[tuple[str, ...]]:
    rows = []
    for load, of_rows in comparison.loads:
        name = load.label + (f", {counted(of_rows, 'row')}" if of_rows else "")
        for variant in comparison.variants:
            point = variant.point(load, of_rows)
            ratios: tuple[ServingRatio | None, ServingRatio | None] = (None, None)
            if variant is not comparison.baseline:
                where = (variant.label, load, of_rows)
                ratios = (comparison.per_s_ratio(*where), comparison.latency_ratio(*where))
            rows.append((name, variant.label, *_numbers(point, ratios)))
            name = ""
    return rows


def _numbers(
    point: LoadPoint, ratios: tuple[ServingRatio | None, ServingRatio | None]
) -> tuple[str, ...]:
    latency = point.latency
    return (
        rate_words(point.per_s),
        _ratio_words(ratios[0]),
        duration(latency.p50_ns.value) if latency else UNKNOWN,
        duration(latency.p99_ns.value) if latency else UNKNOWN,
        _ratio_words(ratios[1]),
        duration(point.client_cpu_ns),
        duration(point.server_cpu_ns),
    )


def _rates(comparison: ServingComparison) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for first in comparison.baseline.rates_at_limit:
        name = duration(first.limit_ns)
        name += f", {counted(first.rows, 'row')}" if first.rows else ""
        for variant in comparison.variants:
            at_limit = variant.rate_at_limit(first.rows)
            ratio = None
            if variant is not comparison.baseline:
                ratio = comparison.rate_ratio(variant.label, first.rows)
            rows.append((name, variant.label, _at_limit_words(at_limit), _ratio_words(ratio)))
            name = ""
    return rows


def _at_limit_words(at_limit: RateAtLimit | None) -> str:
    if at_limit is None:
        return UNKNOWN
    if at_limit.per_s is None:
        return too_low_words(at_limit)
    return "at least " * at_limit.at_least + rate_words(at_limit.per_s)


def too_low_words(at_limit: RateAtLimit) -> str:
    """Of a search that found no rate in some round: "less than 260"."""
    below = at_limit.below
    return f"less than {integer(round(below))}" if below else "none that was tried"


def rate_words(interval: Interval | None) -> str:
    """A rate with half of its interval, as in "1,234 ± 56"."""
    if interval is None:
        return UNKNOWN
    half = (interval.high - interval.low) / 2
    spread = f" ± {integer(round(half))}" if half < interval.value else ""
    return f"{integer(round(interval.value))}{spread}"


def _ratio_words(ratio: ServingRatio | None) -> str:
    if ratio is None:
        return ""
    interval = ratio.interval
    return f"{interval.value:.2f} ({interval.low:.2f}–{interval.high:.2f})"


def _notes(comparison: ServingComparison) -> list[str]:
    rounds = counted(comparison.rounds, "round")
    lines = [
        f"{rounds} in turn; 95 % intervals. CPU is for one request.",
        comparison.requests_from,
    ]
    for receipt in comparison.receipts:
        rows = f" of {counted(receipt.rows, 'row')}" if receipt.rows else ""
        lines.append(
            f"{receipt.label}: on {counted(receipt.requests, 'request')}{rows} its outputs are "
            f"{receipt.words}."
        )
    for variant in comparison.variants:
        lines += _notes_of(variant)
    return lines


def _notes_of(variant: ServedVariant) -> list[str]:
    lines = list(variant.notes)
    for point in variant.points:
        where = f"{variant.label}, {point.load.label}"
        if point.failed:
            lines.append(
                f"{where}: {counted(point.failed, 'request')} of {integer(point.requests)} failed, "
                f"first: {point.first_error}"
            )
        if point.client_is_limit:
            lines.append(f"{where}: the client is the limit; the server can answer more.")
    for at_limit in variant.rates_at_limit:
        if at_limit.client_is_limit:
            lines.append(
                f"{variant.label}: the client could not send a higher rate than that at the limit."
            )
    return lines

"""Every number of a served model as tables: all loads, the rates at the limit, the settings."""

from __future__ import annotations

from workbench.experiments.serving.points import LoadPoint, RateAtLimit
from workbench.experiments.serving.results import ServedVariant, ServingComparison
from workbench.experiments.serving.table import too_low_words
from workbench.number_words import counted
from workbench.viz.comparison.chart import shown_label
from workbench.viz.serving.load_chart import range_words, rate_parts
from workbench.viz.serving.loads import estimate, load_name, row_counts
from workbench.viz.serving.throughput import ratio_words
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain
from workbench.viz.style.table import Table

_HEADS = (
    "Load", "Setting", "Requests/s", "p50", "p90", "p99", "p99, 95\u00a0%", "p99.9", "CPU, server",
    "CPU, client", "Cores at work", "Failed",
)  # fmt: skip


def points_table(comparison: ServingComparison) -> Table:
    """Every load of every setting; the CPU is for one request."""
    several = len(row_counts(comparison)) > 1
    rows = []
    for load, count in comparison.loads:
        name = load_name(load) + (f", {counted(count, 'row')}" if several and count else "")
        rows += [(name, *_numbers(v, v.point(load, count))) for v in comparison.variants]
    heads = ("Load, rows of a request", *_HEADS[1:]) if several else _HEADS
    return Table("Every load of every setting", heads, tuple(rows), words=frozenset({1}))


def limit_table(comparison: ServingComparison) -> Table | None:
    """The highest rate within the limit of the p99; None where that was not searched."""
    rows = []
    for first in comparison.baseline.rates_at_limit:
        for variant in comparison.variants:
            at_limit = variant.rate_at_limit(first.rows)
            if at_limit is not None:
                ratio = None
                if variant is not comparison.baseline:
                    ratio = comparison.rate_ratio(variant.label, first.rows)
                words = ("baseline", "") if variant is comparison.baseline else ratio_words(ratio)
                limit = format.duration(first.limit_ns)
                rate = _rate(at_limit)
                rows.append((_setting(variant), limit, _rows(first.rows), rate, *words))
    if not rows:
        return None
    heads = ("Setting", "p99 within", "Rows", "Requests/s", "Ratio", "95\u00a0%")
    return Table("The highest rate of arrivals within the limit", heads, tuple(rows))


def settings_table(comparison: ServingComparison) -> Table:
    """What each setting serves with, and how much memory that takes."""
    rows = tuple(
        (
            _setting(variant),
            format.integer(variant.sessions),
            format.integer(variant.steps_at_once) if variant.steps_at_once else "any",
            format.integer(variant.fused_ops),
            format.size(variant.memory_bytes or None),
        )
        for variant in comparison.variants
    )
    heads = ("Setting", "Sessions", "Steps at one time", "Fused parts", "Memory")
    return Table("What serves", heads, rows)


def _numbers(variant: ServedVariant, point: LoadPoint) -> tuple[str, ...]:
    latency = point.latency
    times = [format.UNKNOWN] * 5
    if latency is not None:
        p50, p90, p99, p999 = (
            format.duration(part.value)
            for part in (latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.p999_ns)
        )
        times = [p50, p90, p99, range_words(estimate(latency.p99_ns)) or format.UNKNOWN, p999]
    note = " (the client is the limit)" if point.client_is_limit else ""
    return (
        f"{_setting(variant)}{note}",
        _per_s(point),
        *times,
        format.duration(point.server_cpu_ns if point.answered else None),
        format.duration(point.client_cpu_ns if point.answered else None),
        f"{point.cores:.1f}",
        format.integer(point.failed),
    )


def _per_s(point: LoadPoint) -> str:
    if point.per_s is None:
        return format.UNKNOWN
    return " ".join(rate_parts(estimate(point.per_s))).rstrip()


def _rate(at_limit: RateAtLimit) -> str:
    if at_limit.per_s is None:
        return too_low_words(at_limit)
    words = " ".join(rate_parts(estimate(at_limit.per_s))).rstrip()
    return f"{words}, at least" if at_limit.at_least else words


def _setting(variant: ServedVariant) -> str:
    return shown_label(plain(variant.label))


def _rows(count: int) -> str:
    return format.integer(count) if count else "mixed"

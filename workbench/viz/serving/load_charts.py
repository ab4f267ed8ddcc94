"""The pictures of latency against load: of clients that wait, and of arrivals at a rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.experiments.serving.points import LoadPoint, RateAtLimit
from workbench.experiments.serving.results import ServedVariant, ServingComparison
from workbench.viz.comparison.chart import shown_label
from workbench.viz.serving.load_chart import Curve, LoadChart, Plotted, load_chart
from workbench.viz.serving.loads import estimate, load_name, row_counts, rows_name, sorted_loads
from workbench.viz.style.plain_text import plain


def load_charts(comparison: ServingComparison, best: str | None) -> tuple[LoadChart, ...]:
    """A picture for each number of rows and each kind of load that was measured.

    Args:
      comparison: what was measured.
      best: label of the setting whose loads stand beside its marks, as the baseline's do.
    """
    named = [_shown(comparison.baseline), *([_shown(comparison.variant(best))] if best else [])]
    charts = []
    for rows in row_counts(comparison):
        size = f", {rows_name(rows)}" if rows else ""
        clients = [_clients(variant, rows) for variant in comparison.variants]
        if any(curve.points for curve in clients):
            charts.append(
                load_chart(
                    clients,
                    heading=f"Clients that wait for their answers{size}",
                    x_name="answered requests/s",
                    named=named,
                )
            )
        arrivals = [_arrivals(variant, rows) for variant in comparison.variants]
        if any(curve.points or curve.at_limit or curve.tried for curve in arrivals):
            charts.append(
                load_chart(
                    arrivals,
                    heading=f"Arrivals at a rate, an open loop{size}",
                    x_name="requests/s that arrive",
                    named=named,
                    limit_ns=_limit(comparison, rows),
                )
            )
    return tuple(charts)


def _clients(variant: ServedVariant, rows: int) -> Curve:
    """The loads of clients that wait for each answer."""
    points = [p for p in variant.points if p.rows == rows and p.load.rate is None]
    by_load = {point.load: point for point in points}
    return Curve(
        label=_shown(variant),
        points=_plotted([by_load[load] for load in sorted_loads(by_load)]),
    )


def _arrivals(variant: ServedVariant, rows: int) -> Curve:
    """The loads of an open loop, and the rate at the limit."""
    points = [p for p in variant.points if p.rows == rows and p.load.rate is not None]
    by_load = {point.load: point for point in points}
    at_limit = variant.rate_at_limit(rows)
    per_s = at_limit.per_s if at_limit else None
    return Curve(
        label=_shown(variant),
        points=_plotted([by_load[load] for load in sorted_loads(by_load)]),
        at_limit=estimate(per_s) if per_s else None,
        tried=_tried(at_limit) if at_limit else (),
    )


def _plotted(points: Sequence[LoadPoint]) -> tuple[Plotted, ...]:
    """Points that have answers; those of an open loop stand at the rate of their arrivals."""
    plotted = []
    for point in points:
        if point.per_s is None or point.latency is None:
            continue
        rate = estimate(point.per_s)
        short = str(point.load.clients)
        name = load_name(point.load)
        if point.load.rate is not None:
            name, short = f"{name} that arrive", ""
        plotted.append(
            Plotted(
                name=name,
                short=short,
                rate=rate,
                at=point.load.rate,
                p50_ns=estimate(point.latency.p50_ns),
                p99_ns=estimate(point.latency.p99_ns),
            )
        )
    return tuple(plotted)


def _tried(at_limit: RateAtLimit) -> tuple[tuple[float, float], ...]:
    """The rates that were tried; one without an answer stands at the top."""
    return tuple(
        (probe.rate, math.inf if probe.p99_ns is None else probe.p99_ns)
        for probe in at_limit.probes
    )


def _limit(comparison: ServingComparison, rows: int) -> float | None:
    at_limit = comparison.baseline.rate_at_limit(rows)
    return at_limit.limit_ns if at_limit else None


def _shown(variant: ServedVariant) -> str:
    return shown_label(plain(variant.label))

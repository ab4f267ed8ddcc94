"""Latency against load: a curve of each setting, as fractions of both axes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from workbench.viz.predictions.scatter import SHAPES
from workbench.viz.serving.axes import (
    BEYOND,
    LatencyAxis,
    LinearAxis,
    Ticks,
    latency_axis,
    rate_axis,
)
from workbench.viz.style import format

# A baseline's mark is hollow; the others have the shapes in their order.
BASELINE_SHAPE = "box"
# An interval of latencies is cut beyond this many times the longest, and below as a part.
_BEYOND_ENDS = 2.0
# Letters of a setting above a picture.
_LETTERS = 52
# A rate far beyond the limit stands at the top of the picture, this many times the limit.
_HIGHEST = 10.0
_OTHER_SHAPES = tuple(shape for shape in SHAPES if shape != BASELINE_SHAPE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number and its 95 % interval, whose ends are the number itself where none is known."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plotted:
    """One measured load of one setting, before it has a place.

    Attributes:
      name: the load in words, such as "8 clients".
      short: the same beside its mark, such as "8".
      rate: requests that were answered in a second.
      at: where it stands instead: the rate at which requests arrived; None where none was set.
      p50_ns, p99_ns: latencies.
    """

    name: str
    short: str
    rate: Estimate
    p50_ns: Estimate
    p99_ns: Estimate
    at: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curve:
    """The loads of one setting, the least first, before they have a place.

    Attributes:
      label: the setting, as it is shown.
      points: its loads.
      at_limit: the rate at which its p99 passes the limit; None where that is not known.
      tried: (rate, p99 in ns) of each rate that was tried to find it.
    """

    label: str
    points: tuple[Plotted, ...]
    at_limit: Estimate | None = None
    tried: tuple[tuple[float, float], ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mark:
    """One load: where its percentiles stand, upwards, and what they are in two lines of words.

    `x_low` to `x_high` and `low` to `high` are the intervals of the rate and of the p99.
    """

    x: float
    x_low: float
    x_high: float
    p50: float
    p50_low: float
    p50_high: float
    p99: float
    p99_low: float
    p99_high: float
    short: str
    words: tuple[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """One setting: its marks from left to right.

    Attributes:
      label, short: the setting, and as much of it as a narrow page has room for.
      shape, baseline: its mark, and whether the others are compared with it.
      best: whether it is the best of the others.
      marks: its loads.
      named: whether the loads stand beside its marks.
      at_limit: where its p99 passes the limit; None where that is not known.
      at_limit_words: the same as words.
      tried: (across, upwards) of the rates that were tried to find it.
    """

    label: str
    short: str
    shape: str
    baseline: bool
    best: bool
    marks: tuple[Mark, ...]
    named: bool
    at_limit: float | None = None
    at_limit_words: str = ""
    tried: tuple[tuple[float, float], ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadChart:
    """The picture of one kind of load.

    Attributes:
      heading: what was sent, such as "Clients that wait for their answers, 1 row a request".
      news: the picture in a sentence, for those who do not see it.
      lines: the settings, the baseline first.
      x_ticks, y_ticks: (fraction, words) of the axes.
      x_name: what the horizontal axis is.
      limit: where the limit of the p99 stands; None where there is none on this picture.
      limit_words: the limit as words.
    """

    heading: str
    news: str
    lines: tuple[Line, ...]
    x_ticks: Ticks
    y_ticks: Ticks
    x_name: str
    limit: float | None = None
    limit_words: str = ""


def load_chart(
    curves: Sequence[Curve],
    *,
    heading: str,
    x_name: str,
    named: Sequence[str],
    limit_ns: float | None = None,
) -> LoadChart:
    """The picture of these curves.

    Args:
      curves: the settings, the baseline first; at least one has a point.
      heading: what was sent.
      x_name: what the horizontal axis is.
      named: labels of the settings whose loads stand beside their marks.
      limit_ns: the limit of the p99; None draws none.
    """
    points = [point for curve in curves for point in curve.points]
    limits = [curve.at_limit.high for curve in curves if curve.at_limit]
    tried = [one for curve in curves for one in curve.tried]
    highest = _HIGHEST * limit_ns if limit_ns else math.inf
    x = rate_axis([*_highest_rates(points), *limits, *(rate for rate, _ in tried)])
    times = [*_times(points), *(min(ns, highest) for _, ns in tried), limit_ns or math.nan]
    y = latency_axis(times)
    lines = tuple(
        _line(curve, number, x, y, named=curve.label in named)
        for number, curve in enumerate(curves)
    )
    return LoadChart(
        heading=heading,
        news=_news(heading, curves),
        lines=lines,
        x_ticks=x.ticks,
        y_ticks=y.ticks,
        x_name=x_name,
        limit=y.at(limit_ns) if limit_ns else None,
        limit_words=f"limit of the p99: {format.duration(limit_ns)}" if limit_ns else "",
    )


def shape_of(number: int) -> str:
    """The mark of a setting by its place; those beyond the last shape share it."""
    if number == 0:
        return BASELINE_SHAPE
    return _OTHER_SHAPES[min(number, len(_OTHER_SHAPES)) - 1]


def range_words(estimate: Estimate) -> str:
    """The interval of a latency: "11.8 ms to 12.6 ms"; "" where none is known, or none is seen."""
    low, high = format.duration(estimate.low), format.duration(estimate.high)
    return f"{low} to {high}" if low != high else ""


def rate_words(estimate: Estimate) -> str:
    """A rate with its interval, where one is known: "1 020 ± 14 requests/s"."""
    rate, interval = rate_parts(estimate)
    return f"{rate} {interval}".rstrip() + f"{format.NBSP}requests/s"


def rate_parts(estimate: Estimate) -> tuple[str, str]:
    """A rate and its interval: "1 020" and "± 14", or "282" and "(6.1–2 200)" of a wide one."""
    value, low, high = estimate.value, estimate.low, estimate.high
    interval = format.rate_interval(value, low, high) if low < high else ""
    return format.rate(value, unit="").rstrip(), interval


def _place(point: Plotted) -> Estimate:
    """Where a load stands: at the rate of its arrivals, else at that of its answers."""
    if point.at is None:
        return point.rate
    return Estimate(value=point.at, low=point.at, high=point.at)


def _highest_rates(points: Sequence[Plotted]) -> list[float]:
    """How far the axis of rates goes: an interval far beyond the largest one is cut."""
    places = [_place(point) for point in points]
    most = BEYOND * max((place.value for place in places), default=0.0)
    return [min(place.high, most) for place in places]


def _times(points: Sequence[Plotted]) -> list[float]:
    """How far the axis of latencies goes, as `_highest_rates`."""
    parts = [part for point in points for part in (point.p50_ns, point.p99_ns)]
    values = [part.value for part in parts]
    least, most = min(values, default=0.0) / _BEYOND_ENDS, max(values, default=0.0) * _BEYOND_ENDS
    return [min(max(ns, least), most) for part in parts for ns in (part.low, part.value, part.high)]


def _line(curve: Curve, number: int, x: LinearAxis, y: LatencyAxis, *, named: bool) -> Line:
    limit = curve.at_limit
    return Line(
        label=curve.label,
        shape=shape_of(number),
        baseline=number == 0,
        best=named and number > 0,
        short=_cut(curve.label),
        marks=tuple(_mark(point, x, y) for point in curve.points),
        named=named,
        at_limit=x.at(limit.value) if limit else None,
        at_limit_words=f"{rate_words(limit)} at the limit" if limit else "",
        tried=tuple((x.at(rate), y.at(ns)) for rate, ns in curve.tried),
    )


def _cut(label: str) -> str:
    return label if len(label) <= _LETTERS else f"{label[: _LETTERS - 1]}…"


def _mark(point: Plotted, x: LinearAxis, y: LatencyAxis) -> Mark:
    interval, place = range_words(point.p99_ns), _place(point)
    p50, p99 = format.duration(point.p50_ns.value), format.duration(point.p99_ns.value)
    return Mark(
        x=x.at(place.value),
        x_low=x.at(place.low),
        x_high=x.at(place.high),
        p50=y.at(point.p50_ns.value),
        p50_low=y.at(point.p50_ns.low),
        p50_high=y.at(point.p50_ns.high),
        p99=y.at(point.p99_ns.value),
        p99_low=y.at(point.p99_ns.low),
        p99_high=y.at(point.p99_ns.high),
        short=point.short,
        words=(
            f"{point.name}: {rate_words(point.rate)}",
            f"p50 {p50}, p99 {p99}" + f" ({interval})" * bool(interval),
        ),
    )


def _news(heading: str, curves: Sequence[Curve]) -> str:
    """What a reader of the picture sees first: where each curve ends."""
    ends = []
    for curve in curves:
        if curve.points:
            last = curve.points[-1]
            ends.append(
                f"{curve.label} answers {rate_words(last.rate)} with {last.name}, "
                f"p99 {format.duration(last.p99_ns.value)}"
            )
    return f"{heading}. {'; '.join(ends)}."

"""Axes of a served model's pictures: latencies in decades, rates from 0."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from workbench.viz.comparison.chart import labeled_ticks, ticks_to
from workbench.viz.style import format

Ticks = tuple[tuple[float, str], ...]

# An axis goes on for an interval to this many times the largest number, and no further.
BEYOND = 1.5
# Room beyond the smallest and the largest latency, as a factor.
_ROOM = 1.25
# Digits of a decade that have a tick; the last set has fewer, for an axis of many decades.
_DIGITS = ((1, 2, 5), (1, 3), (1,))
_MOST_TICKS = 7


@dataclasses.dataclass(frozen=True, kw_only=True)
class LatencyAxis:
    """A logarithmic axis of times.

    Attributes:
      low_ns, high_ns: its ends.
      ticks: (fraction of the axis, words), the lowest first.
    """

    low_ns: float
    high_ns: float
    ticks: Ticks = ()

    def at(self, ns: float) -> float:
        """The fraction of the axis where a time stands; one beyond an end stands at it."""
        inside = min(max(ns, self.low_ns), self.high_ns)
        return math.log(inside / self.low_ns) / math.log(self.high_ns / self.low_ns)


def latency_axis(times_ns: Iterable[float]) -> LatencyAxis:
    """The axis that holds these times; what is no time above 0 has no place on it."""
    drawn = [ns for ns in times_ns if math.isfinite(ns) and ns > 0] or [1e6]
    axis = LatencyAxis(low_ns=min(drawn) / _ROOM, high_ns=max(drawn) * _ROOM)
    first, last = math.floor(math.log10(axis.low_ns)), math.ceil(math.log10(axis.high_ns))
    for digits in _DIGITS:
        values = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        values = [ns for ns in values if axis.low_ns <= ns <= axis.high_ns]
        if len(values) <= _MOST_TICKS:
            break
    ticks = tuple((axis.at(ns), tick_words(ns)) for ns in values)
    return dataclasses.replace(axis, ticks=ticks)


def tick_words(ns: float) -> str:
    """A round time as a tick has it: "50 µs", "0.2 ms", "20 ms", "2 s"."""
    unit, scale = ("µs", 1e3) if ns < 1e5 else ("ms", 1e6) if ns < 1e9 else ("s", 1e9)
    return f"{round(ns) / scale:g}{format.NBSP}{unit}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearAxis:
    """An axis from 0.

    Attributes:
      end: its other end.
      ticks: (fraction of the axis, words).
    """

    end: float
    ticks: Ticks

    def at(self, value: float) -> float:
        """The fraction of the axis where a value stands; one beyond the end stands there."""
        return min(max(value / self.end, 0.0), 1.0)


def rate_axis(rates: Iterable[float]) -> LinearAxis:
    """The axis of requests a second that holds these rates."""
    values = ticks_to(max((rate for rate in rates if math.isfinite(rate)), default=1.0))
    return LinearAxis(end=values[-1], ticks=labeled_ticks(values))


def time_axis(length_ns: int) -> LinearAxis:
    """The axis of a stretch of time, which ends where the stretch does."""
    values = [ns for ns in ticks_to(float(length_ns)) if ns <= length_ns]
    ticks = tuple((ns / length_ns, tick_words(ns) if ns else "0") for ns in values)
    return LinearAxis(end=float(length_ns), ticks=ticks)

"""Every number that a view shows becomes a string here, or in `number_words` below it.

The browser picks among a million spans, whose strings cannot all be made ahead. `duration` and
`integer` therefore have a port in `static/shared/format.js`, same integers, same thresholds; a
test runs both over one table and over random integers and compares every string. Nothing else is
ported.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from workbench.number_words import MINUS as MINUS
from workbench.number_words import NBSP as NBSP
from workbench.number_words import THIN as THIN
from workbench.number_words import UNKNOWN as UNKNOWN
from workbench.number_words import decimal as _decimal
from workbench.number_words import duration as duration
from workbench.number_words import integer as integer
from workbench.number_words import share as share
from workbench.number_words import size as size

# Half of an interval, as a share of its value, that is said as "±".
_NARROW = 0.2


def gain(ratio: float | None) -> str:
    """A ratio as a signed gain: 1.097 is "+9.7 %", 0.65 is "−35 %"; one decimal under 10 %."""
    if ratio is None or not math.isfinite(ratio):
        return UNKNOWN
    percent = (ratio - 1) * 100
    decimals = 1 if abs(percent) < 9.95 else 0
    sign = MINUS if percent < 0 else "+"
    return f"{sign}{_decimal(abs(percent), decimals)}{NBSP}%"


def ratio(value: float | None) -> str:
    """A ratio with two decimals: "2.61×"."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{_decimal(value, 2)}×"


def ratio_range(low: float, high: float) -> str:
    """The interval of a ratio, en dash between: "2.59–2.63"."""
    return f"{_decimal(low, 2)}–{_decimal(high, 2)}"


def rate(value: float | None, unit: str = "steps/s") -> str:
    """A rate: "41.3 steps/s".

    The digits follow the value: one decimal under 1000, none from there, two under 1.
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{_decimal(value, _decimals(value))}{NBSP}{unit}"


def rate_interval(value: float, low: float, high: float) -> str:
    """The interval of a rate as it stands behind it: "± 0.4"; of a wide one the ends: "(6.1–30)".

    Returns:
      "" where the interval is not known.
    """
    decimals = _decimals(value)
    return interval(value, low, high, lambda each: _decimal(each, decimals))


def rate_between(value: float, low: float, high: float, unit: str = "steps/s") -> str:
    """A rate with its interval, if known: "41.3 ± 0.4 steps/s", "13.5 (6.1–30.2) steps/s"."""
    about = rate_interval(value, low, high)
    return f"{_decimal(value, _decimals(value))}{f' {about}' if about else ''}{NBSP}{unit}"


def interval(
    value: float, low: float, high: float, words: Callable[[float], str], plus: str = "± "
) -> str:
    """An interval as it stands behind its value.

    What is wide is said by its ends: half of it says that a time or a rate may be below 0, and it
    does not lie evenly about its value.

    Args:
      value, low, high: the mean and its 95 % interval, of what is never below 0.
      words: a number in words.
      plus: what stands before half of it.

    Returns:
      "" where the interval is not known.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    half = (high - low) / 2
    if half <= _NARROW * abs(value):
        return f"{plus}{words(half)}"
    return f"({words(max(0.0, low))}–{words(high)})"


def _decimals(value: float) -> int:
    size = abs(value)
    return 2 if size < 0.995 else 1 if size < 999.5 else 0


def million(count: int) -> str:
    """A large count in words: "4.1 million"; below a million the integer itself."""
    return integer(count) if count < 1_000_000 else f"{_decimal(count / 1e6, 1)} million"


def difference(ns: float | None) -> str:
    """A difference of durations with its sign: "+3.8 ms", "−0.12 ms", "0 ms"."""
    words = duration(ns)
    return f"+{words}" if ns is not None and ns > 0 and words != duration(0) else words

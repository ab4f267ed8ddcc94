"""Every number that a view shows becomes a string here.

Three digits at most, a no-break space before the unit, true minus, thin space for thousands.
Durations are integer nanoseconds until they are formatted, and are rounded half up in integer
arithmetic, so no float decides a digit.

The browser picks among a million spans, whose strings cannot all be made ahead. `duration` and
`integer` therefore have a port in `static/shared/format.js`, same integers, same thresholds; a
test runs both over one table and over random integers and compares every string. Nothing else is
ported.
"""

from __future__ import annotations

import math

NBSP = "\u00a0"
THIN = "\u2009"
MINUS = "\u2212"
UNKNOWN = "–"

# (below this many ns, unit, ns in a unit, decimals); a bound is where rounding reaches a 4th digit
_STEPS = (
    (100, "ns", 1, 0),
    (9_950, "µs", 1_000, 1),
    (99_500, "µs", 1_000, 0),
    (995_000, "ms", 1_000_000, 2),
    (99_950_000, "ms", 1_000_000, 1),
    (999_500_000, "ms", 1_000_000, 0),
    (99_950_000_000, "s", 1_000_000_000, 1),
)


def duration(ns: float | None) -> str:
    """A duration in nanoseconds as words: "103 ms", "9.4 ms", "73 µs", "0 ms", unknown "–"."""
    if ns is None or not math.isfinite(ns):
        return UNKNOWN
    whole = math.floor(ns + 0.5) if isinstance(ns, float) else int(ns)
    if whole == 0:
        return f"0{NBSP}ms"
    size = abs(whole)
    unit, scale, decimals = "s", 1_000_000_000, 0
    for below, name, per, digits in _STEPS:
        if size < below:
            unit, scale, decimals = name, per, digits
            break
    return f"{MINUS if whole < 0 else ''}{_fixed(size, scale, decimals)}{NBSP}{unit}"


def _fixed(value: int, scale: int, decimals: int) -> str:
    """value / scale with that many decimals, rounded half up; thin spaces between thousands."""
    power = 10**decimals
    scaled = (2 * value * power + scale) // (2 * scale)
    whole, rest = divmod(scaled, power)
    return integer(whole) + (f".{rest:0{decimals}d}" if decimals else "")


def integer(value: int) -> str:
    """An integer with thin spaces between thousands and a true minus."""
    return f"{value:,}".replace(",", THIN).replace("-", MINUS)


def _decimal(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}".replace(",", THIN).replace("-", MINUS)


def gain(ratio: float | None) -> str:
    """A ratio as a signed gain: 1.097 is "+9.7 %", 0.65 is "−35 %"; one decimal under 10 %."""
    if ratio is None or not math.isfinite(ratio):
        return UNKNOWN
    percent = (ratio - 1) * 100
    decimals = 1 if abs(percent) < 9.95 else 0
    sign = MINUS if percent < 0 else "+"
    return f"{sign}{_decimal(abs(percent), decimals)}{NBSP}%"


def share(part: float | None) -> str:
    """A share of one as percent without sign: 0.093 is "9.3 %"."""
    if part is None or not math.isfinite(part):
        return UNKNOWN
    percent = part * 100
    return f"{_decimal(percent, 1 if abs(percent) < 9.95 else 0)}{NBSP}%"


def ratio(value: float | None) -> str:
    """A ratio with two decimals: "2.61×"."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{_decimal(value, 2)}×"


def ratio_range(low: float, high: float) -> str:
    """The interval of a ratio, en dash between: "2.59–2.63"."""
    return f"{_decimal(low, 2)}–{_decimal(high, 2)}"


def rate(value: float | None, half: float | None = None, unit: str = "steps/s") -> str:
    """A rate with the half width of its interval, if known: "41.3 ± 0.4 steps/s".

    The digits follow the value: one decimal under 1000, none from there, two under 1.
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    decimals = 2 if size < 0.995 else 1 if size < 999.5 else 0
    plus = "" if half is None else f" ± {_decimal(half, decimals)}"
    return f"{_decimal(value, decimals)}{plus}{NBSP}{unit}"


def million(count: int) -> str:
    """A large count in words: "4.1 million"; below a million the integer itself."""
    return integer(count) if count < 1_000_000 else f"{_decimal(count / 1e6, 1)} million"


def difference(ns: float | None) -> str:
    """A difference of durations with its sign: "+3.8 ms", "−0.12 ms", "0 ms"."""
    words = duration(ns)
    return f"+{words}" if ns is not None and ns > 0 and words != duration(0) else words

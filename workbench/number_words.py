"""Durations, sizes, counts and shares in words: what sentences below the views need, too.

Three digits at most, a no-break space before the unit, true minus, thin space for thousands.
Durations are integer nanoseconds until they are formatted, and are rounded half up in integer
arithmetic, so no float decides a digit.
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


def decimal(value: float, decimals: int) -> str:
    """A number with so many decimals, thin spaces between thousands and a true minus."""
    return f"{value:,.{decimals}f}".replace(",", THIN).replace("-", MINUS)


def share(part: float | None) -> str:
    """A share of one as percent without sign: 0.093 is "9.3 %"."""
    if part is None or not math.isfinite(part):
        return UNKNOWN
    percent = part * 100
    return f"{decimal(percent, 1 if abs(percent) < 9.95 else 0)}{NBSP}%"


def size(count: float | None) -> str:
    """A number of bytes, decimal: "181 kB", "16 MB", "7.2 MB", "0 B", unknown "–"."""
    if count is None or not math.isfinite(count):
        return UNKNOWN
    value, units = abs(float(count)), ("B", "kB", "MB", "GB", "TB")
    place = 0
    while value >= 999.5 and place + 1 < len(units):
        value, place = value / 1000, place + 1
    decimals = 1 if place and value < 9.95 else 0
    sign = MINUS if count < 0 else ""
    return f"{sign}{decimal(value, decimals)}{NBSP}{units[place]}"


def counted(count: float, word: str) -> str:
    """A count with its word: "1 op", "26 ops"."""
    whole = round(count)
    return f"{integer(whole)} {word}{'s' * (whole != 1)}"


def steps_stale(steps: int) -> str:
    """How stale lookups are, at most: "1 step stale", "2 steps stale"; "" for none."""
    return f"{counted(steps, 'step')} stale" if steps else ""

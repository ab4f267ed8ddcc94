"""Amounts of time and memory that a user gives as text: "2min", "90s", "8GB"."""

from __future__ import annotations

import math
import re

from workbench.errors import OptionError

_MOST_S = 24 * 3600.0
_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_BYTES = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12} | {
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def seconds_of(value: float | str, name: str = "budget") -> float:
    """Seconds of a time such as 90, "90s", "1.5min" or "1h".

    Raises:
      OptionError: anything else, or a time that is not above 0 and at most a day.
    """
    seconds = _amount(value, _SECONDS)
    if not 0 < seconds <= _MOST_S:
        raise OptionError(
            f"{name} is {value!r}; expected a time such as '60s' or '2min', or seconds above 0 and "
            "at most a day"
        )
    return seconds


def require_seconds(name: str, value: object) -> None:
    """Requires a number of seconds above 0 and at most a day, as a saved file may have it.

    Raises:
      OptionError: another value; the message calls it `name`.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= _MOST_S:  # type: ignore[operator]
        raise OptionError(f"{name} is {value!r}; expected seconds above 0 and at most a day")


def bytes_of(value: float | str, name: str = "memory") -> int:
    """Bytes of a size such as "8GB" (10⁹ bytes each), "512 MiB" or 2e9.

    Raises:
      OptionError: anything else, or a size that is not above 0.
    """
    size = _amount(value, _BYTES)
    if not 1 <= size < math.inf:
        raise OptionError(
            f"{name} is {value!r}; expected a size such as '8GB' or '512MB', or bytes above 0"
        )
    return int(size)


def _amount(value: object, units: dict[str, float]) -> float:
    """A number, or a number with one of the units; NaN for what is neither."""
    if isinstance(value, bool):
        return math.nan
    if isinstance(value, int | float):
        return float(value)
    found = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(found[1]) * units.get(found[2].lower(), math.nan) if found else math.nan

"""P99Limit: what p99 may be in the search for the highest rate."""

from __future__ import annotations

import dataclasses
import re

from workbench.errors import OptionError

_TIMES = re.compile(r"(\d+(?:\.\d+)?)\s*[x×]")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s)")
_UNITS_NS = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
NONE = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class P99Limit:
    """A limit that is a time, or so many times the unloaded median.

    Attributes:
      times: of the median latency of one client; 0 where `fixed_ns` is the limit.
      fixed_ns: a time; 0 where `times` says the limit.
    """

    times: float = 0.0
    fixed_ns: float = 0.0

    @staticmethod
    def of(given: str | float | None) -> P99Limit | None:
        """The limit that a user gives; None where no rate is searched.

        Raises:
          OptionError: it is neither a time nor a number of times.
        """
        if given is None or given == NONE:
            return None
        limit = P99Limit()
        if isinstance(given, str):
            text = given.strip()
            times, time = _TIMES.fullmatch(text), _TIME.fullmatch(text)
            if times:
                limit = P99Limit(times=float(times[1]))
            elif time:
                limit = P99Limit(fixed_ns=float(time[1]) * _UNITS_NS[time[2]])
        elif isinstance(given, int | float) and not isinstance(given, bool):
            limit = P99Limit(fixed_ns=float(given) * 1e9)
        if not 0 < max(limit.times, limit.fixed_ns) < 1e15 or 0 < limit.times < 1:
            raise OptionError(
                f"p99_limit is {given!r}; expected a time such as '5ms', a number of times the "
                "unloaded median from 1 on such as '3x', or None"
            )
        return limit

    def in_ns(self, unloaded_ns: float) -> float:
        """The limit, where the median latency of one client is so long."""
        return self.fixed_ns or self.times * unloaded_ns

    @property
    def given(self) -> str:
        """What `of` makes it of again: "5ms", or "3x" of the median of one client."""
        return f"{self.fixed_ns / 1e6:.12g}ms" if self.fixed_ns else f"{self.times:.12g}x"

"""The rate at which p99 passes a limit, by rates that are tried and halve a range."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from workbench.experiments.serving.points import RateProbe

# Rates that are tried in one round, between these shares of what the clients got at most.
PROBES = 6
_LOWEST, _HIGHEST = 0.15, 1.15
# Where every rate was kept, higher ones are tried, and lower ones where none was: so many times as
# high or low, and how often.
_FURTHER, _SEARCHES = 4.0, 4
# Of each lower range.
_LOWER_PROBES = 2
# Requests that p99 needs at least, and what one probe lasts at most.
_FEWEST, _LONGEST_S = 200, 4.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probed:
    """What a rate that was tried gave.

    Attributes:
      p99_ns: of the answered requests; None where none was.
      complete: whether all that arrived were sent.
      client_is_limit: whether the clients could not keep up.
    """

    p99_ns: float | None
    complete: bool
    client_is_limit: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoundRate:
    """What one round of a search found.

    Attributes:
      rate: the highest one within the limit; 0 where none was.
      probes: all that were tried.
      client_is_limit: whether the clients could not send the lowest rate that was too high.
    """

    rate: float
    probes: tuple[RateProbe, ...]
    client_is_limit: bool


def search_rate(
    probe: Callable[[float, float], Probed],
    *,
    most_per_s: float,
    limit_ns: float,
    probe_s: float,
    round_number: int = 0,
) -> FoundRate:
    """Halves the range of rates, in ratios, until `PROBES` were tried.

    An open loop has more clients than loads that wait for answers may have had. So while every rate
    is kept, rates are tried that are four times as high, three times at most. While none is, lower
    ones are, likewise: the latencies of a server may rise long before it is busy.

    Args:
      probe: runs an open loop at a rate for some seconds.
      most_per_s: what clients that wait for answers got at most.
      limit_ns: of p99.
      probe_s: seconds of a probe, where that is enough for a p99.
      round_number: of the round, for the probes.
    """
    best, client_is_limit = 0.0, False
    probes: list[RateProbe] = []

    def halve(low: float, high: float, times: int) -> float:
        """Tries rates between two; returns the lowest one that was too high, or `high`."""
        nonlocal best, client_is_limit
        for _ in range(times):
            rate = math.sqrt(low * high)
            probed = probe(rate, _seconds(rate, probe_s))
            within = probed.p99_ns is not None and probed.p99_ns <= limit_ns
            kept = probed.complete and within
            probes.append(RateProbe(round=round_number, rate=rate, p99_ns=probed.p99_ns, kept=kept))
            if kept:
                best = low = rate
            else:
                high, client_is_limit = rate, probed.client_is_limit
        return high

    most = most_per_s
    high = halve(_LOWEST * most, _HIGHEST * most, PROBES)
    for _ in range(_SEARCHES - 1):
        if not best:
            high = halve(high / _FURTHER, high, _LOWER_PROBES)
            if best:
                high = halve(best, high, PROBES - _LOWER_PROBES)
        elif high >= _HIGHEST * most:
            most *= _FURTHER
            high = halve(max(best, _LOWEST * most), _HIGHEST * most, PROBES)
    return FoundRate(rate=best, probes=tuple(probes), client_is_limit=client_is_limit)


def expected_s(most_per_s: float, probe_s: float) -> float:
    """Seconds of a search, about; arguments as of `search_rate`."""
    return PROBES * _seconds(math.sqrt(_LOWEST * _HIGHEST) * most_per_s, probe_s)


def _seconds(rate: float, probe_s: float) -> float:
    """How long a rate is tried."""
    return min(_LONGEST_S, max(probe_s, _FEWEST / rate))

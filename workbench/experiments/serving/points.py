"""What one load gave: requests a second, latencies and CPU, from blocks that took turns.

Times are int nanoseconds, rates are requests a second. A latency counts from the moment at which
a request was due, so that a client that comes late hides nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Literal

from workbench.experiments.measurement.statistics import Interval, mean_interval

LoadKind = Literal["single stream", "clients", "open loop"]
# The percentiles that are kept of each block.
PERCENTILES = (50.0, 90.0, 99.0, 99.9)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Load:
    """How requests arrive, as in MLPerf's load generator.

    Attributes:
      kind: "single stream" is one client that waits for each answer. "clients" are several that do.
        In an "open loop" requests arrive at a rate, at moments drawn beforehand, and wait for no
        answer.
      clients: threads that send. In an open loop it is the most requests that run at one time;
        others wait, and their latency counts that.
      rate: requests a second that arrive in an open loop; None without one.
    """

    kind: LoadKind
    clients: int = 1
    rate: float | None = None

    @property
    def label(self) -> str:
        """Its name in tables: "1 client", "8 clients", "900 requests/s"."""
        if self.rate is not None:
            return f"{self.rate:,.0f} requests/s"
        return "1 client" if self.clients == 1 else f"{self.clients} clients"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadBlock:
    """The requests of one block of one round.

    Attributes:
      answered, failed: how many requests got an answer, and how many an error.
      seconds: how long the block took.
      percentiles_ns: latencies of the answered requests at `PERCENTILES`; empty where none was.
      client_cpu_s: CPU that the clients took outside of the server's calls.
      server_cpu_s: all other CPU of the process.
    """

    answered: int
    failed: int
    seconds: float
    percentiles_ns: tuple[float, ...]
    client_cpu_s: float
    server_cpu_s: float

    @property
    def per_s(self) -> float:
        """Answered requests a second."""
        return self.answered / self.seconds if self.seconds > 0 else 0.0

    @property
    def cpu_s(self) -> float:
        """CPU of clients and server together."""
        return self.client_cpu_s + self.server_cpu_s


@dataclasses.dataclass(frozen=True, kw_only=True)
class Latency:
    """Percentiles of latencies, each with its 95 % interval over the rounds.

    Attributes:
      p50_ns, p90_ns, p99_ns, p999_ns: geometric means over the blocks.
    """

    p50_ns: Interval
    p90_ns: Interval
    p99_ns: Interval
    p999_ns: Interval


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestSpan:
    """One request on a timeline; times are from the begin of its block.

    Attributes:
      client: number of the thread that sent it.
      arrival_ns: when it was due: in an open loop as drawn, else when its client was free.
      start_ns: when its step began; before that it waited for a client or for its turn.
      end_ns: when its answer was there.
      failed: whether that was an error.
    """

    client: int
    arrival_ns: int
    start_ns: int
    end_ns: int
    failed: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadPoint:
    """One variant under one load.

    Attributes:
      load: how requests arrived.
      rows: of each request; 0 where requests have as many as they have.
      blocks: one for each round, in order.
      first_error: what the first failed request said; "" where none failed.
      client_is_limit: whether the clients could not send faster, so that the server can do more.
      spans: some requests in a row, of the last block.
    """

    load: Load
    rows: int
    blocks: tuple[LoadBlock, ...]
    first_error: str = ""
    client_is_limit: bool = False
    spans: tuple[RequestSpan, ...] = ()

    @property
    def requests(self) -> int:
        """How many were sent in all rounds."""
        return self.answered + self.failed

    @property
    def answered(self) -> int:
        """How many got an answer."""
        return sum(block.answered for block in self.blocks)

    @property
    def failed(self) -> int:
        """How many got an error."""
        return sum(block.failed for block in self.blocks)

    @functools.cached_property
    def per_s(self) -> Interval | None:
        """Answered requests a second; None where a block has none."""
        return positive_interval([block.per_s for block in self.blocks])

    @functools.cached_property
    def latency(self) -> Latency | None:
        """Percentiles of the latencies; None where a block has no answer."""
        if not self.blocks or not all(block.percentiles_ns for block in self.blocks):
            return None
        rows = zip(*(block.percentiles_ns for block in self.blocks), strict=True)
        p50, p90, p99, p999 = (mean_interval(row) for row in rows)
        return Latency(p50_ns=p50, p90_ns=p90, p99_ns=p99, p999_ns=p999)

    @property
    def client_cpu_ns(self) -> float:
        """CPU of the clients for one answered request, outside of the server's calls."""
        return self._cpu_ns(lambda block: block.client_cpu_s)

    @property
    def server_cpu_ns(self) -> float:
        """CPU of the server for one answered request."""
        return self._cpu_ns(lambda block: block.server_cpu_s)

    @property
    def cores(self) -> float:
        """How many cores were at work, on average, clients and server together."""
        seconds = sum(block.seconds for block in self.blocks)
        return sum(block.cpu_s for block in self.blocks) / seconds if seconds > 0 else 0.0

    def _cpu_ns(self, seconds_of: Callable[[LoadBlock], float]) -> float:
        return 1e9 * sum(map(seconds_of, self.blocks)) / max(1, self.answered)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RateProbe:
    """One rate that was tried in the search for the rate at the limit.

    Attributes:
      round: number of its round, from 0.
      rate: requests a second that arrived.
      p99_ns: of their latencies; None where none was answered.
      kept: whether that is within the limit, and all requests were sent.
    """

    round: int
    rate: float
    p99_ns: float | None
    kept: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class RateAtLimit:
    """The highest rate of an open loop at which p99 stays within a limit.

    Attributes:
      rows: of each request.
      limit_ns: of p99.
      rates: what each round found, in order; 0 where the lowest rate that was tried is too high.
      probes: all rates that were tried.
      client_is_limit: whether the clients could not send a higher rate that was tried.
    """

    rows: int
    limit_ns: float
    rates: tuple[float, ...]
    probes: tuple[RateProbe, ...] = ()
    client_is_limit: bool = False

    @functools.cached_property
    def per_s(self) -> Interval | None:
        """The rate, over the rounds; None where a round found none."""
        return positive_interval(self.rates)

    @property
    def below(self) -> float | None:
        """A rate that is too high, where a round found none within the limit; else None."""
        lowest = [
            min((probe.rate for probe in self.probes if probe.round == number), default=0.0)
            for number, rate in enumerate(self.rates)
            if not rate
        ]
        return max(lowest, default=0.0) or None

    @property
    def at_least(self) -> bool:
        """Whether the server takes this rate at least, as no round found one that is too high.

        Or the clients could not send that one.
        """
        kept: dict[int, bool] = {}
        for probe in self.probes:
            kept[probe.round] = kept.get(probe.round, True) and probe.kept
        return self.client_is_limit or any(kept.values())


def positive_interval(values: Sequence[float]) -> Interval | None:
    """The mean of numbers above 0 with its interval; None where one is not, or there is none."""
    if not values or not all(0 < value < math.inf for value in values):
        return None
    return mean_interval(values)

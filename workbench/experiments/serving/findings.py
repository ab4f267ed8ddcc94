"""What keeps a served model from more requests a second, or from a shorter p99, with its numbers.

Every rule looks at the measured points of one variant. Nothing here runs a request.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from workbench.experiments.measurement.statistics import Interval, ratio_interval
from workbench.experiments.program.refusals import ON_CALLER, is_on_caller
from workbench.experiments.serving.points import LoadPoint
from workbench.experiments.serving.results import ServedVariant, ServingComparison
from workbench.number_words import NBSP, counted, decimal, duration, integer, share

# A load whose rate is known to no more than this part of it shows nothing: other programs ran.
_STEADY = 0.25
# More clients that give less than this do not make the throughput grow.
_GROWS = 1.1
# Of the cores, the part that is at work at most while a lock or a queue holds the requests.
_BUSY = 0.75
# A p99 that is this many times the mean latency, and of that with one client, is a long tail.
_TAIL, _TAIL_OF_ONE = 2.0, 1.5
# CPU of a request with many clients over that with one, from where on threads contend.
_CONTENDS = 1.3
# Of a request's time with one client, the part without a core at work; and no less than this.
_HANDED_OVER, _LEAST_NS = 0.2, 30_000.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingFinding:
    """One thing that holds a served model up.

    Attributes:
      key: its kind, such as "one_queue".
      label: the variant in which it was seen.
      title: what is wrong, in a few words.
      evidence: the numbers that say so, one or two sentences.
      mend: what to do.
      toggle: the toggle that does it; "" where none does.
      weight: how strong it is, beside others of its kind.
    """

    key: str
    label: str
    title: str
    evidence: str
    mend: str
    toggle: str = ""
    weight: float = 0.0


def find(comparison: ServingComparison) -> tuple[ServingFinding, ...]:
    """What holds the variants up, kind by kind, in each the baseline first.

    Of several numbers of rows a variant has the one with the strongest finding of a kind.
    """
    findings = []
    for rule in _RULES:
        for variant in comparison.variants:
            cases = [
                _Case(comparison=comparison, variant=variant, rows=rows)
                for rows in dict.fromkeys(point.rows for point in variant.points)
            ]
            seen = [finding for case in cases if (finding := rule(case))]
            findings += [max(seen, key=lambda finding: finding.weight)] if seen else []
    return tuple(findings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Case:
    """The points of one variant and one number of rows."""

    comparison: ServingComparison
    variant: ServedVariant
    rows: int

    @property
    def cores(self) -> int:
        return int(self.comparison.environment.get("cores", 0))

    @property
    def points(self) -> list[LoadPoint]:
        """All loads."""
        return [point for point in self.variant.points if point.rows == self.rows]

    @property
    def closed(self) -> list[LoadPoint]:
        """Those whose clients wait for their answers, by their number; steady ones alone."""
        kept = [p for p in self.points if p.load.rate is None and p.latency and _is_steady(p)]
        return sorted(kept, key=lambda point: point.load.clients)

    @property
    def alone(self) -> LoadPoint | None:
        """The load of one client."""
        return next((point for point in self.closed if point.load.clients == 1), None)

    @property
    def many(self) -> LoadPoint | None:
        """The load of the most clients, of more than one."""
        last = self.closed[-1:]
        return last[0] if last and last[0].load.clients > 1 else None

    @property
    def is_limited(self) -> bool:
        """Whether no more steps than cores run at one time."""
        return 0 < self.variant.steps_at_once <= self.cores

    @property
    def is_on_caller(self) -> bool:
        """Whether the client's own thread runs the steps."""
        return is_on_caller(self.variant.optimizations)

    def finding(
        self, key: str, title: str, evidence: str, mend: str, toggle: str = "", weight: float = 0.0
    ) -> ServingFinding:
        rows = f"Requests of {counted(self.rows, 'row')}: " if self._several_rows else ""
        return ServingFinding(
            key=key,
            label=self.variant.label,
            title=title,
            evidence=rows + evidence,
            mend=mend,
            toggle=toggle,
            weight=weight,
        )

    @property
    def _several_rows(self) -> bool:
        return len({rows for _, rows in self.comparison.loads}) > 1 and self.rows > 0


def _failed(case: _Case) -> ServingFinding | None:
    failed = sum(point.failed for point in case.points)
    if not failed:
        return None
    sent = sum(point.requests for point in case.points)
    error = next((point.first_error for point in case.points if point.first_error), "")
    return case.finding(
        "failed",
        "Requests failed",
        f"{integer(failed)} of {integer(sent)} requests failed ({share(failed / sent)}); rates and "
        f"latencies are of the others. The first error: {error}",
        "Send one of these requests by itself, and mend the model or the request.",
        weight=failed / sent,
    )


def _unsteady(case: _Case) -> ServingFinding | None:
    spread = {_spread(p): p for p in case.points if p.per_s and not _is_steady(p)}
    if not spread:
        return None
    widest = max(spread)
    return case.finding(
        "unsteady",
        "The measurement is not steady",
        f"{_capital(spread[widest].load.label)}: the rounds differ so much that the rate is known "
        f"to ± {share(widest)} only. No other finding looks at such a load.",
        "Measure again while no other program runs, or with more rounds.",
        weight=widest,
    )


def _client(case: _Case) -> ServingFinding | None:
    limited = [point for point in case.points if point.client_is_limit]
    rate = case.variant.rate_at_limit(case.rows)
    if not limited and not (rate and rate.client_is_limit):
        return None
    words = "At the highest rates of the search the clients came late."
    if limited:
        last = limited[-1]
        per_s = last.per_s.value if last.per_s else 0.0
        words = (
            f"With {last.load.label} the clients sent {_rate(per_s)}. A request takes "
            f"{duration(last.client_cpu_ns)} of their CPU, and {duration(last.server_cpu_ns)} of "
            "the server's."
        )
    return case.finding(
        "client",
        "The client is the limit",
        words,
        "Read these rates as what the server does at least; send larger requests, or from a "
        "machine with more cores.",
    )


def _one_queue(case: _Case) -> ServingFinding | None:
    many = case.many
    if many is None or many.client_is_limit or case.cores < 2:
        return None
    fewer = [point for point in case.closed if 2 * point.load.clients <= many.load.clients]
    if not fewer or many.cores > _BUSY * case.cores:
        return None
    growth = _growth(many, fewer[-1])
    if growth is None or growth.high >= _GROWS:
        return None
    held = case.variant.steps_at_once
    mend, toggle = (
        (f"Let more steps run at one time: steps_at_once is {held}.", "steps_at_once")
        if 0 < held < case.cores
        else (
            "Serve by several sessions; or look for an op that one step at a time may enter, such "
            "as a table, a queue or a Python function.",
            "sessions",
        )
    )
    return case.finding(
        "one_queue",
        "One lock or one queue holds all requests",
        f"With {many.load.label} it answers {_rate(_value(many.per_s))}, "
        f"{_times(growth.value)} as many as with {fewer[-1].load.label}, while "
        f"{decimal(many.cores, 1)} of {case.cores} cores are at work.",
        mend,
        toggle=toggle,
        weight=case.cores / max(many.cores, 0.01),
    )


def _more_steps_than_cores(case: _Case) -> ServingFinding | None:
    many, alone = case.many, case.alone
    if many is None or case.is_limited or not 0 < case.cores < many.load.clients:
        return None
    tail, of_one = _tail(many), _tail(alone) if alone else 1.0
    if tail < _TAIL or tail < _TAIL_OF_ONE * of_one:
        return None
    latency = many.latency
    p99 = latency.p99_ns.value if latency else 0.0
    with_one = f", with one client {_times(of_one)}" if alone else ""
    mend = (
        f"Let {case.cores} steps run at one time, in the order of arrival: "
        f"steps_at_once={case.cores}."
    )
    return case.finding(
        "more_steps_than_cores",
        "More steps run at one time than there are cores",
        f"With {many.load.label} on {case.cores} cores the p99 is {duration(p99)}, "
        f"{_times(tail)} the mean{with_one}. Steps that share a core hold each other up.",
        mend + _measured_limit(case, many, p99),
        toggle="steps_at_once",
        weight=tail,
    )


def _measured_limit(case: _Case, many: LoadPoint, p99_ns: float) -> str:
    """What a variant with such a limit measured under the same load; "" where none is better."""
    times = []
    for other in case.comparison.variants:
        if 0 < other.steps_at_once <= case.cores:
            latency = other.point(many.load, many.rows).latency
            times += [(latency.p99_ns.value, other.label)] if latency else []
    best = min(times, default=(p99_ns, ""))
    return f" Measured here: p99 {duration(best[0])} by {best[1]}." if best[0] < p99_ns else ""


def _contention(case: _Case) -> ServingFinding | None:
    many, alone = case.many, case.alone
    if many is None or alone is None or alone.server_cpu_ns <= 0:
        return None
    more = many.server_cpu_ns / alone.server_cpu_ns
    if more < _CONTENDS:
        return None
    return case.finding(
        "contention",
        "Threads contend",
        f"With {many.load.label} a request takes {duration(many.server_cpu_ns)} of CPU, "
        f"{_times(more)} as much as with one client ({duration(alone.server_cpu_ns)}).",
        "Run each op on one thread, intra_op_threads=1, and no more steps at one time than there "
        "are cores.",
        toggle="intra_op_threads",
        weight=more,
    )


def _hand_over(case: _Case) -> ServingFinding | None:
    alone = case.alone
    if alone is None or case.is_on_caller or alone.client_is_limit:
        return None
    request_ns = 1e9 / max(_value(alone.per_s), 1e-9)
    idle_ns = request_ns - alone.server_cpu_ns - alone.client_cpu_ns
    if idle_ns < max(_LEAST_NS, _HANDED_OVER * request_ns):
        return None
    return case.finding(
        "hand_over",
        "Threads hand a request over",
        f"With one client a request takes {duration(request_ns)}, and a core is at work for "
        f"{duration(request_ns - idle_ns)} of it. In the other {share(idle_ns / request_ns)} one "
        "thread wakes another, or an op waits.",
        f"Run the steps on the client's own thread: {ON_CALLER}."
        + _measured_on_caller(case, alone, request_ns),
        toggle="inline_executor",
        weight=idle_ns / request_ns,
    )


def _measured_on_caller(case: _Case, alone: LoadPoint, request_ns: float) -> str:
    """What a variant on the client's thread measured with one client; "" where none is faster."""
    times = []
    for other in case.comparison.variants:
        there = dataclasses.replace(case, variant=other)
        point = there.alone
        if there.is_on_caller and point is not None and point.load == alone.load:
            times.append((1e9 / max(_value(point.per_s), 1e-9), other.label))
    best = min(times, default=(request_ns, ""))
    return f" Measured here: {duration(best[0])} by {best[1]}." if best[0] < request_ns else ""


def _growth(many: LoadPoint, few: LoadPoint) -> Interval | None:
    """Requests a second of many clients over those of fewer, of blocks of the same round."""
    pairs = list(zip(many.blocks, few.blocks, strict=False))
    if len(pairs) < 2 or not all(a.answered and b.answered for a, b in pairs):
        return None
    return ratio_interval([a.per_s for a, _ in pairs], [b.per_s for _, b in pairs])


def _tail(point: LoadPoint) -> float:
    """The p99 over the mean latency, which is clients over requests a second."""
    if not point.latency or not point.per_s:
        return 0.0
    return point.latency.p99_ns.value * point.per_s.value / (1e9 * point.load.clients)


def _is_steady(point: LoadPoint) -> bool:
    return point.per_s is not None and _spread(point) <= _STEADY


def _spread(point: LoadPoint) -> float:
    """Half of the interval of the rate as a part of it; 0 where one round gives no interval."""
    rate = point.per_s
    if rate is None or not math.isfinite(rate.high):
        return 0.0
    return (rate.high - rate.low) / 2 / rate.value


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _value(interval: Interval | None) -> float:
    return interval.value if interval else 0.0


def _rate(per_s: float) -> str:
    return f"{decimal(per_s, 0 if per_s >= 99.5 else 1)}{NBSP}requests/s"


def _times(factor: float) -> str:
    return f"{decimal(factor, 1 if factor >= 1.95 else 2)} times"


_RULES: Sequence[Callable[[_Case], ServingFinding | None]] = (
    _failed,
    _unsteady,
    _client,
    _one_queue,
    _more_steps_than_cores,
    _contention,
    _hand_over,
)

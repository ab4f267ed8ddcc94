"""The rounds of a measurement: each load of each variant in turn, then the rates at the limit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import block_order
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.serving.client_limit import client_is_limit
from workbench.experiments.serving.points import Load, LoadPoint, RateAtLimit
from workbench.experiments.serving.rate_search import (
    PROBES,
    FoundRate,
    Probed,
    expected_s,
    search_rate,
)
from workbench.experiments.serving.server.messages import RanLoad, RunLoad
from workbench.experiments.worker.process import Worker

# Seconds of a block and of a probe.
_SHORTEST_S, _LONGEST_S = 0.4, 5.0
_P99 = 2
# Of an open loop: the most requests that run at one time.
OPEN_CLIENTS = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """How a measurement is laid out.

    Attributes:
      loads: with the rows of each.
      rounds: how often each variant has each load.
      block_s: seconds of one block.
      probe_s: seconds of a rate that is tried; 0 searches none.
      seconds: how long all of it takes, about.
    """

    loads: tuple[tuple[Load, int], ...]
    rounds: int
    block_s: float
    probe_s: float
    seconds: float


def schedule(
    loads: Sequence[tuple[Load, int]],
    *,
    variants: int,
    searched_rows: int,
    rounds: int,
    budget_s: float,
) -> Schedule:
    """Divides a budget among blocks and probes; a short one is exceeded by the shortest of both.

    Args:
      loads: with the rows of each.
      variants: how many.
      searched_rows: for how many numbers of rows the rate at the limit is searched.
      rounds: how often.
      budget_s: seconds for all of them.
    """
    blocks = rounds * variants * len(loads)
    probes = rounds * variants * searched_rows * PROBES
    each_s = min(_LONGEST_S, max(_SHORTEST_S, budget_s / max(1, blocks + probes)))
    return Schedule(
        loads=tuple(loads),
        rounds=rounds,
        block_s=each_s,
        probe_s=each_s if probes else 0.0,
        seconds=each_s * (blocks + probes),
    )


class Rounds:
    """Runs the blocks of a schedule in workers that have a model loaded."""

    def __init__(
        self, workers: Sequence[Worker], plan: Schedule, progress: Progress, seed: int
    ) -> None:
        """Of one worker for each variant, the baseline first."""
        self._workers, self._plan, self._progress, self._seed = workers, plan, progress, seed
        self._budget = TimeBudget(plan.seconds)
        rows = len({rows for _, rows in plan.loads})
        self._done, self._total = 0, plan.rounds * len(workers) * len(plan.loads)
        if plan.probe_s:
            self._total += plan.rounds * len(workers) * rows

    def run_loads(self) -> list[list[LoadPoint]]:
        """The points of each variant, in the order of the loads."""
        plan, count = self._plan, len(self._workers)
        ran: list[dict[int, list[RanLoad]]] = [{} for _ in self._workers]
        for number in range(plan.rounds):
            for at, (load, rows) in enumerate(plan.loads):
                for variant in block_order(number, count):
                    command = RunLoad(
                        load=load,
                        rows=rows,
                        seconds=plan.block_s,
                        seed=self._seed + number,
                        with_spans=number == plan.rounds - 1,
                    )
                    ran[variant].setdefault(at, []).append(self._block(variant, command))
        return [
            [_point(*plan.loads[at], blocks) for at, blocks in sorted(of.items())] for of in ran
        ]

    def search(self, rows: int, limit_ns: float, most_per_s: Sequence[float]) -> list[RateAtLimit]:
        """The rate at a limit of each variant, for requests of so many rows.

        Args:
          rows: of the requests.
          limit_ns: of p99.
          most_per_s: of each variant, what clients that wait for answers got at most.
        """
        # A slow model needs more time for a p99 than its blocks have.
        seconds = self._plan.rounds * sum(
            expected_s(most, self._plan.probe_s) for most in most_per_s
        )
        self._budget = TimeBudget(seconds)
        self._progress.phase(f"Searching the highest rates, about {seconds:.0f}\u00a0s")
        searched: list[list[FoundRate]] = [[] for _ in self._workers]
        for number in range(self._plan.rounds):
            for variant in block_order(number, len(self._workers)):
                self._show()
                searched[variant].append(
                    search_rate(
                        self._probe_of(variant, rows, number),
                        most_per_s=most_per_s[variant],
                        limit_ns=limit_ns,
                        probe_s=self._plan.probe_s,
                        round_number=number,
                    )
                )
        return [
            RateAtLimit(
                rows=rows,
                limit_ns=limit_ns,
                rates=tuple(each.rate for each in rates),
                probes=tuple(probe for each in rates for probe in each.probes),
                client_is_limit=any(each.client_is_limit for each in rates),
            )
            for rates in searched
        ]

    def _probe_of(self, variant: int, rows: int, number: int) -> Any:
        def probe(rate: float, seconds: float) -> Probed:
            load = Load(kind="open loop", clients=OPEN_CLIENTS, rate=rate)
            seed = self._seed + number
            command = RunLoad(load=load, rows=rows, seconds=seconds, seed=seed)
            ran = self._workers[variant].call(command, seconds)
            times = ran.block.percentiles_ns
            return Probed(
                p99_ns=times[_P99] if times else None,
                complete=not ran.unsent,
                client_is_limit=client_is_limit(load, [ran.block]),
            )

        return probe

    def _block(self, variant: int, command: RunLoad) -> RanLoad:
        self._show()
        return self._workers[variant].call(command, command.seconds)

    def _show(self) -> None:
        self._done += 1
        self._progress.block(self._done, self._total, self._budget.left_s())


def _point(load: Load, rows: int, ran: Sequence[RanLoad]) -> LoadPoint:
    blocks = tuple(each.block for each in ran)
    return LoadPoint(
        load=load,
        rows=rows,
        blocks=blocks,
        first_error=next((each.first_error for each in ran if each.first_error), ""),
        client_is_limit=client_is_limit(load, blocks),
        spans=ran[-1].spans,
    )

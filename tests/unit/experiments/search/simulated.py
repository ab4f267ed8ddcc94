"""A field in which settings run by a clock of its own, with noise and drift, and no process."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.search.racing.race import Dropped
from workbench.experiments.search.racing.refused import Refused
from workbench.experiments.search.racing.run_search import run_search
from workbench.experiments.search.search import Search


@dataclasses.dataclass
class SimulatedField:
    """Where settings run at known rates.

    Attributes:
      rates: true steps/s of each, by label.
      noise: standard deviation of the logarithm of a block's rate.
      drift: what the machine's speed changes by in a round, as a share.
      most: settings that fit into memory beside the baseline.
      refuses: labels that cannot run, with the reason.
      fails: labels whose block fails in that round of their own.
    """

    rates: Mapping[str, float]
    noise: float = 0.02
    drift: float = 0.0
    most: int = 4
    start: float = 3.0
    block: float = 0.4
    seed: int = 0
    refuses: Mapping[str, Refused] = dataclasses.field(default_factory=dict)
    fails: Mapping[str, int] = dataclasses.field(default_factory=dict)
    too_much: bool = False

    def __post_init__(self) -> None:
        self.now = 0.0
        self.running: list[str] = []
        self.most_seen = 0
        self.ran: dict[str, int] = {}
        self.order: list[str] = []
        self._generator = np.random.default_rng(self.seed)

    def clock(self) -> float:
        return self.now

    def places(self) -> int:
        return self.most - len(self.running)

    def start_s(self, count: int) -> float:
        return self.start * count

    def enter(self, labels: Sequence[str], settings: Mapping[str, Optimizations]) -> list[Refused]:
        assert set(labels) == set(settings)
        self.now += self.start_s(len(labels))
        self.running += [label for label in labels if label not in self.refuses]
        self.order += labels
        self.most_seen = max(self.most_seen, len(self.running))
        return [self.refuses[label] for label in labels if label in self.refuses]

    def run_round(
        self, number: int, labels: Sequence[str]
    ) -> tuple[dict[str, float], list[Dropped]]:
        assert set(labels[1:]) == set(self.running)
        self.now += self.block * len(labels)
        failed = []
        rates = {}
        speed = math.exp(self.drift * number)
        for label in labels:
            self.ran[label] = self.ran.get(label, 0) + 1
            if self.fails.get(label) == self.ran[label]:
                failed.append(Dropped(label=label, reason="it failed: out of luck"))
                continue
            scatter = math.exp(self._generator.normal(0.0, self.noise))
            rates[label] = self.rates[label] * speed * scatter
        return rates, failed

    def leave(self, labels: Sequence[str]) -> None:
        for label in labels:
            self.running.remove(label)

    def unready(self, setting: Optimizations, seconds: float) -> str:
        return ""

    def over_memory(self) -> str:
        return "too much memory" if self.too_much and len(self.running) > 1 else ""


def searched(
    search: Search,
    field: SimulatedField,
    budget_s: float = 120.0,
    reserve_s: float = 10.0,
    refine: Callable[[Optimizations], list] = lambda best: [],
    neighbors: Callable[[Optimizations], list] = lambda best: [],
) -> Search:
    """A search that is over."""
    run_search(
        search,
        field,
        TimeBudget(budget_s, field.clock),
        reserve_s=reserve_s,
        refine=refine,
        neighbors=neighbors,
        say=lambda search, left_s: None,
    )
    return search

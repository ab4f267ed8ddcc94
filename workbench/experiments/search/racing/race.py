"""Race: settings that run block by block beside each other until the slower ones are known.

Pure: it is fed the rates of a round and says who is out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from workbench.experiments.measurement.anytime_interval import FEWEST_VALUES, anytime_interval
from workbench.experiments.measurement.statistics import Interval

# A racer that is at most this much faster than the best is not worth more time.
TOLERANCE = 0.01
# Probability that a racer which is faster than the best by more than that is ever dropped against
# it. The true best meets few others while they are the best, so that it is lost in a few per cent.
DROP_ERROR = 0.01
# Of the intervals that are shown.
SHOWN_ERROR = 0.05
# Rounds that the best has run at least when the race ends.
FEWEST_ROUNDS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dropped:
    """A racer that is out.

    Attributes:
      label: its name.
      reason: why, a clause.
    """

    label: str
    reason: str


class Race:
    """Rates of racers by round; the first racer, the baseline, runs in every round."""

    def __init__(self, baseline: str, *, tolerance: float = TOLERANCE) -> None:
        """A race in which only the baseline runs.

        Args:
          baseline: its label; never dropped.
          tolerance: how much faster than the best a racer must possibly be to stay, as a share.
        """
        self.baseline = baseline
        self._tolerance = math.log1p(tolerance)
        self._rounds = 0
        self._racing = [baseline]
        self._logs: dict[str, dict[int, float]] = {baseline: {}}

    @property
    def racing(self) -> tuple[str, ...]:
        """Those that run in the next round, the baseline first."""
        return tuple(self._racing)

    @property
    def entered(self) -> tuple[str, ...]:
        """All that have ever raced, in the order in which they came."""
        return tuple(self._logs)

    @property
    def rounds(self) -> int:
        """Rounds that have run."""
        return self._rounds

    def enter(self, label: str) -> None:
        """One more runs from the next round on; of one that ran before, its rounds count on."""
        self._racing.append(label)
        self._logs.setdefault(label, {})

    def leave(self, label: str) -> None:
        """One runs no more; what it has run stays."""
        self._racing.remove(label)

    def feed(self, rates: Mapping[str, float]) -> list[Dropped]:
        """Adds a round.

        Args:
          rates: steps/s of one block of each that is racing.

        Returns:
          Who is out after it.
        """
        for label in self._racing:
            self._logs[label][self._rounds] = math.log(rates[label])
        self._rounds += 1
        best = self.best
        out = [
            Dropped(label=label, reason=reason)
            for label in self._racing
            if label not in (best, self.baseline) and (reason := self._beaten(label, best))
        ]
        for dropped in out:
            self.leave(dropped.label)
        return out

    @property
    def best(self) -> str:
        """The racer with the highest mean ratio to the baseline, of those with enough rounds."""
        known = [name for name in self._racing if len(self._logs[name]) >= FEWEST_VALUES]
        return max(known, key=self.mean_log, default=self.baseline)

    @property
    def settled(self) -> bool:
        """Whether more rounds of those that race would choose no other one."""
        best = self.best
        others = [label for label in self._racing if label not in (best, self.baseline)]
        if others or len(self._logs[best]) < FEWEST_ROUNDS:
            return False
        # The baseline cannot be dropped; whether it is beaten is the last question.
        of_baseline = self.interval(self.baseline, best, DROP_ERROR)
        return best == self.baseline or math.log(of_baseline.high) < self._tolerance

    def rates(self, label: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Its rates, and those of the baseline in the same rounds."""
        own, base = self._logs[label], self._logs[self.baseline]
        return (
            tuple(math.exp(log) for log in own.values()),
            tuple(math.exp(base[number]) for number in own),
        )

    def mean_log(self, label: str) -> float:
        """Mean logarithm of its ratio to the baseline; NaN before its first round."""
        logs = self.logs(label)
        return float(np.mean(logs)) if logs else math.nan

    def logs(self, label: str) -> list[float]:
        """Logarithms of its ratio to the baseline, of each round that it has run."""
        return self._apart(label, self.baseline)

    def interval(self, label: str, to: str, error: float = SHOWN_ERROR) -> Interval:
        """Its ratio to another one over the rounds that both have run.

        The interval holds at whichever round one looks.
        """
        return anytime_interval(self._apart(label, to), error)

    def _apart(self, label: str, to: str) -> list[float]:
        own, other = self._logs[label], self._logs[to]
        return [log - other[number] for number, log in own.items() if number in other]

    def _beaten(self, label: str, best: str) -> str:
        """Why it is out against the best; "" where it is not."""
        found = self.interval(label, best, DROP_ERROR)
        if not math.log(found.high) < self._tolerance:
            return ""
        named = f"{best} ({found.low:.2f}–{found.high:.2f})"
        if found.high < 1:
            return f"slower: {found.value:.2f}× of {named}"
        return f"no more than {found.high - 1:.1%} faster than {named}".replace("%", "\u00a0%")

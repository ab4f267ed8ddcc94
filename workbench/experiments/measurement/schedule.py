"""Schedule: the phases of a wait in their order, what each should take, and what is left of it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable

# Names of phases, and how they read on screen.
START, BUILD, SAMPLE, PLAN, CHECK, WARM_UP, BLOCKS, TRACE = (
    *("start", "build", "sample", "plan", "check", "warm_up", "blocks", "trace"),
)
BATCHES, RACE = "batches", "race"
GRAPHS, IDS, COSTS, PREDICT = "graphs", "ids", "costs", "predict"
TITLES = {
    START: "Start",
    BUILD: "Build graphs",
    SAMPLE: "Trace for the plan",
    PLAN: "Plan the smart stage",
    CHECK: "Check training",
    WARM_UP: "Warm up",
    BLOCKS: "Measure",
    BATCHES: "Check batches",
    TRACE: "Trace",
    GRAPHS: "Build every graph",
    IDS: "Read ids",
    COSTS: "Trace fused graphs",
    PREDICT: "Predict",
    RACE: "Race",
}
# A phase that takes longer than expected is taken to need this share of its time so far.
_MORE_SHARE = 0.15
# How far what is over corrects what is expected: seconds that count as taken as expected, and
# bounds of the factor.
_PRIOR_S, _SLOWEST, _FASTEST = 2.0, 3.0, 0.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Expected:
    """A phase that is still to come.

    Attributes:
      name: one of the names above.
      seconds: what it should take; at least, where it fills the budget.
      fills: whether it takes what the others leave of the budget.
      later: whether it comes after what the budget is for.
    """

    name: str
    seconds: float
    fills: bool = False
    later: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseState:
    """A phase as progress shows it.

    Attributes:
      title: its name on screen.
      state: "over", "now" or "next".
      seconds: what it took, or is expected to take.
    """

    title: str
    state: str
    seconds: float


class Schedule:
    """Phases that begin one after the other; those that are skipped take no time."""

    def __init__(
        self,
        phases: Iterable[Expected],
        *,
        budget_s: float = 0.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Nothing has begun yet.

        Args:
          phases: in their order.
          budget_s: seconds for those that are not later, which one of them may fill.
          clock: seconds that go on; None means those of this machine.
        """
        self._clock, self._budget_s = clock or time.monotonic, budget_s
        self._begun_s = self._clock()
        self._next = list(phases)
        self._over: list[tuple[str, float, float]] = []
        self._now: Expected | None = None
        self._now_s = self._begun_s

    def begin(self, name: str) -> None:
        """A phase begins; the one before is over, and those between are skipped."""
        self.end()
        names = [phase.name for phase in self._next]
        if name in names:
            place = names.index(name)
            self._now = self._next[place]
            self._next = self._next[place + 1 :]
        else:
            self._now = Expected(name=name, seconds=0.0)

    def end(self) -> None:
        """The phase that goes on is over."""
        now_s = self._clock()
        if self._now is not None:
            expected_s = 0.0 if self._now.fills else self._now.seconds
            self._over.append((self._now.name, now_s - self._now_s, expected_s))
        self._now, self._now_s = None, now_s

    def expect(self, name: str, seconds: float) -> None:
        """What is left of a phase that goes on, or what one that comes will take."""
        if self._now is not None and self._now.name == name:
            spent_s = self._clock() - self._now_s
            self._now = dataclasses.replace(self._now, seconds=spent_s + seconds)
            return
        self._next = [
            dataclasses.replace(phase, seconds=seconds) if phase.name == name else phase
            for phase in self._next
        ]

    @property
    def now(self) -> str:
        """The title of the phase that goes on; "" before the first."""
        return TITLES.get(self._now.name, self._now.name) if self._now else ""

    def spent_s(self) -> float:
        """Seconds since it was made."""
        return self._clock() - self._begun_s

    def later_s(self) -> float:
        """Seconds that are expected for what comes after the budget."""
        return sum(phase.seconds for phase in self._next if phase.later)

    def left_s(self) -> float:
        """Seconds until all is over, about."""
        pace = self._pace()
        left_s = self._left_of_now_s()
        left_s += sum(pace * each.seconds for each in self._next if not (each.fills or each.later))
        for phase in self._next:
            if phase.fills:
                left_s += max(phase.seconds, self._budget_s - self.spent_s() - left_s)
        return left_s + pace * self.later_s()

    def share(self) -> float:
        """How much of the whole wait is over, 0 to 1."""
        spent_s = self.spent_s()
        return spent_s / max(1e-9, spent_s + self.left_s())

    def phases(self) -> tuple[PhaseState, ...]:
        """All phases, in their order."""
        over = [(name, "over", seconds) for name, seconds, _ in self._over]
        now = [(self._now.name, "now", self._now.seconds)] if self._now else []
        coming = [(phase.name, "next", phase.seconds) for phase in self._next]
        return tuple(
            PhaseState(title=TITLES.get(name, name), state=state, seconds=seconds)
            for name, state, seconds in (*over, *now, *coming)
        )

    def durations(self) -> dict[str, float]:
        """Seconds of each phase that is over, by name."""
        took: dict[str, float] = {}
        for name, seconds, _ in self._over:
            took[name] = took.get(name, 0.0) + seconds
        return took

    def _left_of_now_s(self) -> float:
        if self._now is None:
            return 0.0
        spent_s = self._clock() - self._now_s
        expected_s = self._now.seconds * (1.0 if self._now.fills else self._pace())
        return max(expected_s - spent_s, _MORE_SHARE * spent_s)

    def _pace(self) -> float:
        """How much longer than expected phases have taken so far."""
        # How long a start takes says nothing of the rest: TensorFlow may be imported already.
        known = [
            (took_s, expected_s)
            for name, took_s, expected_s in self._over
            if expected_s > 0 and name != START
        ]
        took_s = sum(took for took, _ in known)
        expected_s = sum(expected for _, expected in known)
        return min(_SLOWEST, max(_FASTEST, (took_s + _PRIOR_S) / (expected_s + _PRIOR_S)))

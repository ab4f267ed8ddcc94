"""Search: which settings race, which wait, and which are left out, from rates alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from workbench.core.optimizations import Optimizations
from workbench.experiments.measurement.anytime_interval import FEWEST_VALUES
from workbench.experiments.search.contenders import Contender
from workbench.experiments.search.expectation import Expectations, expectations, toggle_count
from workbench.experiments.search.racing.race import (
    FEWEST_ROUNDS,
    TOLERANCE,
    Dropped,
    Race,
)
from workbench.experiments.search.racing.refused import has_choices_of

# Where nothing is predicted, a toggle alone that is expected to give less than this, as a
# logarithm, waits like any other setting.
_HARMS = -0.1
# How much further than its interval a prediction may be off: what is left out is never seen.
_WIDER = 1.5
# How much likelier to be the fastest one that waits must be than a racer, to take its place: it has
# to be started, and knows nothing of itself.
_LIKELIER = 2.0
# Standard deviations above its mean that one like the best may reach.
_LIKELY_MOST = 2.0
TIME_UP = "the time was up before it was its turn"
_TIME_UP_RACING = "still in the race when the time was up"


class Search:
    """The contenders of a race: who is next, and who needs no race.

    Attributes:
      race: of those that have entered.
      left_out: those that never raced, each with the reason.
      dropped: those that raced and are out, each with the reason.
      dropped_s: when they were, in seconds from the begin of the budget.
    """

    def __init__(self, baseline: Optimizations, contenders: Iterable[Contender]) -> None:
        """A search among contenders, none of which races yet."""
        self.baseline = Contender(optimizations=baseline)
        self.race = Race(self.baseline.label)
        self.left_out: dict[str, str] = {}
        self.dropped: dict[str, str] = {}
        self.dropped_s: dict[str, float] = {}
        self._known = {self.baseline.label: self.baseline}
        self._waiting: list[str] = []
        self._near: set[str] = set()
        self._refusals: list[tuple[str, Callable[[Optimizations], bool]]] = []
        self.add(contenders)

    def add(self, contenders: Iterable[Contender]) -> None:
        """More contenders; one that is known stays what it is."""
        for contender in contenders:
            label = contender.label
            if label in self._known:
                continue
            self._known[label] = contender
            reason = contender.refusal or self._refused(contender.optimizations)
            if reason:
                self.left_out[label] = reason
            else:
                self._waiting.append(label)

    def surround(self, neighbors: Iterable[Contender]) -> None:
        """Has settings like the best one wait; those of an earlier best that never ran are gone."""
        new = {contender.label: contender for contender in neighbors}
        gone = self._near - new.keys() - set(self.race.entered)
        for label in gone:
            del self._known[label]
            self.left_out.pop(label, None)
        self._waiting = [label for label in self._waiting if label not in gone]
        before = set(self._known)
        self.add(new.values())
        self._near = (self._near - gone) | (set(self._known) - before)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Those that may still enter."""
        return tuple(self._waiting)

    @property
    def finished(self) -> bool:
        """Whether nobody waits and more rounds would choose no other one."""
        return not self._waiting and self.race.settled

    def contender(self, label: str) -> Contender:
        """The contender of that name, the baseline too."""
        return self._known[label]

    @property
    def best_is_known(self) -> bool:
        """Whether the best has run so often that settings like it are worth a try."""
        return len(self.race.logs(self.best)) >= FEWEST_ROUNDS

    @property
    def best(self) -> str:
        """The racer that is expected to be the fastest, of those with enough rounds.

        Not simply the one that has run fastest, which owes a part of it to chance.
        """
        race, expected = self.race, self._expected().of()
        known = [
            label
            for label in race.racing
            if label == race.baseline or len(race.logs(label)) >= FEWEST_VALUES
        ]
        return max(known, key=lambda label: expected.get(label, 0.0))

    def next_in(self, places: int) -> list[str]:
        """Those that take the free places, which are `places`: they race from the next round on."""
        self._leave_out_hopeless()
        expectation = self._expected()
        expected = expectation.of()
        chances = expectation.chances({*self._waiting, *self.race.racing})
        # Where nothing is predicted, what each toggle gives alone says which to join.
        blind = not any(contender.predicted for contender in self._known.values())
        order = sorted(
            self._waiting,
            key=lambda label: (
                blind and not (self._is_alone(label) and expected[label] > _HARMS),
                -chances[label],
                -expected[label],
            ),
        )
        chosen = order[: max(0, places)]
        for label in chosen:
            self._waiting.remove(label)
            self.race.enter(label)
        return chosen

    def leave_out(self, label: str, reason: str) -> None:
        """One that waits need not race."""
        self._waiting.remove(label)
        self.left_out[label] = reason

    def refuse(self, label: str, reason: str, also: Callable[[Optimizations], bool]) -> None:
        """One that entered cannot run; nor can those that wait and are like it.

        Args:
          label: which one.
          reason: why, a clause.
          also: whether the reason holds for another setting.
        """
        self.race.leave(label)
        self._refuse_alike(reason, also)
        self.left_out[label] = reason

    def fail(self, label: str, reason: str) -> None:
        """One that races failed; those that wait and have its choices are not tried."""
        self.take_out(label, reason)
        self._refuse_alike(reason, has_choices_of(self._known[label].optimizations))

    def _refuse_alike(self, reason: str, also: Callable[[Optimizations], bool]) -> None:
        self._refusals.append((reason, also))
        alike = [each for each in self._waiting if also(self._known[each].optimizations)]
        self.left_out |= dict.fromkeys(alike, reason)
        self._waiting = [each for each in self._waiting if each not in alike]

    def _refused(self, setting: Optimizations) -> str:
        return next((reason for reason, also in self._refusals if also(setting)), "")

    def take_out(self, label: str, reason: str) -> None:
        """One that races leaves for another reason than its rates."""
        self.race.leave(label)
        self.dropped[label] = reason

    def unlikely(self, most: int) -> list[str]:
        """Racers, at most so many, that should give their places to those that wait."""
        race, best = self.race, self.best
        tried = [
            label
            for label in race.racing
            if label not in (best, race.best, race.baseline)
            and len(race.logs(label)) >= FEWEST_VALUES
        ]
        chances = self._expected().chances({*self._waiting, *race.racing})
        tried.sort(key=lambda label: (chances[label], race.mean_log(label)))
        waiting = sorted((chances[label] for label in self._waiting), reverse=True)
        pairs = zip(tried[:most], waiting, strict=False)
        return [label for label, chance in pairs if chance > _LIKELIER * chances[label]]

    def feed(self, rates: Mapping[str, float]) -> list[Dropped]:
        """Adds a round; returns who is out after it."""
        out = self.race.feed(rates)
        self.dropped |= {each.label: each.reason for each in out}
        return out

    def end(self) -> None:
        """The time is up: nobody enters any more."""
        self.left_out |= dict.fromkeys(self._waiting, TIME_UP)
        self._waiting.clear()
        best = self.best
        for label in self.race.racing:
            if label not in (best, self.race.baseline):
                self.dropped.setdefault(label, _TIME_UP_RACING)

    def _is_alone(self, label: str) -> bool:
        return toggle_count(self._known[label].optimizations) == 1

    def _expected(self) -> Expectations:
        baseline = self.baseline.label
        others = {label: contender for label, contender in self._known.items() if label != baseline}
        predicted = {
            label: contender.predicted_log
            for label, contender in others.items()
            if contender.predicted_log is not None
        }
        measured = {
            label: self.race.logs(label) for label in self.race.entered if label != baseline
        }
        settings = {label: contender.optimizations for label, contender in others.items()}
        return expectations(settings, self.baseline.optimizations, predicted, measured)

    def _leave_out_hopeless(self) -> None:
        """Those whose predicted interval, as corrected, ends below what the best gives at least."""
        best = self.race.interval(self.race.best, self.race.baseline)
        if self.race.best == self.race.baseline or not best.low > 0:
            return
        expectation = self._expected()
        expected = expectation.of()
        for label in tuple(self._waiting):
            if label in self._near:
                self._leave_out_worse(label, expectation)
                continue
            most = expected[label] + _WIDER * self._known[label].predicted_half
            if most < math.log(best.low) + math.log1p(TOLERANCE):
                self.leave_out(
                    label,
                    f"expected to give {math.exp(most):.2f}× at most, from its prediction and what "
                    f"was measured since; {self.race.best} gives {best.low:.2f}× at least",
                )

    def _leave_out_worse(self, label: str, expectation: Expectations) -> None:
        """One that is like the best, where its other choice gave little elsewhere."""
        mean, deviation = expectation.beside(label, self.race.best)
        most = mean + _LIKELY_MOST * deviation
        if most < math.log1p(TOLERANCE):
            self.leave_out(
                label,
                f"expected to give {math.exp(most):.2f}× of {self.race.best} at most, from what "
                "its choices gave elsewhere",
            )

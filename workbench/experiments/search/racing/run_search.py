"""run_search: races the contenders of a search until the best is known or the time is up.

Pure: what runs is behind a `Field`, what time it is behind a `TimeBudget`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from workbench.core.optimizations import Optimizations
from workbench.experiments.measurement.anytime_interval import FEWEST_VALUES
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.search.contenders import Contender
from workbench.experiments.search.racing.race import Dropped
from workbench.experiments.search.racing.refused import Refused
from workbench.experiments.search.search import Search

# Places that are given to others at a time: two cores start as many at once.
_AT_ONCE = 2
UNLIKELY = "undecided when it gave its place to a setting that was more likely to be the fastest"
# Of the time that is left, for starting what takes the free places.
_START_SHARE = 1 / 3


class Field(Protocol):
    """Where settings run: child processes, or a simulation of them."""

    def places(self) -> int:
        """How many more settings may run, by memory."""

    def start_s(self, count: int) -> float:
        """Seconds that this number of settings takes to start, about."""

    def enter(
        self, labels: Sequence[str], settings: Mapping[str, Optimizations]
    ) -> Sequence[Refused]:
        """Starts settings, by name; returns those that cannot run."""

    def run_round(
        self, number: int, labels: Sequence[str]
    ) -> tuple[dict[str, float], list[Dropped]]:
        """Runs a block of each; returns their rates, and those that failed."""

    def leave(self, labels: Sequence[str]) -> None:
        """Ends settings."""

    def unready(self, setting: Optimizations, seconds: float) -> str:
        """Why a setting cannot be started in so many seconds, a clause; "" where it can."""

    def over_memory(self) -> str:
        """What is wrong where all together take more than they may; "" where nothing is."""


def run_search(
    search: Search,
    field: Field,
    budget: TimeBudget,
    *,
    reserve_s: float,
    refine: Callable[[Optimizations], Iterable[Contender]],
    neighbors: Callable[[Optimizations], Iterable[Contender]] = lambda best: (),
    say: Callable[[Search, float], None],
) -> None:
    """Races the contenders of a search until the best is known or the time is up.

    Args:
      search: without a racer but the baseline, which runs in the field already.
      field: where they run.
      budget: seconds for all; where it is spent, a first contender has a few rounds all the same.
      reserve_s: of it, for what comes afterwards.
      refine: contenders to try once the best of the others is known.
      neighbors: settings that differ from the best so far in one choice; they wait once it has run
        a few rounds.
      say: is told before each round what races, and the seconds that are left.
    """
    round_s, refined, around = 0.0, False, ""
    while True:
        if search.best_is_known and search.best != around:
            around = search.best
            search.surround(neighbors(search.contender(around).optimizations))
        _fill(search, field, budget, reserve_s + FEWEST_VALUES * round_s)
        if search.finished:
            if refined or budget.left_s() - reserve_s < field.start_s(1):
                break
            search.add(refine(search.contender(search.best).optimizations))
            refined = True
            continue
        left_s = budget.left_s() - reserve_s
        if search.race.rounds > FEWEST_VALUES and (
            left_s < round_s or (search.race.settled and left_s < field.start_s(1))
        ):
            break
        say(search, budget.left_s())
        begun_s = budget.spent_s()
        _run_round(search, field)
        round_s = budget.spent_s() - begun_s
        out = search.dropped.keys() - search.dropped_s.keys()
        search.dropped_s |= dict.fromkeys(out, budget.spent_s())
    search.end()


def _fill(search: Search, field: Field, budget: TimeBudget, kept_s: float) -> None:
    """Lets contenders enter where there are places, and time to start them beside what is kept."""
    while search.waiting:
        places, left_s = field.places(), budget.left_s() - kept_s
        first = search.race.rounds == 0
        # What starts does not let others race meanwhile, if there are any.
        share = 1.0 if search.race.settled else _START_SHARE
        while places > 1 and field.start_s(places) > share * left_s:
            places -= 1
        if field.start_s(max(1, places)) > share * left_s and not first:
            return
        if places < 1:
            unlikely = search.unlikely(_AT_ONCE)
            if not unlikely:
                return
            for label in unlikely:
                search.take_out(label, UNLIKELY)
            field.leave(unlikely)
            continue
        for label in search.waiting:
            seconds = math.inf if first else share * left_s
            reason = field.unready(search.contender(label).optimizations, seconds)
            if reason:
                search.leave_out(label, reason)
        labels = search.next_in(places)
        settings = {label: search.contender(label).optimizations for label in labels}
        refused = field.enter(labels, settings) if labels else ()
        for refusal in refused:
            search.refuse(refusal.label, refusal.reason, refusal.holds_for)
        if len(refused) < len(labels):
            return


def _run_round(search: Search, field: Field) -> None:
    rates, failed = field.run_round(search.race.rounds, search.race.racing)
    for each in failed:
        search.fail(each.label, each.reason)
    out = [each.label for each in (*failed, *search.feed(rates))]
    field.leave(out)
    reason = field.over_memory()
    others = [n for n in search.race.racing if n not in (search.race.best, search.race.baseline)]
    if reason and others:
        slowest = min(others, key=search.race.mean_log)
        search.take_out(slowest, reason)
        field.leave([slowest])

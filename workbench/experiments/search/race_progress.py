"""RaceProgress: what races, as progress shows it."""

from __future__ import annotations

import math
import time

from workbench.experiments.measurement.evidence import Evidence
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.search.search import Search

_SAY_EVERY_S = 5.0


class RaceProgress:
    """Says what races: whenever that changes, and from time to time."""

    def __init__(self, shown: Progress) -> None:
        """Nothing is said yet."""
        self._shown, self._said_s = shown, -math.inf
        self._racing: tuple[str, ...] = ()

    def __call__(self, search: Search, left_s: float) -> None:
        """Says what races in the next round, and the seconds that are left."""
        self._shown.evidence(_evidence(search))
        racing, now = search.race.racing, time.monotonic()
        if racing == self._racing and now - self._said_s < _SAY_EVERY_S:
            return
        self._racing, self._said_s = racing, now
        self._shown.phase(_words(search, left_s))


def _evidence(search: Search) -> list[Evidence]:
    """What is known of those that race, the fastest first."""
    race = search.race
    racing = [each for each in race.racing if each != race.baseline and race.logs(each)]
    return [
        Evidence(
            label=label,
            ratios=tuple(map(math.exp, race.logs(label))),
            rounds=len(race.logs(label)),
            interval=race.interval(label, race.baseline),
        )
        for label in sorted(racing, key=race.mean_log, reverse=True)
    ]


def _words(search: Search, left_s: float) -> str:
    race = search.race
    names = " · ".join(label for label in race.racing if label != race.baseline) or "the baseline"
    waiting = f", {len(search.waiting)} more to come" if search.waiting else ""
    best = ""
    if race.best != race.baseline:
        ratio = math.exp(race.mean_log(race.best))
        best = f"; best so far: {race.best}, {ratio:.2f}×"
    return f"Round {race.rounds + 1}, {math.ceil(left_s)}\u00a0s left: {names}{waiting}{best}"

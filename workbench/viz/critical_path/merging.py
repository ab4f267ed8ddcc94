"""Merging of a chain of many short segments into the few that a picture has room for."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Sequence

# The class of a segment that never stands on its own where another can take it in.
FILLER = -1


@dataclasses.dataclass(slots=True)
class Group:
    """Neighbors of a chain: the segments [first, last), and the time of each class in them."""

    first: int
    last: int
    times: dict[int, int]

    @property
    def duration(self) -> int:
        return sum(self.times.values())

    @property
    def kind(self) -> int:
        """The class with most time; FILLER only where there is no other."""
        return max(self.times, key=lambda kind: (kind != FILLER, self.times[kind], -kind))


def merged(
    durations: Sequence[int], kinds: Sequence[int], most: int, least: int = 0
) -> list[Group]:
    """Joins a chain's neighbors until few groups are left; their times stay those of the chain.

    Neighbors of one class join. Then the shortest group joins the longer of its neighbors, one of
    fillers before all others, until none is a filler's, none is shorter than `least` and there are
    no more than `most`.

    Args:
      durations: of the segments, in order. kinds: their classes; FILLER for what is passed over.
      most: most groups of the result. least: what a group lasts to stand on its own.
    """
    return _Chain(durations, kinds).shortened(most, least)


class _Chain:
    """Groups in a linked list, and a heap of them by what is to be merged first."""

    def __init__(self, durations: Sequence[int], kinds: Sequence[int]) -> None:
        groups: list[Group] = []
        for i, (duration, kind) in enumerate(zip(durations, kinds, strict=True)):
            if groups and groups[-1].kind == kind:
                groups[-1].last = i + 1
                groups[-1].times[kind] += duration
            else:
                groups.append(Group(i, i + 1, {kind: duration}))
        self._groups: list[Group | None] = list(groups)
        self._before = list(range(-1, len(groups) - 1))
        self._after = [*range(1, len(groups)), -1][: len(groups)]
        self._left = len(groups)
        self._heap = [(*self._rank(group), i) for i, group in enumerate(groups)]
        heapq.heapify(self._heap)

    @staticmethod
    def _rank(group: Group) -> tuple[bool, int]:
        return group.kind != FILLER, group.duration

    def shortened(self, most: int, least: int) -> list[Group]:
        while self._heap and self._left > 1:
            named, duration, i = heapq.heappop(self._heap)
            group = self._groups[i]
            if group is None or self._rank(group) != (named, duration):
                continue
            if named and duration >= least and self._left <= most:
                break
            self._join(self._longer_neighbor(i), i)
        return [group for group in self._groups if group is not None]

    def _longer_neighbor(self, i: int) -> int:
        around = [k for k in (self._before[i], self._after[i]) if k >= 0]
        return max(around, key=lambda k: self._rank(self._at(k)))

    def _at(self, i: int) -> Group:
        group = self._groups[i]
        assert group is not None
        return group

    def _join(self, one: int, other: int) -> None:
        """Makes one of two neighbors; then of those that became alike."""
        one, other = min(one, other), max(one, other)
        kept, gone = self._at(one), self._at(other)
        kept.last = gone.last
        for kind, duration in gone.times.items():
            kept.times[kind] = kept.times.get(kind, 0) + duration
        self._groups[other] = None
        self._after[one] = self._after[other]
        if self._after[one] >= 0:
            self._before[self._after[one]] = one
        self._left -= 1
        for first, second in ((self._before[one], one), (one, self._after[one])):
            if first >= 0 and second >= 0 and self._at(first).kind == self._at(second).kind:
                self._join(first, second)
                return
        heapq.heappush(self._heap, (*self._rank(kept), one))

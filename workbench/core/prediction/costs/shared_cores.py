"""Ops as traced → how long they take with all the cores that they can use.

Where more ops run at a time than there are cores, each has its part of one. An op that splits its
work has fewer cores while others run beside it, and takes longer. In another setting others run
beside it, or none. What stays is its work. How many cores it keeps busy when nothing runs beside it
follows from the CPU time of a step.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.graph.graph_view import Bools

_HALVINGS, _NEAR = 30, 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class SharedCores:
    """How ops shared the cores.

    Attributes:
      split_cores: that an op which splits its work keeps busy when no other runs.
      alone_ns: float64 [events], how long each event would take then; of other ops with a core to
        themselves.
    """

    split_cores: float
    alone_ns: np.ndarray


def shared_cores(
    events: pd.DataFrame, splits: Bools, *, cores: int, busy_ns: float | None
) -> SharedCores:
    """How ops shared the cores.

    Args:
      events: of ops.
      splits: bool [events], which of them split their work.
      cores: of the machine.
      busy_ns: CPU time of the ops; None where it is not known.
    """
    stretches = _Stretches(events, splits, cores)
    split_cores = 1.0
    if busy_ns is not None and splits.any():
        split_cores = stretches.split_cores(busy_ns)
    alone_ns = stretches.whole_ns(events)
    work = stretches.work_ns(events[splits], split_cores)
    alone_ns[splits] = np.minimum(events["dur_ns"][splits], work / split_cores)
    return SharedCores(split_cores=split_cores, alone_ns=alone_ns)


class _Stretches:
    """Stretches of time in which the same ops run."""

    def __init__(self, events: pd.DataFrame, splits: Bools, cores: int) -> None:
        self._cores = cores
        outer = ~_is_nested(events)
        start = events["start_ns"].to_numpy(np.int64)
        end = start + events["dur_ns"].to_numpy(np.int64)
        self._begin = np.unique(np.concatenate([start, end]))
        self._lengths = np.diff(self._begin).astype(float)
        self._split = self._running(start, end, outer & splits)
        self._whole = self._running(start, end, outer & ~splits)
        # Of a core, that each op has at least.
        self._part = np.minimum(1.0, cores / np.maximum(self._split + self._whole, 1))

    def _running(self, start: np.ndarray, end: np.ndarray, chosen: Bools) -> np.ndarray:
        """How many of the chosen events run in each stretch."""
        count = np.zeros(len(self._begin), np.int64)
        np.add.at(count, np.searchsorted(self._begin, start[chosen]), 1)
        np.add.at(count, np.searchsorted(self._begin, end[chosen]), -1)
        return np.cumsum(count)[:-1]

    def _cores_of_each(self, most: float) -> np.ndarray:
        """How many cores each op that splits its work has in each stretch, `most` at most."""
        left = (self._cores - self._whole) / np.maximum(self._split, 1)
        return np.clip(left, self._part, most)

    def split_cores(self, busy_ns: float) -> float:
        """The fewest cores of an op that splits its work with which all are busy for so long.

        Or as nearly so long as can be: threads that look for work are busy, too.
        """
        low, high = 1.0, float(self._cores)
        wanted = min(busy_ns, self._busy_ns(high)) * (1 - _NEAR)
        if self._busy_ns(low) >= wanted:
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._busy_ns(middle) < wanted else (low, middle)
        return high

    def _busy_ns(self, most: float) -> float:
        """CPU time of all ops, if such an op has `most` cores at most."""
        used = self._whole * self._part + self._split * self._cores_of_each(most)
        return float(self._lengths @ used)

    def whole_ns(self, events: pd.DataFrame) -> np.ndarray:
        """CPU time of events that do not split their work."""
        return self._sums(events, self._part)

    def work_ns(self, events: pd.DataFrame, most: float) -> np.ndarray:
        """CPU time of events that split their work."""
        return self._sums(events, self._cores_of_each(most))

    def _sums(self, events: pd.DataFrame, cores: np.ndarray) -> np.ndarray:
        """The core time of each event, of so many cores in each stretch."""
        sums = np.concatenate(([0.0], np.cumsum(self._lengths * cores)))
        start = events["start_ns"].to_numpy(np.int64)
        ends = (start, start + events["dur_ns"].to_numpy(np.int64))
        before, after = (sums[np.searchsorted(self._begin, each)] for each in ends)
        found: np.ndarray = after - before
        return found


def _is_nested(events: pd.DataFrame) -> Bools:
    """Which events run inside of another one of their track, bool [events]."""
    rows = events.reset_index(drop=True).sort_values(["track", "start_ns"], kind="stable")
    end = rows["start_ns"] + rows["dur_ns"]
    before = end.groupby(rows["track"]).cummax().groupby(rows["track"]).shift(1)
    nested = np.zeros(len(rows), bool)
    inside = (rows["start_ns"] < before.fillna(-1)) & (end <= before.fillna(-1))
    nested[rows.index.to_numpy()] = inside.to_numpy()
    return nested

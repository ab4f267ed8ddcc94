"""Arithmetic on intervals: unions, gaps, overlap, nesting, self time.

An interval is a row of two int64 arrays, `start` and `end`, in nanoseconds of one clock, with
start ≤ end. It is half open: one may begin where another ends. "A union" below means intervals
that are sorted and lie apart, as `union` makes them.
"""

from __future__ import annotations

import heapq

import numpy as np

Intervals = tuple[np.ndarray, np.ndarray]


def union(start: np.ndarray, end: np.ndarray) -> Intervals:
    """The same time as intervals that lie apart, in ascending order; empty intervals vanish."""
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    filled = end > start
    start, end = start[filled], end[filled]
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, latest = start[order], np.maximum.accumulate(end[order])
    opens = np.concatenate(([True], start[1:] > latest[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return start[opens], latest[closes]


def total(start: np.ndarray, end: np.ndarray) -> int:
    """Time covered by at least one interval."""
    start, end = union(start, end)
    return int((end - start).sum())


def gaps(start: np.ndarray, end: np.ndarray, low: int, high: int) -> Intervals:
    """What the intervals leave uncovered between `low` and `high`, as a union."""
    return subtract((np.array([low], np.int64), np.array([high], np.int64)), union(start, end))


def intersection(one: Intervals, other: Intervals) -> Intervals:
    """Time that lies in both unions, as a union."""
    (a, b), (c, d) = one, other
    first = np.searchsorted(d, a, side="right")
    count = np.maximum(np.searchsorted(c, b, side="left") - first, 0)
    left = np.repeat(np.arange(len(a)), count)
    # 0, 1, 2 … within each interval of the first union
    within = np.arange(len(left)) - np.repeat(np.cumsum(count) - count, count)
    right = np.repeat(first, count) + within
    return union(np.maximum(a[left], c[right]), np.minimum(b[left], d[right]))


def subtract(one: Intervals, other: Intervals) -> Intervals:
    """Time of the first union outside the second, as a union."""
    start, end = one
    if not len(start):
        return start, end
    low, high = int(start[0]), int(end[-1])
    outside = (
        np.concatenate(([low], np.maximum(other[1], low))),
        np.concatenate((np.minimum(other[0], high), [high])),
    )
    filled = outside[1] > outside[0]
    return intersection(one, (outside[0][filled], outside[1][filled]))


def covered(start: np.ndarray, end: np.ndarray, by: Intervals) -> np.ndarray:
    """How much of each interval lies in the union `by`, int64 ns."""
    return _covered_before(by, end) - _covered_before(by, start)


def _covered_before(by: Intervals, moment: np.ndarray) -> np.ndarray:
    start, end = by
    if not len(start):
        return np.zeros(len(moment), np.int64)
    sums = np.concatenate(([0], np.cumsum(end - start)))
    begun = np.searchsorted(start, moment, side="right")
    last = np.maximum(begun - 1, 0)
    # the last interval that began may not be over yet
    return np.where(begun == 0, 0, sums[begun] - np.maximum(end[last] - moment, 0))


def busy_time(start: np.ndarray, end: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Summed time that the spans have spent before each moment, int64 ns.

    Spans may overlap: each counts by itself, so (busy_time(b) - busy_time(a)) / (b - a) is the
    mean number of spans open between a and b.
    """
    # Stable: these are the sorted rows of a few lanes, which merge.
    start, end = np.sort(start, kind="stable"), np.sort(end, kind="stable")
    return _time_since(start, at) - _time_since(end, at)


def _time_since(moments: np.ndarray, at: np.ndarray) -> np.ndarray:
    sums = np.concatenate(([0], np.cumsum(moments, dtype=np.int64)))
    passed = np.searchsorted(moments, at, side="right")
    return passed * at.astype(np.int64) - sums[passed]


def sub_rows(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Gives each interval the lowest row in which it overlaps no earlier one.

    Args:
      start: starts in ascending order.
      end: ends.

    Returns:
      Row per interval, uint16, counted from 0; all 0 when nothing overlaps.
    """
    rows = np.zeros(len(start), np.uint16)
    for a, b in _clusters(start, end):
        rows[a:b] = _first_fit(start[a:b].tolist(), end[a:b].tolist())
    return rows


def _clusters(start: np.ndarray, end: np.ndarray) -> list[tuple[int, int]]:
    """Stretches [a, b) of neighbors that overlap; one that overlaps none is in no stretch."""
    if len(start) < 2:
        return []
    joins = np.zeros(len(start) + 1, bool)
    joins[1:-1] = start[1:] < np.maximum.accumulate(end)[:-1]
    first = np.flatnonzero(~joins[:-1] & joins[1:])
    last = np.flatnonzero(joins[:-1] & ~joins[1:])
    return list(zip(first.tolist(), (last + 1).tolist(), strict=True))


def _first_fit(start: list[int], end: list[int]) -> list[int]:
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    rows = []
    for begin, finish in zip(start, end, strict=True):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        row = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (finish, row))
        rows.append(row)
    return rows


def parents(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For each interval the innermost one that contains it, -1 for none.

    Of two equal intervals the earlier row contains the later; an interval that merely crosses
    another is not contained in it.

    Args:
      start, end: intervals in any order.

    Returns:
      Row numbers, int64.
    """
    order = np.lexsort((-np.asarray(end, np.int64), start))
    low, high = start[order], end[order]
    found = np.full(len(start), -1, np.int64)
    for a, b in _clusters(low, high):
        inside = _innermost(low[a:b].tolist(), high[a:b].tolist())
        rows = order[a:b]
        found[rows] = np.where(inside < 0, -1, rows[inside])
    return found


def _innermost(start: list[int], end: list[int]) -> np.ndarray:
    """`parents` of intervals sorted by start, the longer one first."""
    parent = np.full(len(start), -1, np.int64)
    still_open: list[int] = []
    for row, (begin, finish) in enumerate(zip(start, end, strict=True)):
        while still_open and end[still_open[-1]] <= begin:
            still_open.pop()
        for outer in reversed(still_open):
            if end[outer] >= finish:
                parent[row] = outer
                break
        still_open.append(row)
    return parent


def self_time(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Duration of each interval less what those directly inside it cover, int64 ns."""
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    remaining = end - start
    parent = parents(start, end)
    inside = np.flatnonzero(parent >= 0)
    if not len(inside):
        return remaining
    # each parent gets a stretch of a line to itself, so one union serves all of them
    offset = np.concatenate(([0], np.cumsum(remaining + 1)))
    shift = offset[parent[inside]] - start[parent[inside]]
    low, high = union(start[inside] + shift, end[inside] + shift)
    owner = np.searchsorted(offset, low, side="right") - 1
    np.subtract.at(remaining, owner, high - low)
    return remaining

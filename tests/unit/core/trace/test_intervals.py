"""Interval arithmetic, held against counting single nanoseconds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.core.trace import intervals

PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=25)


def arrays(pairs):
    table = np.array([(a, a + n) for a, n in pairs], np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def sorted_arrays(pairs):
    return arrays(sorted(pairs, key=lambda p: p[0]))


def moments(start, end) -> set[int]:
    return {t for a, b in zip(start.tolist(), end.tolist(), strict=True) for t in range(a, b)}


def lie_apart(start, end) -> bool:
    return bool((end > start).all() and (start[1:] > end[:-1]).all())


def test_union_of_a_few():
    start, end = intervals.union(np.array([5, 0, 2, 9, 9]), np.array([6, 3, 5, 9, 10]))
    assert start.tolist() == [0, 9]
    assert end.tolist() == [6, 10]


@given(PAIRS)
def test_union_covers_the_same_moments(pairs):
    start, end = arrays(pairs)
    joined = intervals.union(start, end)
    assert lie_apart(*joined)
    assert moments(*joined) == moments(start, end)
    assert intervals.total(start, end) == len(moments(start, end))


@given(PAIRS, PAIRS)
def test_intersection_and_difference_are_those_of_sets(one, other):
    a, b = intervals.union(*arrays(one)), intervals.union(*arrays(other))
    both, rest = intervals.intersection(a, b), intervals.subtract(a, b)
    assert lie_apart(*both)
    assert lie_apart(*rest)
    assert moments(*both) == moments(*a) & moments(*b)
    assert moments(*rest) == moments(*a) - moments(*b)


@given(PAIRS, st.integers(0, 50), st.integers(0, 50))
def test_gaps_are_what_is_left(pairs, one, other):
    low, high = sorted((one, other))
    start, end = arrays(pairs)
    found = intervals.gaps(start, end, low, high)
    assert moments(*found) == set(range(low, high)) - moments(start, end)


@given(PAIRS, PAIRS)
def test_covered_counts_the_moments_of_each_interval(pairs, others):
    start, end = arrays(pairs)
    by = intervals.union(*arrays(others))
    expected = [len(set(range(a, b)) & moments(*by)) for a, b in zip(start, end, strict=True)]
    assert intervals.covered(start, end, by).tolist() == expected


@given(PAIRS)
def test_rows_hold_no_overlap_and_are_as_few_as_can_be(pairs):
    start, end = sorted_arrays(pairs)
    rows = intervals.sub_rows(start, end)
    for row in set(rows.tolist()):
        a, b = start[rows == row], end[rows == row]
        assert (a[1:] >= b[:-1]).all()
    crowd = max((int(((start <= t) & (end > t)).sum()) for t in range(53)), default=0)
    assert rows.max(initial=0) + 1 <= max(crowd, 1) + int((start == end).any())


def test_self_time_of_a_call_within_a_call():
    #        0 ─────────── 10
    #          2 ──── 7  8─9
    #            3─4
    start, end = np.array([0, 2, 3, 8]), np.array([10, 7, 4, 9])
    assert intervals.parents(start, end).tolist() == [-1, 0, 1, 0]
    assert intervals.self_time(start, end).tolist() == [4, 4, 1, 1]


def test_crossing_is_no_nesting():
    start, end = np.array([0, 5, 6]), np.array([8, 12, 7])
    assert intervals.parents(start, end).tolist() == [-1, -1, 1]
    assert intervals.self_time(start, end).tolist() == [8, 6, 1]


@given(PAIRS)
def test_parents_and_self_time_against_their_definition(pairs):
    start, end = arrays(pairs)
    order = sorted(range(len(start)), key=lambda i: (start[i], -end[i], i))
    parent = [-1] * len(start)
    for place, i in enumerate(order):
        for j in reversed(order[:place]):
            if start[j] <= start[i] and end[i] <= end[j] and end[j] > start[i]:
                parent[i] = j
                break
    assert intervals.parents(start, end).tolist() == parent
    for i, own in enumerate(intervals.self_time(start, end).tolist()):
        children = [j for j, p in enumerate(parent) if p == i]
        assert own == len(moments(start[[i]], end[[i]]) - moments(start[children], end[children]))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=12),
    st.lists(st.integers(0, 80), max_size=5),
)
def test_busy_time_is_what_counting_says(pairs, at):
    start, length = np.array(pairs, np.int64).reshape(-1, 2).T
    moments = np.array(at, np.int64)
    found = intervals.busy_time(start, start + length, moments)
    assert found.tolist() == [sum(min(max(t - s, 0), n) for s, n in pairs) for t in at]


def test_nothing_in_nothing_out():
    none = np.zeros(0, np.int64)
    assert intervals.total(none, none) == 0
    assert intervals.sub_rows(none, none).tolist() == []
    assert intervals.parents(none, none).tolist() == []
    assert intervals.self_time(none, none).tolist() == []
    assert intervals.covered(np.array([1]), np.array([5]), (none, none)).tolist() == [0]

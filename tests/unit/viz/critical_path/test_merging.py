"""A chain of many segments becomes few groups, and no time is lost."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from workbench.viz.critical_path.merging import FILLER, merged


def shown(durations, kinds, most=99, least=0):
    return [(g.first, g.last, g.kind, g.duration) for g in merged(durations, kinds, most, least)]


def test_neighbors_of_one_class_join():
    assert shown([5, 6, 7, 8], [1, 1, 2, 1]) == [(0, 2, 1, 11), (2, 3, 2, 7), (3, 4, 1, 8)]


def test_a_filler_joins_the_longer_neighbor_and_what_became_alike_joins():
    assert shown([5, 1, 9], [1, FILLER, 2]) == [(0, 1, 1, 5), (1, 3, 2, 10)]
    assert shown([5, 1, 4], [1, FILLER, 1]) == [(0, 3, 1, 10)]


def test_the_shortest_go_first_until_few_are_left():
    assert shown([50, 2, 40, 3, 30], [1, 2, 3, 4, 5], most=3) == [
        (0, 2, 1, 52),
        (2, 4, 3, 43),
        (4, 5, 5, 30),
    ]


def test_what_is_short_joins_even_where_there_is_room():
    assert shown([50, 2, 40], [1, 2, 3], least=3) == [(0, 2, 1, 52), (2, 3, 3, 40)]


def test_a_chain_of_fillers_alone_is_one_group_of_them():
    assert shown([5, 6], [FILLER, FILLER]) == [(0, 2, FILLER, 11)]
    assert merged([], [], 3) == []


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(FILLER, 3)), min_size=1, max_size=60),
    st.integers(1, 8),
    st.integers(0, 200),
)
def test_groups_join_without_a_hole_and_keep_the_time_of_the_chain(chain, most, least):
    durations, kinds = (list(column) for column in zip(*chain, strict=True))
    groups = merged(durations, kinds, most, least)
    assert 1 <= len(groups) <= most
    assert [g.first for g in groups] == [0, *(g.last for g in groups[:-1])]
    assert groups[-1].last == len(chain)
    assert all(g.duration == sum(durations[g.first : g.last]) for g in groups)
    if len(groups) > 1:
        assert all(g.duration >= least and g.kind != FILLER for g in groups)
        assert all(a.kind != b.kind for a, b in itertools.pairwise(groups))

"""Longest paths of small graphs, and of random ones against every path written out; ns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.graphs import graph
from workbench.core.graph.longest_paths import longest_paths, loops_back_of
from workbench.errors import OptionError, PlanError

# a → b, c → d
DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


def test_the_longer_branch_is_critical_and_the_other_has_slack():
    found = longest_paths([10, 30, 20, 5], DIAMOND)
    assert found.length_ns == 45
    assert found.path == (0, 1, 3)
    assert found.to_sink_ns.tolist() == [45, 35, 25, 5]
    assert found.from_source_ns.tolist() == [10, 40, 30, 45]
    assert found.slack_ns.tolist() == [0, 0, 10, 0]
    assert repr(found) == "LongestPaths(3 of 4 nodes, 45 ns)"


def test_of_equal_paths_the_lower_numbers_are_named():
    found = longest_paths([1, 7, 7, 1], DIAMOND)
    assert found.path == (0, 1, 3)
    assert found.slack_ns.tolist() == [0, 0, 0, 0]


def test_the_path_begins_at_a_start_even_where_that_costs_nothing():
    assert longest_paths([5, 0, 0], [(2, 1), (1, 0)]).path == (2, 1, 0)


def test_parts_that_do_not_hang_together():
    found = longest_paths([3, 4, 2], [(0, 2)])
    assert (found.path, found.length_ns) == ((0, 2), 5)
    assert found.slack_ns.tolist() == [0, 1, 0]


def test_nothing_at_all():
    found = longest_paths([], [])
    assert (found.path, found.length_ns, len(found.slack_ns)) == ((), 0, 0)
    assert found.to_sink_ns.dtype == found.slack_ns.dtype == np.int64


def test_costs_are_rounded_to_whole_nanoseconds():
    found = longest_paths(np.array([1.4, 1.6]), np.array([[0, 1]]))
    assert found.to_sink_ns.tolist() == [3, 2]


def test_a_loop_counts_once():
    view = graph(
        """
        start = Const
        enter = Enter(start)
        merge = Merge(enter, next)
        body = Neg(merge)
        next = NextIteration(body)
        exit = Exit(merge)
        after = Neg(exit)
        """
    )
    edges = view.data[:, [0, 2]]
    ns = [1, 2, 4, 8, 16, 32, 64]
    found = longest_paths(ns, edges, loops_back=loops_back_of(view.ops))
    assert [view.names[node] for node in found.path] == ["start", "enter", "merge", "exit", "after"]
    assert found.length_ns == 1 + 2 + 4 + 32 + 64
    # the way through the body ends where it would go round again
    assert found.to_sink_ns[view.number("body")] == 8 + 16
    with pytest.raises(PlanError, match="node 2 is in a cycle, or behind one"):
        longest_paths(ns, edges)


@pytest.mark.parametrize(
    ("costs", "edges", "said"),
    [
        ([1, -2], [], "the cost of node 1 is -2; expected nanoseconds from 0"),
        ([1.0, float("nan")], [], "the cost of node 1 is nan; expected nanoseconds"),
        ([float("inf")], [], "the cost of node 0 is inf; expected nanoseconds"),
        ([[1, 2]], [], r"costs have shape \(1, 2\); expected one number for each node"),
        ([1, 2], [(0, 1), (1, 2)], "edge 1 goes from 1 to 2; expected nodes from 0 to 1"),
        ([1, 2], [(-1, 0)], "edge 0 goes from -1 to 0"),
    ],
)
def test_what_is_no_graph_with_costs_is_refused(costs, edges, said):
    with pytest.raises(OptionError, match=said):
        longest_paths(costs, edges)


def every_path(count: int, edges: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """All paths from starts to ends, of nodes that edges lead upwards through."""
    after = {node: sorted({b for a, b in edges if a == node}) for node in range(count)}
    starts = [node for node in range(count) if all(b != node for _, b in edges)]
    done: list[tuple[int, ...]] = []
    waiting = [(node,) for node in starts]
    while waiting:
        path = waiting.pop()
        done += [] if after[path[-1]] else [path]
        waiting += [(*path, node) for node in after[path[-1]]]
    return done


@st.composite
def weighted(draw):
    count = draw(st.integers(1, 8))
    pairs = list(itertools.combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), max_size=20)) if pairs else []
    # any numbering of the nodes, so that edges go up and down
    names = draw(st.permutations(range(count)))
    costs = draw(st.lists(st.integers(0, 50), min_size=count, max_size=count))
    return costs, edges, names


@settings(deadline=None)
@given(weighted())
def test_it_is_what_every_path_written_out_gives(case):
    costs, edges, names = case
    renamed = [(names[a], names[b]) for a, b in edges]
    given_costs = [0] * len(costs)
    for node, cost in enumerate(costs):
        given_costs[names[node]] = cost
    found = longest_paths(given_costs, renamed)
    paths = [tuple(names[n] for n in path) for path in every_path(len(costs), edges)]

    def length(path):
        return sum(given_costs[node] for node in path)

    longest = max(map(length, paths))
    assert found.length_ns == longest
    assert found.path == min(path for path in paths if length(path) == longest)
    for node in range(len(costs)):
        through = [path for path in paths if node in path]
        assert found.to_sink_ns[node] == max(length(p[p.index(node) :]) for p in through)
        assert found.from_source_ns[node] == max(length(p[: p.index(node) + 1]) for p in through)
        assert found.slack_ns[node] == longest - max(map(length, through))


def test_ten_thousand_nodes_take_no_noticeable_time():
    rng = np.random.default_rng(0)
    edges = np.sort(rng.integers(0, 10_000, (30_000, 2)), axis=1)
    edges = edges[edges[:, 0] < edges[:, 1]]
    costs = rng.integers(0, 1000, 10_000)
    found = longest_paths(costs, edges)
    assert found.length_ns == costs[list(found.path)].sum()
    assert found.slack_ns.min() == 0
    # a chain is the deepest graph there is
    chain = np.stack([np.arange(9_999), np.arange(1, 10_000)], axis=1)
    assert longest_paths(costs, chain).length_ns == costs.sum()

"""GraphView: order, reachability, shortest paths, fingerprint."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.builders.graphs import graph
from workbench.core.graph.flow_order import flow_order
from workbench.core.graph.graph_view import GraphView, edges
from workbench.errors import PlanError

DIAMOND = """
a = Const
b = Neg(a)
c = Abs(a, ^b)
d = AddV2(b, c)
e = NoOp(^d)
"""


def names(view: GraphView, chosen) -> set[str]:
    return {view.names[i] for i in np.flatnonzero(chosen)}


def test_what_depends_on_a_node_is_reached_over_data_and_control_edges():
    view = graph(DIAMOND)
    assert names(view, view.reached(view.mask([view.number("b")]))) == {"b", "c", "d", "e"}
    assert names(view, view.ancestors(view.mask([view.number("c")]))) == {"a", "b", "c"}


def test_reaching_does_not_leave_what_it_is_kept_within():
    view = graph(DIAMOND)
    within = ~view.mask([view.number("d")])
    assert names(view, view.reached(view.mask([0]), within=within)) == {"a", "b", "c"}
    assert names(view, view.reached(view.mask([3]), within=within)) == set()


def test_inputs_come_in_their_order():
    view = graph("a = Const int64 int64\nb = Neg(a:1)\nc = Pack(b, a:1, a:0, ^b)")
    assert view.inputs(2) == [(1, 0), (0, 1), (0, 0)]
    assert view.control_inputs(2) == [1]
    assert view.tensor(0, 1) == "a:1"


def test_a_name_may_be_that_of_a_tensor_or_of_a_control_input():
    view = graph(DIAMOND)
    assert [view.number(name) for name in ("d", "d:0", "^d")] == [3, 3, 3]
    with pytest.raises(PlanError, match="no node 'z'; expected one of its 5 nodes"):
        view.number("z:1")


def test_the_way_back_is_a_shortest_one():
    view = graph("a = Const\nb = Neg(a)\nc = Neg(b)\nd = AddV2(c, a)\ne = Const")
    next_hop = view.nearest(view.mask([0]))
    assert next_hop.tolist() == [0, 0, 1, 0, -1]


def test_the_flow_goes_once_through_a_loop_and_a_cycle_comes_last():
    loop = graph(
        "z = Neg(b, s)\na = Merge(s, c)\nb = Neg(a)\nc = NextIteration(b)\ns = Const\n"
        "x = Neg(y)\ny = Neg(x)"
    )
    assert [loop.names[node] for node in flow_order(loop)] == ["s", "a", "b", "z", "c", "x", "y"]


def test_a_cycle_has_no_order():
    view = graph("a = Merge(c)\nb = Neg(a)\nc = NextIteration(b)")
    with pytest.raises(PlanError, match="is in a cycle"):
        view.ordered(np.ones(3, bool))


def test_the_fingerprint_tells_every_edge_and_forgets_the_order_and_the_rest():
    view = graph(DIAMOND)
    region = view.ancestors(view.mask([view.number("d")]))
    turned = graph("\n".join(reversed(DIAMOND.strip().splitlines())))
    again = turned.ancestors(turned.mask([turned.number("d")]))
    assert turned.fingerprint(again) == view.fingerprint(region)
    assert len(view.fingerprint(region)) == 32
    for other in (
        DIAMOND.replace("AddV2(b, c)", "AddV2(c, b)"),
        DIAMOND.replace("Abs(a, ^b)", "Abs(a)"),
        DIAMOND.replace("Abs", "Neg"),
    ):
        changed = graph(other)
        assert changed.fingerprint(region) != view.fingerprint(region)
    longer = graph(DIAMOND + "f = Neg(d)")
    region = longer.ancestors(longer.mask([longer.number("d")]))
    assert longer.fingerprint(region) == view.fingerprint(view.mask(range(4)))


@hypothesis.given(st.data())
def test_order_and_reach_hold_on_any_acyclic_graph(data):
    count = data.draw(st.integers(1, 12))
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    drawn = data.draw(st.lists(pair, max_size=30))
    pairs = sorted({(min(p), max(p)) for p in drawn if p[0] != p[1]})
    shuffled = data.draw(st.permutations(range(count)))
    moved = [(shuffled[a], shuffled[b]) for a, b in pairs]
    half = len(moved) // 2
    view = GraphView(
        names=tuple(f"n{i}" for i in range(count)),
        ops=("Neg",) * count,
        devices=("",) * count,
        outputs=(("float32",),) * count,
        data=edges([(a, 0, b, i) for i, (a, b) in enumerate(moved[:half])], 4),
        control=edges(moved[half:], 2),
    )
    place = {node: i for i, node in enumerate(view.ordered(np.ones(count, bool)))}
    assert sorted(place) == list(range(count))
    assert all(place[a] < place[b] for a, b in moved)
    rank = np.argsort(flow_order(view))
    assert all(rank[a] < rank[b] for a, b in moved)
    start = data.draw(st.integers(0, count - 1))
    reach = view.reached(view.mask([start]))
    assert all(reach[b] for a, b in moved if reach[a])
    for other in range(count):
        assert reach[other] == view.ancestors(view.mask([other]))[start]
    next_hop = view.nearest(view.mask([start]))
    assert ((next_hop >= 0) == reach).all()

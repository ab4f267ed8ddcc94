"""How sides of tiny graphs run alone; ns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.graphs import graph
from workbench.core.graph.graph_view import GraphView
from workbench.core.simulation.dispatch import COST_MODEL, INLINE, NORMAL
from workbench.core.simulation.list_schedule import schedule
from workbench.core.simulation.pipeline import Work

DIAMOND = """
a = Const
b = Neg(a)
c = Neg(a)
d = Add(b, c)
"""


def runs(view: GraphView, *, threads: int = 2, cores: float = 2, per_op: float = 1, **ns) -> Work:
    span = np.array([float(ns.get(name, 0)) for name in view.names])
    everything = np.ones(len(view), bool)
    return schedule(
        view,
        everything,
        span,
        threads=threads,
        cores=cores,
        cores_per_op=per_op,
        dispatch=dataclasses.replace(NORMAL, short_ns=0),
    ).behind


def test_nodes_side_by_side_take_a_thread_each():
    work = runs(graph(DIAMOND), a=10, b=20, c=30, d=10)
    assert work.alone_ns == pytest.approx(50)
    assert work.cpu_ns == pytest.approx(70)
    assert work.pool_ns == pytest.approx(70)
    assert runs(graph(DIAMOND), threads=1, a=10, b=20, c=30, d=10).alone_ns == pytest.approx(70)


def test_ops_side_by_side_take_as_long_as_they_were_traced_to():
    both = runs(graph(DIAMOND), per_op=2, a=10, b=20, c=20, d=10)
    # b and c were traced beside each other; what they keep busy counts for other sides
    assert both.alone_ns == pytest.approx(10 + 20 + 10)
    assert both.cpu_ns == pytest.approx(2 * 40)
    wide = runs(graph(DIAMOND), cores=4, per_op=2, a=10, b=20, c=20, d=10)
    assert wide.alone_ns == pytest.approx(40)
    assert wide.cpu_ns == pytest.approx(2 * 10 + 4 * 20 + 2 * 10)


def test_ops_that_want_more_cores_than_there_are_take_longer():
    one = runs(graph(DIAMOND), threads=2, cores=1, a=10, b=20, c=20, d=10)
    assert one.alone_ns == pytest.approx(10 + 40 + 10)
    split = runs(graph("a = Const\nb = Neg(a)"), threads=1, cores=1, per_op=2, a=10, b=20)
    assert split.alone_ns == pytest.approx(60)


def test_a_thread_that_rests_takes_a_moment_to_wake():
    view = graph(DIAMOND)
    span = np.array([10.0, 20.0, 20.0, 10.0])
    chosen = np.ones(len(view), bool)
    at_once = dataclasses.replace(NORMAL, short_ns=0)
    work = schedule(view, chosen, span, threads=2, cores=2, dispatch=at_once, wake_ns=3).behind
    # c begins 3 later than b, on the thread that rested
    assert work.alone_ns == pytest.approx(10 + 23 + 10)


def test_a_thread_keeps_the_short_nodes_that_it_makes_ready():
    view = graph(DIAMOND)
    span = np.array([10.0, 20.0, 20.0, 10.0])
    chosen = np.ones(len(view), bool)
    keeps = dataclasses.replace(NORMAL, short_ns=20)
    assert schedule(view, chosen, span, threads=2, cores=2, dispatch=keeps).behind.alone_ns == (
        pytest.approx(60)
    )
    # of the long ones it runs the last, and leaves the others to whoever is free
    long = np.array([10.0, 21.0, 21.0, 10.0])
    assert schedule(view, chosen, long, threads=2, cores=2, dispatch=keeps).behind.alone_ns == (
        pytest.approx(41)
    )


def test_the_longest_path_goes_first_where_the_executor_knows_it():
    view = graph("a = Const\ns = Neg(a)\nt = Neg(a)\nx = Neg(a)\ny = Neg(x)")
    span = np.array([0.0, 10.0, 10.0, 10.0, 20.0])
    chosen = np.ones(len(view), bool)
    by_path = schedule(view, chosen, span, threads=2, cores=2, dispatch=COST_MODEL).behind
    at_once = dataclasses.replace(NORMAL, short_ns=0)
    in_turn = schedule(view, chosen, span, threads=2, cores=2, dispatch=at_once).behind
    assert (by_path.alone_ns, in_turn.alone_ns) == (pytest.approx(30), pytest.approx(40))


def test_under_the_cost_model_the_thread_that_calls_is_awake():
    view = graph("a = Const\nb = Neg(a)\nc = Neg(a)\nd = Neg(b, c)\ne = Neg(b, c)")
    span = np.array([10_000.0, 31_000.0, 30_000.0, 20_000.0, 20_000.0])
    chosen = np.ones(len(view), bool)
    rests = dataclasses.replace(COST_MODEL, calls=False)
    calling, resting = (
        schedule(view, chosen, span, threads=2, cores=2, dispatch=each, wake_ns=3_000).behind
        for each in (COST_MODEL, rests)
    )
    # c begins 3 later than b and ends 2 later, on the other thread; then one of two has rested.
    assert calling.alone_ns == pytest.approx(10_000 + 33_000 + 20_000)
    assert resting.alone_ns == pytest.approx(10_000 + 33_000 + 23_000)


def test_under_the_cost_model_a_thread_keeps_short_nodes_and_shares_many():
    def lasts(count):
        lines = "".join(f"\nn{number} = Neg(a)" for number in range(count))
        view = graph(f"a = Const{lines}")
        span = np.array([10_000.0, *[4_000.0] * count])
        chosen = np.ones(len(view), bool)
        return schedule(view, chosen, span, threads=2, cores=2, dispatch=COST_MODEL).behind.alone_ns

    assert lasts(4) == pytest.approx(10_000 + 4 * 4_000)
    # Of more than four batches of 5 a thread that has none takes half.
    assert lasts(12) == pytest.approx(10_000 + 6 * 4_000)


def test_one_thread_runs_all_inline_and_takes_no_thread_of_the_pool():
    view = graph(DIAMOND)
    span = np.array([10.0, 20.0, 30.0, 10.0])
    chosen = np.ones(len(view), bool)
    work = schedule(view, chosen, span, threads=2, cores=2, dispatch=INLINE).behind
    assert (work.alone_ns, work.pool_ns) == (pytest.approx(70), 0)


def test_wide_stretches_and_narrow_ones_stay_apart():
    pieces = runs(graph(DIAMOND), a=100, b=100, c=100, d=100).pieces
    assert [round(cores) for _, _, cores in pieces] == [1] * 5 + [2] * 6 + [1] * 5


def test_only_the_chosen_nodes_run_and_the_others_hold_nobody_up():
    view = graph(DIAMOND)
    span = np.full(len(view), 10.0)
    chosen = view.mask([view.number("c"), view.number("d")])
    assert schedule(view, chosen, span, threads=2, cores=2).behind.alone_ns == pytest.approx(20)


def test_what_needs_no_input_runs_while_the_input_delivers():
    view = graph("next = IteratorGetNext\nread = ReadVariableOp\nrows = Gather(read, next)")
    span = np.array([0.0, 30.0, 10.0])
    chosen = np.ones(len(view), bool)
    soon = schedule(view, chosen, span, threads=2, cores=2, inputs_ns={0: 20.0})
    # the table is read until 30, and the input is there at 20
    assert (soon.beside.alone_ns, soon.behind.alone_ns) == (pytest.approx(20), pytest.approx(20))
    late = schedule(view, chosen, span, threads=2, cores=2, inputs_ns={0: 50.0})
    # that the side then waits for nothing but its input counts as no work
    assert (late.beside.alone_ns, late.behind.alone_ns) == (pytest.approx(30), pytest.approx(10))
    assert late.beside.cpu_ns == pytest.approx(30)


def test_what_costs_nothing_takes_no_thread():
    view = graph("a = Const\nb = Neg(a)\nc = Neg(b)\nx = Neg(a)\ny = Neg(x)")
    assert runs(view, threads=1, c=5, y=5).alone_ns == pytest.approx(10)
    assert runs(view).pieces == ()


def test_a_loop_runs_once():
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
    assert runs(view, body=30, after=10, threads=1).alone_ns == pytest.approx(40)


def test_a_stage_that_is_gone_leaves_its_take_behind_its_put():
    view = graph(
        """
        parse = Const
        owner = Placeholder int64
        put = WorkbenchBufferPut(owner, parse)
        take = WorkbenchBufferTake float32
        dense = Neg(take)
        """,
        shared={"put": "b", "take": "b"},
    )
    assert runs(view, parse=10, dense=20).alone_ns == pytest.approx(30)
    apart = graph(
        "parse = Const\nput = WorkbenchBufferPut(parse)\ntake = WorkbenchBufferTake\n"
        "dense = Neg(take)",
        shared={"put": "b", "take": "another"},
    )
    assert runs(apart, parse=10, dense=20).alone_ns == pytest.approx(20)


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=10),
    st.integers(1, 4),
    st.sampled_from([0.5, 1.0, 1.7]),
)
def test_a_side_takes_at_least_its_work_and_at_most_all_in_turn(
    edges: list[list[int]], cores: int, per_op: float
):
    lines = [
        f"n{i} = Op({', '.join(f'n{j % i}' for j in sources) if i else ''})"
        for i, sources in enumerate(edges)
    ]
    spans = {f"n{i}": 1.0 + i % 3 for i in range(len(edges))}
    work = runs(graph("\n".join(lines)), threads=cores, cores=cores, per_op=per_op, **spans)
    total = sum(spans.values())
    assert work.cpu_ns <= total * max(per_op, 1.0) * 1.0001
    least = max(total / cores, max(spans.values()))
    assert least <= work.alone_ns * 1.0001
    assert work.alone_ns <= total * max(1.0, per_op / cores) * 1.0001

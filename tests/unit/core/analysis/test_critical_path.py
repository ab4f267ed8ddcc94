"""The chain that steps take as long as, solved by hand on small traces, in whole ns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.embedding_lenses import stock_trace
from tests.builders.traces import make_trace, unstaged_trace
from workbench.core.analysis.critical_path import critical_path
from workbench.core.analysis.path.executed_graph import NO_EVENT, executed_graph
from workbench.errors import TraceError

STEP, POOL, PREFETCH = 0, 1, 2
TRACKS = (
    ("Main step", "step", 0, ""),
    ("Inter-op 0", "inter_op", 0, ""),
    ("Prefetch 0", "prefetch", 0, "in"),
    ("Inter-op 1", "inter_op", 1, ""),
)
OTHER_POOL = 3
# A diamond: read → left, right → join.
READ, LEFT, RIGHT, JOIN, TAKE, PUT = range(6)
NODES = (
    ("read", "ReaderReadV2"),
    ("a/left", "MatMul"),
    ("a/right", "Gather"),
    ("b/join", "Add"),
    ("in/take", "WorkbenchBufferTake"),
    ("in/put", "WorkbenchBufferPut"),
)
DIAMOND = ((READ, LEFT, 0), (READ, RIGHT, 0), (LEFT, JOIN, 0), (RIGHT, JOIN, 1))


def chain(path) -> list[tuple[str, str, int, int]]:
    """(name or kind, kind, start, end) of each segment."""
    names = path.trace.nodes["name"]
    return [
        (
            names[row.node] if row.node >= 0 else row.kind,
            row.kind,
            row.start_ns,
            row.start_ns + row.dur_ns,
        )
        for row in path.segments.itertuples()
    ]


def of_one_step(**more):
    return make_trace(
        [
            # start, duration, delay since it was ready, node, track, step
            (10, 20, 4, READ, POOL, 1),
            (31, 40, 1, LEFT, POOL, 1),
            (35, 10, 5, RIGHT, OTHER_POOL, 1),
            (80, 15, 6, JOIN, POOL, 1),
        ],
        nodes=NODES,
        tracks=TRACKS,
        runs=[(STEP, 1, 2, 100)],
        edges=DIAMOND,
        **more,
    )


def test_the_longer_branch_decides_and_each_gap_has_a_name():
    path = critical_path(of_one_step())
    assert chain(path) == [
        ("call of the step", "call of the step", 2, 6),
        ("read", "wait for a thread", 6, 10),
        ("read", "op", 10, 30),
        ("a/left", "wait for a thread", 30, 31),
        ("a/left", "op", 31, 71),
        ("b/join", "dispatch", 71, 74),
        ("b/join", "wait for a thread", 74, 80),
        ("b/join", "op", 80, 95),
        ("return of the step", "return of the step", 95, 100),
    ]
    assert path.step_ns == 98
    assert repr(path) == "CriticalPath(1 steps, 0.000 ms a step)"


def test_the_tables_say_how_much_of_a_step_each_part_is():
    path = critical_path(of_one_step())
    assert path.df[["name", "kind", "ns"]].values.tolist()[:3] == [
        ["a/left", "op", 40.0],
        ["read", "op", 20.0],
        ["b/join", "op", 15.0],
    ]
    assert path.df["ns"].sum() == 98
    assert path.df["share"].sum() == pytest.approx(1)
    by_kind = dict(zip(path.by_kind()["kind"], path.by_kind()["ns"], strict=True))
    assert by_kind["op"] == 75 and by_kind["wait for a thread"] == 11
    families = dict(zip(path.by_family()["family"], path.by_family()["ns"], strict=True))
    assert families == {"Dense matmul": 40, "Input, decode": 20, "Control, other": 15}
    scopes = dict(zip(path.by_scope()["scope"], path.by_scope()["ns"], strict=True))
    assert scopes == {"a": 40, "read": 20, "b": 15}


def test_the_path_says_what_each_embedding_table_takes_of_it():
    found = critical_path(stock_trace()).by_feature()
    # lookup 20 + 30 µs, gradient 10, update 5 + 15, of a step of 100
    assert found.to_dict("records") == [
        {
            "feature": "table",
            "lookup": 50_000,
            "gradient": 10_000,
            "update": 20_000,
            "ns": 80_000,
            "share": 0.8,
        }
    ]
    assert not len(critical_path(of_one_step()).by_feature())


def test_slack_is_how_much_later_an_op_could_have_ended():
    path = critical_path(of_one_step())
    # left and join are on the chain; right ended at 45, and join could wait for it until 71.
    assert path.slack_ns.tolist() == [0, 0, 26, 0]


def test_steps_follow_each_other():
    trace = make_trace(
        [(10, 5, 0, READ, POOL, 1), (30, 10, 2, READ, POOL, 2)],
        nodes=NODES,
        tracks=TRACKS,
        runs=[(STEP, 1, 8, 20), (STEP, 2, 23, 45)],
        edges=DIAMOND,
    )
    assert chain(critical_path(trace)) == [
        ("call of the step", "call of the step", 8, 10),
        ("read", "op", 10, 15),
        ("return of the step", "return of the step", 15, 20),
        ("between steps", "between steps", 20, 23),
        ("call of the step", "call of the step", 23, 28),
        ("read", "wait for a thread", 28, 30),
        ("read", "op", 30, 40),
        ("return of the step", "return of the step", 40, 45),
    ]


def staged(events, items, runs):
    return make_trace(
        events,
        nodes=NODES,
        tracks=TRACKS,
        runs=runs,
        items=items,
        edges=((READ, PUT, 0), (TAKE, LEFT, 0)),
    )


MS = 1_000_000


def test_a_take_that_waited_for_an_item_of_an_unknown_run_is_a_wait_of_the_step():
    trace = staged(
        [(95 * MS, 5 * MS, MS, LEFT, POOL, 1)],
        [("in", 0, 91 * MS, 92 * MS, 3 * MS, 93 * MS, PREFETCH, -1, 1, STEP)],
        [(STEP, 1, 2 * MS, 102 * MS)],
    )
    assert chain(critical_path(trace))[:2] == [
        ("call of the step", "call of the step", 2 * MS, 3 * MS),
        ("take", "take", 3 * MS, 93 * MS),
    ]


def test_a_take_that_waited_leads_to_the_run_that_put_its_item():
    trace = staged(
        [
            (10 * MS, 80 * MS, MS, READ, PREFETCH, 1),
            (95 * MS, 5 * MS, MS, LEFT, POOL, 1),
        ],
        # stage, item, put called, admitted, take called, taken, put by, of run, step, client
        [("in", 0, 91 * MS, 92 * MS, 3 * MS, 93 * MS, PREFETCH, 1, 1, STEP)],
        [(STEP, 1, 2 * MS, 102 * MS), (PREFETCH, 1, 8 * MS, 93 * MS)],
    )
    path = critical_path(trace)
    assert chain(path) == [
        ("not traced", "not traced", 2 * MS, 8 * MS),
        ("between stage runs", "between stage runs", 8 * MS, 9 * MS),
        ("read", "wait for a thread", 9 * MS, 10 * MS),
        ("read", "op", 10 * MS, 90 * MS),
        ("put", "put", 90 * MS, 92 * MS),
        ("take", "take", 92 * MS, 93 * MS),
        ("a/left", "dispatch", 93 * MS, 94 * MS),
        ("a/left", "wait for a thread", 94 * MS, 95 * MS),
        ("a/left", "op", 95 * MS, 100 * MS),
        ("return of the step", "return of the step", 100 * MS, 102 * MS),
    ]
    sides = path.segments.groupby("side")["dur_ns"].sum().to_dict()
    assert sides == {"stage": 84 * MS, "step": 16 * MS}


def test_a_take_that_found_an_item_leads_to_its_own_step():
    trace = staged(
        [(5 * MS, 10 * MS, 0, LEFT, POOL, 1)],
        [("in", 0, 0, MS, 4 * MS, 4 * MS + 500, PREFETCH, 1, 1, STEP)],
        [(STEP, 1, 2 * MS, 20 * MS)],
    )
    assert [kind for _, kind, *_ in chain(critical_path(trace))] == [
        "call of the step",
        "take",
        "dispatch",
        "op",
        "return of the step",
    ]


def test_a_put_that_waited_leads_to_the_take_that_made_room():
    """The stage is the faster side: its run before ended only when a step took an item."""
    trace = staged(
        [
            (100 * MS, 10 * MS, 0, READ, PREFETCH, 2),
            (62 * MS, 20 * MS, 0, LEFT, POOL, 1),
            (115 * MS, 5 * MS, 0, LEFT, POOL, 2),
        ],
        [
            ("in", 0, 5 * MS, 6 * MS, 60 * MS, 60 * MS + 900, -1, -1, 1, STEP),
            ("in", 1, 10 * MS, 61 * MS, -1, -1, PREFETCH, 1, -1, -1),
            ("in", 2, 110 * MS, 111 * MS, 90 * MS, 112 * MS, PREFETCH, 2, 2, STEP),
        ],
        [
            (STEP, 1, 50 * MS, 85 * MS),
            (STEP, 2, 86 * MS, 125 * MS),
            (PREFETCH, 1, 1 * MS, 62 * MS),
            (PREFETCH, 2, 95 * MS, 112 * MS),
        ],
    )
    kinds = [(name, start // MS, end // MS) for name, _, start, end in chain(critical_path(trace))]
    assert kinds == [
        ("call of the step", 50, 60),
        ("take", 60, 60),
        ("put", 60, 61),
        ("between stage runs", 61, 95),
        ("between stage runs", 95, 100),
        ("read", 100, 110),
        ("put", 110, 111),
        ("take", 111, 112),
        ("a/left", 112, 115),
        ("a/left", 115, 120),
        ("return of the step", 120, 125),
    ]


def test_a_loop_waits_for_its_round_before():
    """Merge runs twice: first after Enter, then after NextIteration."""
    enter, merge, body, again = range(4)
    trace = make_trace(
        [
            (10, 1, 0, enter, POOL, 1),
            (12, 1, 0, merge, POOL, 1),
            (14, 10, 0, body, POOL, 1),
            (25, 1, 0, again, POOL, 1),
            (27, 1, 0, merge, POOL, 1),
            (30, 10, 0, body, POOL, 1),
        ],
        nodes=(("enter", "Enter"), ("merge", "Merge"), ("body", "Tanh"), ("n", "NextIteration")),
        tracks=TRACKS,
        runs=[(STEP, 1, 10, 40)],
        edges=((enter, merge, 0), (again, merge, 0), (merge, body, 0), (body, again, 0)),
    )
    graph = executed_graph(trace)
    assert graph.producer.tolist() == [NO_EVENT, 0, 1, 2, 3, 4]
    ops = [name for name, kind, *_ in chain(critical_path(trace)) if kind == "op"]
    assert ops == ["enter", "merge", "body", "n", "merge", "body"]


def test_a_trace_without_steps_or_edges_says_what_to_do():
    with pytest.raises(TraceError, match="the trace has no step, .*capture some steps"):
        critical_path(make_trace())
    with pytest.raises(TraceError, match="does not know which op feeds which.*without step_stats"):
        critical_path(unstaged_trace())


@st.composite
def executed(draw):
    """A trace of a random graph, run as soon as the inputs of each node are there."""
    count = draw(st.integers(2, 12))
    edges = [(0, 1, 0)] + [
        (source, target, 0)
        for target in range(2, count)
        for source in draw(st.sets(st.integers(0, target - 1), max_size=3))
    ]
    events, runs = [], []
    moment = draw(st.integers(0, 50))
    for step in range(1, draw(st.integers(1, 4)) + 1):
        begin = moment
        moment += draw(st.integers(0, 9))
        ends: list[int] = []
        for node in range(count):
            fed = [ends[source] for source, target, _ in edges if target == node]
            ready = max(fed, default=moment) + draw(st.integers(0, 5))
            start = ready + draw(st.integers(0, 5))
            length = draw(st.integers(1, 40))
            ends.append(start + length)
            events.append((start, length, start - ready, node, POOL, step))
        moment = max(ends) + draw(st.integers(0, 9))
        runs.append((STEP, step, begin, moment))
        moment += draw(st.integers(0, 9))
    nodes = [(f"n{i}", "Add") for i in range(count)]
    return make_trace(events, nodes=nodes, tracks=TRACKS, runs=runs, edges=edges)


@given(executed())
def test_the_chain_joins_from_the_first_begin_to_the_last_end(trace):
    path = critical_path(trace)
    start, dur = path.segments["start_ns"].to_numpy(), path.segments["dur_ns"].to_numpy()
    assert start[0] == path.begin_ns == trace.runs["start_ns"].min()
    assert start[-1] + dur[-1] == path.end_ns == trace.runs["end_ns"].max()
    assert (start[1:] == start[:-1] + dur[:-1]).all()
    assert (dur > 0).all()
    # Nothing but executed ops and waits that are named.
    assert "not traced" not in set(path.segments["kind"])


@given(executed(), st.data())
def test_an_op_off_the_chain_may_be_slower_by_its_slack(trace, data):
    """Its run ends as before; and one ns beyond the slack it would not."""
    slack = critical_path(trace).slack_ns
    event = data.draw(st.integers(0, len(slack) - 1))
    assert ends_of_runs(delayed(trace, event, int(slack[event]))) == ends_of_runs(trace)
    assert ends_of_runs(delayed(trace, event, int(slack[event]) + 1)) != ends_of_runs(trace)


def delayed(trace, event: int, by_ns: int) -> pd.DataFrame:
    """Start and end of each event when one takes longer, each as long after its last input."""
    graph = executed_graph(trace)
    producers, consumers = graph.dependencies
    before = graph.producer
    end = graph.end_ns.copy()
    for i in np.argsort(graph.start_ns, kind="stable").tolist():
        if before[i] != NO_EVENT:
            fed = graph.end_ns[before[i]]
            later = max(int(end[p]) for p in producers[consumers == i]) - int(fed)
            end[i] = graph.end_ns[i] + max(0, later)
        end[i] += by_ns if i == event else 0
    return pd.DataFrame({"run": graph.run, "end": end})


def ends_of_runs(events) -> dict[int, int]:
    if not isinstance(events, pd.DataFrame):
        graph = executed_graph(events)
        events = pd.DataFrame({"run": graph.run, "end": graph.end_ns})
    return events.groupby("run")["end"].max().to_dict()

"""What steps do when, by hand."""

from __future__ import annotations

from tests.builders.traces import make_trace
from workbench.core.analysis.step_phases import step_phases

STEP, POOL, PREFETCH = range(3)
TRACKS = (
    ("Main step", "step", 0, ""),
    ("Inter-op 0", "inter_op", 0, ""),
    ("Prefetch 0", "prefetch", 0, "in"),
)


def found(events=(), runs=(), items=()):
    trace = make_trace(
        list(events), nodes=(("a", "Add"),), tracks=TRACKS, runs=list(runs), items=list(items)
    )
    phases = step_phases(trace)
    return [
        [list(stretch) for stretch in zip(*(edge.tolist() for edge in union), strict=True)]
        for union in (phases.calls, phases.returns)
    ]


def op(start, end, step, track=POOL):
    return (start, end - start, 0, 0, track, step)


def test_before_the_first_op_and_after_the_last():
    events = [op(20, 30, 1), op(40, 60, 1), op(0, 100, 1, PREFETCH), op(130, 140, 2)]
    calls, returns = found(events, [(STEP, 1, 10, 70), (STEP, 2, 120, 150)])
    assert calls == [[10, 20], [120, 130]]
    assert returns == [[60, 70], [140, 150]]


def test_a_take_counts_as_an_op_where_both_its_ends_were_seen():
    items = [
        ("in", 0, 0, 5, 15, 25, -1, -1, 1, STEP),
        ("in", 1, 0, 5, -1, 45, -1, -1, 1, STEP),
    ]
    assert found([op(30, 40, 1)], [(STEP, 1, 10, 50)], items) == [[[10, 15]], [[40, 50]]]


def test_time_in_which_another_step_is_among_its_ops_is_neither():
    events = [op(20, 60, 1), op(50, 90, 2)]
    assert found(events, [(STEP, 1, 10, 70), (STEP, 2, 15, 100)]) == [[[10, 20]], [[90, 100]]]


def test_a_step_without_an_op_only_returns():
    events = [op(20, 60, 1)]
    assert found(events, [(STEP, 1, 10, 70), (STEP, 2, 80, 90)]) == [
        [[10, 20]],
        [[60, 70], [80, 90]],
    ]


def test_ops_without_a_step_are_around_nothing():
    assert found([op(20, 60, 1)]) == [[], []]


def test_runs_and_waits_of_all_clients_are_unions():
    wait = 20_000
    items = [
        ("in", 0, 0, 5, 10, 10 + wait, -1, -1, 1, STEP),
        ("in", 1, 0, 5, 50, 50 + wait, -1, -1, 2, STEP),
        ("in", 2, 0, 5, 90_000, 90_000 + wait - 1, -1, -1, 3, STEP),
    ]
    runs = [(STEP, 1, 0, 40_000), (STEP, 2, 5, 50_000), (PREFETCH, 1, 0, 70_000)]
    phases = step_phases(make_trace(tracks=TRACKS, runs=runs, items=items))
    assert [edge.tolist() for edge in phases.runs] == [[0], [50_000]]
    assert [edge.tolist() for edge in phases.waits] == [[10], [50 + wait]]

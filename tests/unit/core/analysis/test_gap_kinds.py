"""Names of gaps."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.traces import unstaged_trace
from workbench.core.analysis.path import gap_kinds as gaps
from workbench.core.analysis.step_phases import StepPhases
from workbench.core.trace.meta import TraceMeta
from workbench.viz.timeline.view import timeline_view

NONE = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def spans(*pairs: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def kinds(  # type: ignore[no-untyped-def]
    *rows: tuple[int, int, int, int],
    waits=NONE,
    calls=NONE,
    returns=NONE,
    runs=((0, 1000),),
    cores=None,
) -> list[str]:
    lane, start, end, delay = np.array(rows, np.int64).T
    found = gaps.gap_kinds(
        lane,
        start,
        end,
        delay,
        phases=StepPhases(waits=waits, calls=calls, returns=returns, runs=spans(*runs)),
        meta=TraceMeta(cores=cores),
    )
    return [gaps.GAP_NAMES[code] for code in found]


def test_nothing_before_the_first_span_of_a_lane_nor_where_spans_touch() -> None:
    assert kinds((0, 50, 60, 0), (0, 60, 70, 0), (1, 90, 95, 0)) == ["", "", ""]


def test_no_ready_node() -> None:
    assert kinds((0, 0, 10, 0), (0, 50, 60, 3))[1] == "no ready node"


def test_wait_in_take_where_it_covers_half() -> None:
    rows = ((0, 0, 10, 0), (0, 50, 60, 0))
    assert kinds(*rows, waits=spans((5, 30)))[1] == "wait in take"
    assert kinds(*rows, waits=spans((5, 29)))[1] == "no ready node"


def test_between_steps() -> None:
    rows = ((0, 0, 10, 0), (0, 50, 60, 0))
    assert kinds(*rows, runs=((0, 12), (48, 100)))[1] == "between steps"


def test_around_the_ops_of_steps_the_longest_part_names_the_stretch() -> None:
    rows = ((0, 0, 10, 0), (0, 50, 60, 0))
    runs = ((0, 30), (40, 100))
    returns, calls = spans((14, 30)), spans((40, 48))
    assert kinds(*rows, returns=returns, calls=calls, runs=runs)[1] == "return of the step"
    returns, calls = spans((25, 30)), spans((31, 49))
    assert kinds(*rows, returns=returns, calls=calls, runs=runs)[1] == "call of the step"
    assert kinds(*rows, returns=spans((15, 20)), runs=((0, 20), (45, 90)))[1] == "between steps"
    # together under half of the stretch, the rest of which lies among the ops of a step
    assert kinds(*rows, returns=spans((20, 30)), calls=spans((40, 45)))[1] == "no ready node"


def test_dispatch_where_the_op_was_ready() -> None:
    assert kinds((0, 0, 10, 0), (0, 50, 60, 20))[1] == "dispatch"


def test_core_contention_where_as_many_ops_ran_as_there_are_cores() -> None:
    rows = ((0, 0, 10, 0), (0, 50, 60, 40), (1, 0, 60, 0), (2, 0, 60, 0))
    assert kinds(*rows, cores=2)[1] == "core contention"
    assert kinds(*rows, cores=3)[1] == "dispatch"
    assert kinds(*rows)[1] == "dispatch"


def test_a_trace_of_another_tool_does_not_know_whether_a_node_was_ready() -> None:
    trace = unstaged_trace(2)
    names = {
        source: {
            gaps.GAP_NAMES[kind]
            for kind in timeline_view(
                dataclasses.replace(trace, meta=dataclasses.replace(trace.meta, source=source))
            ).spans.gap
        }
        for source in ("executor", "Chrome JSON")
    }
    assert "no ready node" in names["executor"]
    assert names["Chrome JSON"] == names["executor"] - {"no ready node"} | {"no op"}


UNION = st.lists(st.integers(0, 60), max_size=8, unique=True).map(
    lambda edges: spans(*zip(*[iter(sorted(edges))] * 2, strict=False))
)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 9)), max_size=8),
    *[UNION] * 4,
)
def test_a_gap_has_the_name_that_it_has_alone(rows, waits, calls, returns, runs) -> None:  # type: ignore[no-untyped-def]
    idle, length, delay = np.array(rows, np.int64).reshape(-1, 3).T
    end = np.cumsum(idle + length)
    phases = StepPhases(waits=waits, calls=calls, returns=returns, runs=runs)
    known = {"phases": phases, "meta": TraceMeta()}
    columns = (np.zeros(len(end), np.int64), end - length, end, delay)
    found = gaps.gap_kinds(*columns, **known)
    alone = [
        gaps.gap_kinds(*(column[at : at + 2] for column in columns), **known)[-1]
        for at in range(len(end) - 1)
    ]
    assert found[1:].tolist() == alone

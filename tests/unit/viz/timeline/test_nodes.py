"""Which span of a graph node the browser selects."""

from __future__ import annotations

import numpy as np

from tests.builders.critical_paths import three_steps
from tests.builders.timelines import TRACE, in_browser
from tests.builders.traces import STAGE_NODES, staged_trace
from workbench.viz.timeline.view import TimelineView, timeline_view

FIND = "spanOfNode(model, value.node, value.k, value.t)"


def found(view: TimelineView, node: str, k: int = -1, t: float = 0.0) -> int:
    span = in_browser(view, FIND, node=node, k=k, t=t)
    assert isinstance(span, int)
    return span


def name_of(view: TimelineView, span: int) -> str:
    return str(view.nodes["name"].iloc[view.spans.name[span]])


def test_a_node_of_the_step_is_found_in_each_step() -> None:
    view = timeline_view(staged_trace(6))
    ops = np.flatnonzero(view.spans.row >= 0)
    steps = view.steps["number"].tolist()
    node = next(name for name in view.nodes["name"] if "MatMul" in name)
    for k, number in enumerate(steps):
        span = found(view, node, k)
        assert span in ops and name_of(view, span) == node
        assert view.spans.step[span] == number


def test_of_a_stage_it_is_the_run_that_made_the_steps_item() -> None:
    view = timeline_view(TRACE)
    span = found(view, "hash", 0)
    # of two that ran for the step as long as each other, one
    assert name_of(view, span) == "hash" and view.spans.step[span] == 7
    late = timeline_view(staged_trace(6))
    read = STAGE_NODES[0][0]
    chosen = [found(late, read, k) for k in range(len(late.steps))]
    assert len(set(chosen)) == len(chosen)
    assert sorted(late.spans.start[chosen].tolist()) == late.spans.start[chosen].tolist()


def test_outside_of_the_step_it_is_the_nearest() -> None:
    trace = three_steps()
    view = timeline_view(trace)
    node = name_of(view, int(np.flatnonzero(view.spans.row >= 0)[0]))
    first, last = found(view, node, t=0.0), found(view, node, t=float(view.duration_ns))
    assert view.spans.start[first] < view.spans.start[last]


def test_what_is_no_node_is_not_found() -> None:
    view = timeline_view(TRACE)
    for name in ("wait in take", "put", "run step", "nothing", ""):
        assert found(view, name, 0) == -1


def test_a_span_tells_its_node() -> None:
    for view in (timeline_view(TRACE), timeline_view(three_steps())):
        told = in_browser(view, "[...model.name].map((_, i) => nodeOf(model, i))")
        nodes = view.path_names - 4
        assert told == [
            view.nodes["name"].iloc[name] if name < nodes else "" for name in view.spans.name
        ]
    assert in_browser(timeline_view(TRACE), "nodeOf(model, -1)") == ""

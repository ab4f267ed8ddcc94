"""The critical path in the timeline: its lane, its ops, and what must not count it twice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.builders.critical_paths import three_steps, waiting_step
from tests.builders.javascript import evaluate
from tests.builders.timelines import TRACE, in_browser
from tests.builders.traces import MS, START_NS
from workbench.viz.timeline import path as timeline_path
from workbench.viz.timeline.view import TimelineView, timeline_view


def lane_of(view: TimelineView):
    return next(lane for lane in view.lanes if lane.kind == "critical")


def stretches(view: TimelineView) -> list[tuple[str, int, int, int]]:
    """Name, begin and end in ms, and step of each span of the lane."""
    lane, spans = lane_of(view), view.spans
    rows = slice(lane.first, lane.first + lane.count)
    names = view.nodes["name"].to_numpy()[spans.name[rows]].tolist()
    starts = ((spans.start[rows] - START_NS) // MS).tolist()
    ends = ((spans.end[rows] - START_NS) // MS).tolist()
    return list(zip(names, starts, ends, spans.step[rows].tolist(), strict=True))


def test_the_lane_stands_below_the_main_step_and_is_contiguous():
    view = timeline_view(three_steps())
    assert [lane.kind for lane in view.lanes[:2]] == ["step", "critical"]
    assert lane_of(view).label == lane_of(view).title == "Critical path"
    assert lane_of(view).group == view.lanes[0].group
    assert stretches(view)[:7] == [
        ("call of the step", 0, 4, 1),
        ("Input, decode", 4, 24, 1),
        ("Control, other", 24, 25, 1),
        ("wait for a thread", 25, 30, 1),
        ("Dense matmul", 30, 90, 1),
        ("return of the step", 90, 100, 1),
        ("call of the step", 100, 104, 2),
    ]
    found = stretches(view)
    assert [begin for _, begin, *_ in found[1:]] == [end for _, _, end, _ in found[:-1]]


def test_neighbors_of_one_family_are_one_stretch():
    names = [name for name, *_ in stretches(timeline_view(waiting_step()))]
    assert "Input, decode" in names and names[-2:] == ["Dense matmul", "return of the step"]
    assert all(one != other for one, other in itertools.pairwise(names))


def test_short_waits_between_ops_count_as_what_is_before():
    name = np.array([2, 9, 3, 9, 9])
    timeline_path._join_short_waits(name, np.array([True, False, True, False, True]))
    assert name.tolist() == [2, 2, 3, 3, 9]


def test_each_op_on_the_path_is_marked():
    view = timeline_view(three_steps())
    on_path = view.columns["critical"].astype(bool)
    names = set(view.nodes["name"].to_numpy()[view.spans.name[on_path]])
    assert names == {"read", "a/keep", "top/join"}
    assert on_path.sum() == 9


def test_a_trace_without_edges_or_with_too_many_events_has_no_lane(monkeypatch):
    bare = timeline_view(TRACE)
    assert "critical" not in {lane.kind for lane in bare.lanes}
    assert "critical" not in bare.columns.by_name
    monkeypatch.setattr(timeline_path, "MAX_PATH_EVENTS", 11)
    assert "critical" not in {lane.kind for lane in timeline_view(three_steps()).lanes}


def test_the_lane_counts_in_no_table_and_no_search():
    view = timeline_view(three_steps())
    table = view.in_view()
    assert sorted(table["op"]) == ["Identity", "MatMul", "ReaderReadV2", "ResourceGather"]
    assert dict(zip(table["op"], table["spans"], strict=True))["MatMul"] == 3
    window = [0, view.duration_ns]
    rows = in_browser(view, "inView(model, value.window)", window=window)
    assert [list(row.values()) for row in rows] == table.values.tolist()
    totals = "matchTotals(model, findMatches(model, value.query))"
    assert in_browser(view, totals, query="matmul") == {"count": 0, "total": 0}
    assert in_browser(view, totals, query="join")["count"] == 3


def test_browser_follows_the_path_by_time():
    view = timeline_view(three_steps())
    walked = in_browser(view, "pathOrder(model).map((i) => model.names[model.name[i]])")
    assert walked == ["read", "a/keep", "top/join"] * 3


@pytest.mark.parametrize("path", [True, False])
def test_the_lane_has_a_row_only_where_it_is_asked_for(path):
    header = timeline_view(waiting_step()).to_json_header()
    kinds = "layoutLanes(value.lanes, value.path).rows.map(({lane}) => lane.kind)"
    found = evaluate(kinds, {**header, "path": path})
    expected = ["step", "critical", "prefetch", "buffer", "inter_op"]
    assert found == [kind for kind in expected if path or kind != "critical"]
    of = "layoutLanes(value.lanes, value.path).of.map((row) => (row ? row.lane.kind : null))"
    rows = evaluate(of, {**header, "path": path})
    assert rows[:3] == ["step", "critical" if path else None, "prefetch"]


def test_merged_columns_know_whether_they_are_on_the_path():
    view = timeline_view(three_steps())
    merge = (
        "((into) => { mergeLane(model, model.lanes.at(value.lane), [0, model.duration], into,"
        " null, 99, value.marks ? model.critical : null); return [...into.path]; })(newColumns(1))"
    )
    # in a single pixel everything is merged; the last thread ran lookups alone
    assert in_browser(view, merge, lane=-2, marks=True) == [1]
    assert in_browser(view, merge, lane=-1, marks=True) == [0]
    assert in_browser(view, merge, lane=-2, marks=False) == [0]

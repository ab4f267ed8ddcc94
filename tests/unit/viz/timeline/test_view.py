"""Trace → TimelineView: lanes, spans, buffers, and what its sentences say."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.builders.timelines import MS, TRACE, drawn_texts, picture_of
from tests.builders.traces import START_NS, make_trace, staged_trace, unstaged_trace
from workbench.core.analysis.path.gap_kinds import GAP_NAMES
from workbench.core.graph import op_families
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace
from workbench.viz.timeline.html import timeline_static_html
from workbench.viz.timeline.view import TimelineView, timeline_view


def rows(view: TimelineView, lane: int) -> list[tuple[str, float, float]]:
    """(name, start, duration) of a lane's spans in ms from the start of the trace."""
    place, spans = view.lanes[lane], view.spans
    part = slice(place.first, place.first + place.count)
    names = view.nodes["name"].iloc[spans.name[part]].tolist()
    start = (spans.start[part] - view.origin_ns) / MS
    width = (spans.end - spans.start)[part] / MS
    return list(zip(names, start.tolist(), width.tolist(), strict=True))


def sentence(trace: Trace) -> str:
    return "".join(text for text, _ in timeline_view(trace).sentence).replace("\u00a0", " ")


def noted(trace: Trace, **meta: Any) -> Trace:
    return dataclasses.replace(trace, meta=dataclasses.replace(trace.meta, **meta))


def test_lanes_stand_in_their_order_with_sub_rows_and_waits() -> None:
    view = timeline_view(TRACE)
    assert [(lane.kind, lane.label, lane.title) for lane in view.lanes] == [
        ("step", "Main step", "Main step"),
        ("prefetch", "Prefetch 0", "Prefetch 0, row 1"),
        ("prefetch", "", "Prefetch 0, row 2"),
        ("buffer", "Buffer", "Buffer"),
        ("inter_op", "Inter-op 0", "Inter-op 0"),
    ]
    assert rows(view, 0) == [("wait in take", 1, 4), ("run step", 5, 6)]
    assert rows(view, 1) == [("read", 0, 2), ("hash", 2, 1), ("wait in put", 3.5, 1.5)]
    assert rows(view, 2) == [("hash", 2.5, 1)]
    assert rows(view, 4) == [("lookup", 5, 3), ("gradients/top/MatMul", 9, 1)]
    assert [lane.group for lane in view.lanes] == [0, 1, 1, 1, 1000]


def test_gaps_are_named_only_between_ops_of_steps() -> None:
    view = timeline_view(TRACE)
    assert view.spans.gap.tolist() == [0, 0, 0, 0, 0, 0, 0, 3]


def test_sentence_says_what_a_step_costs_and_waits_for() -> None:
    assert sentence(TRACE) == "A step takes 10.0 ms traced, 4.0 ms of it waiting in take."
    assert sentence(unstaged_trace(4)) == (
        "A step takes 10.0 ms traced (median of 4); for 4.0 ms of it an input op runs."
    )
    assert sentence(make_trace()) == "The trace holds nothing."
    assert sentence(make_trace([(START_NS, 5, 0, 0, 2, 1)])) == (
        "The trace holds 1 ops, but no run of a step."
    )


def test_sentence_sets_the_measured_step_beside_the_traced_one() -> None:
    untraced = UntracedSteps(steps=28, step_ns=9_990_000, cpu_ns=1, run_ns=9_800_000)
    assert sentence(noted(unstaged_trace(4), untraced=untraced)) == (
        "A step takes 10.0 ms traced, 9.8 ms measured (medians of 4 and 28 steps); "
        "for 4.0 ms of it an input op runs."
    )
    view = timeline_view(noted(TRACE, untraced=UntracedSteps(steps=9, step_ns=9_700_000)))
    assert [text for text, strong in view.sentence if strong] == ["10.0\u00a0ms", "9.7\u00a0ms"]
    # the time of the traced steps themselves measures nothing
    own = dataclasses.replace(untraced, while_traced=True)
    assert "measured" not in sentence(noted(TRACE, untraced=own))


def test_a_notice_says_that_step_stats_were_the_tracer_and_why() -> None:
    assert timeline_view(TRACE).notice == ""
    view = timeline_view(
        noted(TRACE, source="step_stats", step_stats="step_stats=True asked for them")
    )
    assert view.notice == (
        "Traced with TensorFlow's step stats, which lengthen every step and op: "
        "step_stats=True asked for them."
    )
    assert view.notice in view.describe()
    # of an older trace
    assert timeline_view(noted(TRACE, source="step_stats")).notice.endswith("step and op.")
    both = timeline_view(noted(unstaged_trace(4), source="step_stats"), steps=(2, 3)).notice
    assert both.startswith("Steps 2 to 3 of the trace. Traced with")


def test_gaps_around_the_ops_of_a_step_are_its_call_and_return() -> None:
    def run(step: int, at: int) -> tuple[int, int, int, int]:
        return (0, step, START_NS + at * MS, START_NS + (at + 10) * MS)

    def op(at: int, step: int) -> tuple[int, int, int, int, int, int]:
        return (START_NS + at * MS, MS, 0, 0, 2, step)

    def named(*events: tuple[int, int, int, int, int, int]) -> list[str]:
        runs = (run(1, 0), run(2, 10), run(3, 20), run(4, 40))
        view = timeline_view(make_trace(events, runs=runs))
        return [GAP_NAMES[code] for code in view.spans.gap.tolist() if code]

    assert named(op(0, 1), op(9, 1), op(18, 2), op(19, 2), op(20, 3), op(21, 3), op(41, 4)) == [
        "no ready node",
        "call of the step",
        "between steps",
    ]
    assert named(op(1, 1), op(12, 2), op(29, 3)) == ["return of the step", "call of the step"]


def test_sentence_counts_the_steps_that_wait() -> None:
    assert sentence(staged_trace(5)) == (
        "A step takes 5.9 ms traced (median of 5). 1 of 5 steps waits in take, 1.0 ms in the "
        "median."
    )


def test_sentence_without_waits() -> None:
    items = TRACE.items.assign(take_start_ns=TRACE.items["take_end_ns"] - 5_000)
    trace = Trace(**{**TRACE.tables(), "items": items}, meta=TRACE.meta)
    assert sentence(trace) == "A step takes 10.0 ms traced. No step waits in take."
    # a short take is no wait: the run stays in one piece, and a short put is an op
    assert [name for name, _, _ in rows(timeline_view(trace), 0)] == ["run step"]


def test_without_a_stage_its_lanes_are_absent() -> None:
    view = timeline_view(unstaged_trace())
    assert [lane.kind for lane in view.lanes] == ["step", "inter_op", "inter_op"]
    assert len(view.columns["flowPut"]) == len(view.columns["occTime"]) == 0


def test_buffers_of_several_stages_tell_themselves_apart() -> None:
    stages = ("smart_stage_input", "smart_stage")
    trace = make_trace(
        runs=[(0, 1, START_NS, START_NS + 9 * MS)],
        tracks=[("Main step", "step", 0, ""), ("Prefetch 0", "prefetch", 0, stages[0]),
                ("Prefetch 1", "prefetch", 1, stages[1])],
        items=[(stage, 0, START_NS, START_NS + MS, START_NS + 2 * MS, START_NS + 3 * MS, i, 1, 1, 0)
               for i, stage in enumerate(stages, 1)],
    )  # fmt: skip
    view = timeline_view(trace)
    assert [(lane.label, lane.detail, lane.title) for lane in view.lanes[1:]] == [
        ("Prefetch 0", "", "Prefetch 0 of “smart_stage_input”"),
        ("Buffer", "…input", "Buffer of “smart_stage_input”"),
        ("Prefetch 1", "", "Prefetch 1 of “smart_stage”"),
        ("Buffer", "…stage", "Buffer of “smart_stage”"),
    ]
    texts = drawn_texts(picture_of(timeline_static_html(view)))
    assert texts.count("…input") == texts.count("…stage") == 1


def test_buffer_counts_what_it_held_before_the_trace() -> None:
    items = TRACE.items.assign(put_start_ns=-1, put_end_ns=-1, put_track=-1, put_run=-1)
    view = timeline_view(Trace(**{**TRACE.tables(), "items": items}, meta=TRACE.meta))
    (buffer,) = [lane for lane in view.lanes if lane.kind == "buffer"]
    assert (buffer.held, buffer.capacity) == (1, 2)
    assert view.columns["occCount"].tolist() == [0]
    assert len(view.columns["flowPut"]) == 0


def test_flow_leads_from_the_put_to_the_take_of_the_same_item() -> None:
    columns = timeline_view(TRACE).columns
    parts = ("Put", "Take", "From", "To", "Run", "Step")
    assert [columns[f"flow{part}"].tolist() for part in parts] == [
        [5 * MS],
        [5 * MS],
        [1],
        [0],
        [7],
        [3],
    ]


def test_strip_shares_add_up_to_the_busy_time() -> None:
    view = timeline_view(TRACE)
    busy = view.columns["stripBusy"].reshape(-1, 8).sum(axis=0) / 255
    binned = busy / 2048 * view.duration_ns / MS
    assert binned[op_families.LOOKUP] == pytest.approx(3, abs=0.05)
    assert binned[op_families.GRADIENT] == pytest.approx(1, abs=0.05)
    assert binned[op_families.INPUT] == 0
    wait = view.columns["stripWait"].sum() / 255 / 2048 * view.duration_ns / MS
    assert wait == pytest.approx(4, abs=0.05)


def test_steps_and_too_many_events_leave_a_notice() -> None:
    trace = staged_trace(260)
    view = timeline_view(trace, steps=(5, 7))
    assert view.steps["number"].tolist() == [5, 6, 7]
    assert view.notice == "Steps 5 to 7 of the trace."
    view = timeline_view(trace, max_events=500)
    assert view.steps["number"].tolist() == list(range(161, 261))
    assert view.notice == (
        "1\u2009562 events: showing the last 100 steps. Open another range with steps=(61, 161)."
    )
    missing = timeline_view(trace, steps=(900, 901))
    assert missing.notice == "The trace holds no step from 900 to 901."
    assert timeline_view(trace).notice == ""


def test_in_view_sums_what_a_stretch_holds() -> None:
    view = timeline_view(TRACE)
    found = view.in_view(4_500_000, 9_500_000).to_dict("list")
    assert found["op"] == ["ResourceGather", "MatMul", "wait in put", "wait in take"]
    assert found["total_ns"] == [3 * MS, 500_000, 500_000, 500_000]
    assert found["spans"] == [1, 1, 1, 1]
    assert found["longest_ns"] == [3 * MS, 1 * MS, 1_500_000, 4 * MS]


def test_describe_is_plain_text() -> None:
    assert timeline_view(TRACE).describe().splitlines() == [
        "Timeline of By hand",
        "A step takes 10.0\u00a0ms traced, 4.0\u00a0ms of it waiting in take.",
        "1 step, 5 ops, 11.0\u00a0ms in all.",
    ]


def test_header_is_small_and_plain() -> None:
    header = timeline_view(staged_trace(200)).to_json_header()
    assert len(json.dumps(header, allow_nan=False)) < 6_000
    assert header["bytes"] == len(timeline_view(staged_trace(200)).columns.buffer())
    assert all(offset % 8 == 0 for _, _, offset, _ in header["columns"])

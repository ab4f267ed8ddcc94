"""Trace → TimelineView: lanes, spans, buffers, and what its sentences say."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

<<<<<<< HEAD
from tests.builders.javascript import evaluate
from tests.builders.traces import START_NS, big_trace, make_trace, staged_trace, unstaged_trace
from workbench.core.graph import op_families
=======
from tests.builders.timelines import MS, TRACE, drawn_texts, picture_of
from tests.builders.traces import START_NS, make_trace, staged_trace, unstaged_trace
>>>>>>> main
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace
from workbench.viz.style import colors
from workbench.viz.timeline.gaps import GAP_NAMES
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
<<<<<<< HEAD


def test_browser_reads_the_same_spans() -> None:
    view = timeline_view(staged_trace(6))
    found = in_browser(
        view,
        "({start: [...model.start], dur: [...model.dur], delay: [...model.delay],"
        " names: [...model.name].map(k => model.names[k]), family: [...model.family],"
        " ops: [...model.name].map(k => model.ops[model.nameOp[k]])})",
    )
    spans = view.spans
    assert found["start"] == (spans.start - view.origin_ns).tolist()
    assert found["dur"] == (spans.end - spans.start).tolist()
    assert found["delay"] == spans.delay.tolist()
    for column, name in (("name", "names"), ("op", "ops"), ("family", "family")):
        assert found[name] == view.nodes[column].iloc[spans.name].tolist()


def test_a_packed_trace_is_small_and_quick_to_pack() -> None:
    trace = big_trace(200_000)
    begin = time.process_time()
    view = timeline_view(trace)
    drawn = time.process_time()
    packed = view.columns.packed
    assert len(packed) < 6 * len(trace.events)
    assert zlib.decompress(packed) == view.columns.buffer()
    # packing took six times as long as all the rest
    assert time.process_time() - drawn < 2 * (drawn - begin)


def test_long_stretches_stay_exact_to_the_nanosecond() -> None:
    late = 3_600_000_000_000 + 7  # an hour, far beyond 32 bits
    trace = make_trace(
        [(START_NS, 1, 0, 2, 2, 1), (START_NS + late, 5_000_000_001, 3, 2, 2, 1)],
        runs=[(0, 1, START_NS, START_NS + late + 5_000_000_001)],
    )
    found = in_browser(timeline_view(trace), "({start: [...model.start], dur: [...model.dur]})")
    assert found == {"start": [0, 0, late], "dur": [late + 5_000_000_001, 1, 5_000_000_001]}


def test_browser_sums_the_same_table() -> None:
    view = timeline_view(staged_trace(30))
    for low, high in ((0, view.duration_ns), (11_000_000, 64_321_987), (5, 6)):
        found = in_browser(view, "inView(model, value.window)", window=[low, high])
        wanted = view.in_view(low, high)
        assert [list(row.values()) for row in found] == wanted.values.tolist()


def test_browser_refuses_an_unknown_format_and_short_data() -> None:
    view = timeline_view(TRACE)
    header = view.to_json_header()
    try_decode = "(() => { try { decode(...value); } catch (error) { return error.message; } })()"
    assert evaluate(try_decode, [{**header, "version": 9}]) == (
        "Timeline format 9; this page reads 2. Run the cell again."
    )
    short = DECODE.replace("bytes.buffer", "bytes.buffer.slice(0, 8)") % "0"
    message = f"(() => {{ try {{ return {short} }} catch (error) {{ return error.message }} }})()"
    blob = base64.b64encode(view.columns.buffer()).decode()
    assert evaluate(message, {"header": header, "blob": blob}) == (
        f"The trace data has 8 of {header['bytes']} bytes."
    )


SPAN = st.tuples(st.integers(0, 60), st.integers(0, 25), st.integers(0, 5), st.integers(1, 3))


@given(st.lists(SPAN, min_size=1, max_size=14))
@settings(deadline=None, max_examples=25)
def test_no_lane_holds_overlapping_spans_and_none_is_lost(spans: list[tuple[int, ...]]) -> None:
    events = [(START_NS + s, d, 0, node, track, 1) for s, d, node, track in spans]
    tracks = (("Main step", "step", 0, ""), ("Prefetch 0", "prefetch", 0, "input"),
              ("Inter-op 0", "inter_op", 0, ""), ("Inter-op 1", "inter_op", 1, ""))  # fmt: skip
    view = timeline_view(make_trace(events, tracks=tracks, runs=[(0, 1, START_NS, START_NS + 99)]))
    for lane in view.lanes:
        part = slice(lane.first, lane.first + lane.count)
        assert (view.spans.start[part][1:] >= view.spans.end[part][:-1]).all()
    ops = view.spans.row[view.spans.row >= 0]
    assert sorted(ops.tolist()) == list(range(len(spans)))


MERGE = """(() => {
  const model = decode(value.header, fromBase64(value.blob).buffer);
  const columns = newColumns(value.pixels);
  return model.lanes.filter(l => l.kind !== "buffer").map(lane => {
    mergeLane(model, lane, value.window, columns, null, 64);
    const cover = [...columns.cover];
    const scale = value.pixels / (value.window[1] - value.window[0]);
    const clip = i => Math.min(model.start[i] + model.dur[i], value.window[1])
      - Math.max(model.start[i], value.window[0]);
    const singles = columns.singles.reduce((sum, i) => sum + clip(i) * scale, 0);
    return [cover.reduce((a, b) => a + b, 0) + singles, Math.max(0, ...cover)];
  });
})()"""


@pytest.mark.parametrize("pixels", [700, 97, 10, 3])
@pytest.mark.parametrize("share", [(0.0, 1.0), (0.31, 0.77), (0.5, 0.51)])
def test_merging_loses_no_time_of_a_lane(pixels: int, share: tuple[float, float]) -> None:
    view = timeline_view(staged_trace(40))
    low, high = (round(view.duration_ns * s) for s in share)
    found = evaluate(MERGE, {
        "header": view.to_json_header(),
        "blob": base64.b64encode(view.columns.buffer()).decode(),
        "pixels": pixels, "window": [low, high],
    })  # fmt: skip
    lanes = [lane for lane in view.lanes if lane.kind != "buffer"]
    for lane, (total, most) in zip(lanes, found, strict=True):
        part = slice(lane.first, lane.first + lane.count)
        inside = np.minimum(view.spans.end[part] - view.origin_ns, high)
        inside = inside - np.maximum(view.spans.start[part] - view.origin_ns, low)
        wanted = inside.clip(0).sum() / (high - low) * pixels
        assert total == pytest.approx(wanted, abs=1e-6 * pixels)
        assert most <= 1 + 1e-6


def test_windows_stay_inside_and_the_pointer_keeps_its_moment() -> None:
    total = 50 * MS
    found = evaluate(
        "({zoomed: zoomWindow([0, 50e6], 0.5, 10e6, 50e6), out: zoomWindow([0, 50e6], 9, 1, 50e6),"
        " panned: panWindow([40e6, 50e6], 5, 50e6), least: zoomWindow([0, 2000], 1e-9, 500, 50e6)})"
    )
    low, high = found["zoomed"]
    assert (10 * MS - low) / (high - low) == pytest.approx(0.2)
    assert found["out"] == pytest.approx([-0.02 * total, 1.02 * total])
    assert found["panned"] == pytest.approx([1.02 * total - 10 * MS, 1.02 * total])
    assert found["least"][1] - found["least"][0] == pytest.approx(1000)


def test_ruler_labels_are_round_and_exact() -> None:
    def labels(low: float, high: float) -> list[str]:
        ruler = evaluate("rulerTicks(value, 700)", [low, high])
        return [tick["label"] for tick in ruler["ticks"]] + [ruler["unit"]]

    assert labels(107e6, 145e6) == ["110", "115", "120", "125", "130", "135", "140", "145", "ms"]
    assert labels(128.7e6, 132.3e6)[:2] == ["129.0", "129.5"]
    assert labels(1e6, 1e6 + 3000)[:3] == ["1.0000", "1.0005", "1.0010"]
    assert labels(0, 60e9)[-2:] == ["60", "s"]


def test_search_counts_spans_and_time() -> None:
    view = timeline_view(staged_trace(4))
    words = "matchWords(model, findMatches(model, value.query), value.query)"
    assert in_browser(view, words, query=" MATMUL ") == "8 spans, 4.3\u00a0ms a step"
    assert in_browser(view, words, query="c99") == "No op has “c99” in its name"
    assert in_browser(view, words, query="wait in take") == ("No op has “wait in take” in its name")
    assert in_browser(view, words, query="  ") == ""


ODD_NAMES = ("<script>alert(1)</script>", "</script><b>", "a&b\"'", "<img src=x>")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_text_wherever_they_go(name: str) -> None:
    nodes = [(name, name), ("b", "MatMul")]
    trace = make_trace(
        [(START_NS, MS, 0, 0, 2, 1), (START_NS + MS, MS, 0, 1, 2, 1)],
        nodes=nodes,
        tracks=(("Main", "step", 0, ""), (name, "prefetch", 0, name), (name, "inter_op", 0, "")),
        runs=[(0, 1, START_NS, START_NS + 2 * MS)],
        title=name,
    )
    view = timeline_view(trace)
    made = timeline_html(view, "one") + timeline_static_html(view)
    assert name not in made
    assert len(re.findall(r"<script", made)) == len(re.findall(r"</script>", made)) == 2
    assert name in in_browser(view, "model.names")


def test_html_wants_an_identifier() -> None:
    with pytest.raises(ValueError, match="element_id is 'a b'; expected letters, digits"):
        timeline_html(timeline_view(TRACE), "a b")


def _drawn(still: str) -> ElementTree.Element:
    """The picture in a still."""
    picture = re.search(r'<img src="data:image/svg\+xml;base64,([^"]+)"', still)
    assert picture is not None
    return ElementTree.fromstring(base64.b64decode(picture[1]))


def _drawn_texts(drawn: ElementTree.Element) -> list[str | None]:
    return [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]


def test_ids_are_unique_on_a_page_of_several() -> None:
    views = timeline_view(TRACE), timeline_view(staged_trace())
    page = timeline_html(views[0], "a") + timeline_html(views[0], "b")
    page += "".join(timeline_static_html(view) for view in views)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)) == 8


def test_still_picture_is_small_and_tells_the_answer() -> None:
    made = timeline_static_html(timeline_view(staged_trace(300)))
    assert len(made) < 30_000
    for words in ("A step takes", "ResourceGather", "</table>"):
        assert words in made
    drawn = _drawn(made)
    assert "Main step" in _drawn_texts(drawn)
    # one shape for each family of a lane that is not empty
    fills = [path.get("fill") for path in drawn.iter("{http://www.w3.org/2000/svg}path")]
    assert {
        colors.FAMILIES[op_families.LOOKUP].light,
        colors.FAMILIES[op_families.INPUT].light,
    } <= set(fills)
    assert len(fills) < 30


def test_timelines_on_one_scale_have_the_time_of_the_longest() -> None:
    views = [timeline_view(unstaged_trace(6)), timeline_view(staged_trace(6))]
    short, long = sorted(on_one_scale(views), key=lambda view: view.duration_ns)
    assert short.scale == long.scale
    assert long.scale is not None
    assert long.scale.whole_ns == long.duration_ns > short.duration_ns
    opened = [view.to_json_header()["shown"] for view in (short, long)]
    starts, times = long.steps["start_ns"].to_numpy(), long.steps["dur_ns"].to_numpy()
    assert opened == [int(starts[4] + times[4] - starts[2])] * 2
    widths = []
    for view in (short, long):
        low, high = in_browser(view, "newState(model, null).window")
        widths.append(high - low)
    assert widths[0] == pytest.approx(widths[1])
    end = format.duration(long.duration_ns)
    assert all(end in _drawn_texts(_drawn(timeline_static_html(view))) for view in (short, long))


def test_a_timeline_alone_has_its_own_scale() -> None:
    (view,) = on_one_scale([timeline_view(staged_trace(6))])
    assert view.scale is None
    assert view.to_json_header()["shown"] == 0


def test_short_traces_are_shown_whole_on_one_scale() -> None:
    views = on_one_scale([timeline_view(staged_trace(2)), timeline_view(staged_trace(3))])
    assert views[0].scale is not None
    assert views[0].scale.shown_ns == max(view.duration_ns for view in views)
=======
>>>>>>> main

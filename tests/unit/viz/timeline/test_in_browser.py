"""The browser reads the same timeline from the blob, and merges, moves and searches it."""

from __future__ import annotations

import base64
import dataclasses
import time
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.javascript import evaluate
from tests.builders.timelines import DECODE, MS, TRACE, in_browser
from tests.builders.traces import STAGE_NODES, START_NS, big_trace, make_trace, staged_trace
from workbench.core.graph.op_families import LOOKUP
from workbench.viz.timeline.view import timeline_view

SPAN = st.tuples(st.integers(0, 60), st.integers(0, 25), st.integers(0, 5), st.integers(1, 3))

MERGE = """(() => {
  const model = decode(value.header, fromBase64(value.blob));
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


def test_a_span_names_the_line_that_made_its_op() -> None:
    trace = staged_trace(2)
    lines = ["/home/me/model/train.py:7 build", "Cell:3 f", *[""] * (len(trace.nodes) - 2)]
    view = timeline_view(dataclasses.replace(trace, nodes=trace.nodes.assign(source=lines)))
    found = in_browser(
        view,
        "[...model.name].map((_, i) => [spanName(model, i),"
        " ...factsOf(model, i).filter(([label]) => label === 'Source').map(([, line]) => line)])",
    )
    read, hashed = (name for name, _ in STAGE_NODES)
    shown = {name: line for name, *line in found}
    assert shown.pop(read) == ["train.py:7 build"] and shown.pop(hashed) == ["Cell:3 f"]
    assert set(map(tuple, shown.values())) == {()}


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


def test_browser_sums_only_the_families_that_are_kept() -> None:
    view = timeline_view(staged_trace(8))
    kept = [0] * 10
    kept[LOOKUP] = 1
    found = in_browser(view, "inView(model, value.window, value.kept)", window=[0, 1e9], kept=kept)
    wanted = view.in_view()
    assert [list(row.values()) for row in found] == (
        wanted[wanted["family"] == LOOKUP].values.tolist()
    )


@pytest.mark.parametrize("stretch", [(0.0, 1.0), (0.21, 0.64), (0.5, 0.501)])
def test_browser_sums_two_stretches_as_python_does(stretch: tuple[float, float]) -> None:
    view = timeline_view(staged_trace(20))
    first = [round(view.duration_ns * share) for share in stretch]
    second = [round(view.duration_ns * share / 2) for share in stretch]
    sides = "[value.a, value.b].map((range) => ({ model, range }))"
    found = in_browser(view, f"sumsOf({sides})", a=first, b=second)
    steps = [view.steps_in(*part) for part in (first, second)]
    assert found["steps"] == pytest.approx(steps)
    assert found["aStep"] == (min(steps) > 0.999)
    by = [count if found["aStep"] else 1 for count in steps]
    sums = [view.in_view(*part) for part in (first, second)]
    for keys, rows in (
        (["family"], found["parts"]),
        (
            ["family", "op"],
            [{**op, "family": p["family"]} for p in found["parts"] for op in p["ops"]],
        ),
    ):
        wanted = [table.groupby(keys)[["total_ns", "spans"]].sum() for table in sums]
        assert {tuple(row[key] for key in keys) for row in rows} == {
            key if isinstance(key, tuple) else (key,) for table in wanted for key in table.index
        }
        for row in rows:
            key = row["family"] if keys == ["family"] else (row["family"], row["op"])
            for side, table in enumerate(wanted):
                total, spans = table.loc[key] if key in table.index else (0, 0)
                assert row["times"][side] == pytest.approx(total / by[side])
                assert row["spans"][side] == spans


def test_browser_refuses_an_unknown_format_and_short_data() -> None:
    view = timeline_view(TRACE)
    header = view.to_json_header()
    try_decode = "(() => { try { decode(...value); } catch (error) { return error.message; } })()"
    assert evaluate(try_decode, [{**header, "version": 9}]) == (
        "Timeline format 9; this page reads 3. Run the cell again."
    )
    short = DECODE.replace("bytes)", "bytes.slice(0, 8))") % "0"
    message = f"(() => {{ try {{ return {short} }} catch (error) {{ return error.message }} }})()"
    blob = base64.b64encode(view.columns.buffer()).decode()
    assert evaluate(message, {"header": header, "blob": blob}) == (
        f"The trace data has 8 of {header['bytes']} bytes."
    )


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

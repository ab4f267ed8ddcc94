"""Chrome JSON of other tools: what becomes of its slices, and the message of each refusal."""

from __future__ import annotations

import gzip
import json
import logging

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench.core.importing.import_trace import import_trace
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError


def slice_(name, ts, dur, tid=1, pid=1, **more):
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, **more}


def half(phase, name, ts, tid=1, pid=1):
    return {"ph": phase, "name": name, "ts": ts, "pid": pid, "tid": tid}


def named(kind, name, pid=1, tid=1):
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


@pytest.fixture
def read(tmp_path):
    """Reads events, or a whole document, from a file."""

    def write_and_read(document) -> Trace:
        (tmp_path / "x.json").write_text(json.dumps(document))
        trace = import_trace(tmp_path / "x.json")
        trace.self_check()
        return trace

    return write_and_read


def rows(trace, *columns):
    frame = trace.to_pandas()
    return list(frame[list(columns)].itertuples(index=False, name=None))


# --- slices -------------------------------------------------------------------------------------


def test_slices_become_events_on_their_threads(read):
    trace = read(
        [
            named("process_name", "python"),
            named("thread_name", "main", tid=1),
            slice_("b", 3.5, 0.25, tid=2),
            slice_("a", 1, 2),
        ]
    )
    assert rows(trace, "name", "op", "device", "start_ns", "dur_ns", "track") == [
        ("a", "a", "python", 1000, 2000, "main"),
        ("b", "b", "python", 3500, 250, "thread 2"),
    ]
    assert trace.tracks["kind"].tolist() == ["step", "inter_op", "inter_op"]
    assert trace.meta.title == "x.json"
    assert trace.meta.source == "Chrome JSON"


def test_a_list_and_a_document_are_the_same(read):
    events = [slice_("a", 1, 2)]
    assert rows(read(events), "name") == rows(read({"traceEvents": events}), "name")


def test_times_are_exact_to_the_nanosecond(tmp_path):
    """A float of this size would be a quarter of a microsecond off."""
    text = '[{"ph":"X","name":"a","ts":1795399526450387.643,"dur":0.001,"pid":1,"tid":1}]'
    (tmp_path / "x.json").write_text(text)
    event = import_trace(tmp_path / "x.json").events.iloc[0]
    assert (event["start_ns"], event["dur_ns"]) == (1795399526450387643, 1)


def test_without_steps_one_goes_from_the_first_event_to_the_last(read):
    trace = read([slice_("a", 5, 2), slice_("b", 6, 10, tid=2), slice_("c", 8, 1)])
    assert trace.steps().values.tolist() == [[1, 0, 5000, 16000]]
    assert set(trace.events["step"]) == {1}


def test_begins_and_ends_become_slices(read):
    trace = read(
        [
            half("B", "outer", 1),
            half("B", "inner", 2),
            half("B", "other", 2, tid=2),
            {"ph": "E", "ts": 3, "pid": 1, "tid": 1},
            half("E", "outer", 5),
            half("E", "other", 9, tid=2),
        ]
    )
    assert rows(trace, "name", "start_ns", "dur_ns") == [
        ("outer", 1000, 4000),
        ("inner", 2000, 1000),
        ("other", 2000, 7000),
    ]


def test_slices_inside_others_stay_on_their_thread(read):
    trace = read([slice_("outer", 0, 10), slice_("inner", 2, 3)])
    assert set(trace.events["track"]) == {1}


def test_threads_of_several_processes_carry_their_names(read):
    trace = read(
        [
            named("process_name", "python"),
            named("thread_name", "main"),
            slice_("a", 0, 1),
            slice_("b", 0, 1, pid=2, tid="stream 7"),
        ]
    )
    assert trace.tracks["name"].tolist()[1:] == ["python: main", "process 2 stream 7"]


def test_a_system_id_is_no_part_of_a_label(read):
    trace = read(
        [
            named("thread_name", "pool/117404680115802709", tid=1),
            named("thread_name", "pool/-527976381819360", tid=2),
            slice_("a", 0, 1, tid=1),
            slice_("b", 0, 1, tid=2),
        ]
    )
    assert trace.tracks["name"].tolist()[1:] == ["pool", "pool 2"]
    assert trace.meta.thread_names["pool 2"] == "pool/-527976381819360"


SLICES = st.builds(
    slice_,
    st.sampled_from(["a", "b:B", "train 3", "train 4", "c/d:E"]),
    st.integers(0, 50),
    st.integers(0, 50),
    tid=st.integers(1, 3),
)


@given(st.lists(SLICES, min_size=1, max_size=20))
def test_no_slice_is_lost_and_no_step_begins_after_its_work(tmp_path_factory, slices):
    work = [s for s in slices if not s["name"].startswith("train")]
    assume(work)
    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_text(json.dumps(slices))
    trace = import_trace(path)
    times = trace.events[["start_ns", "dur_ns"]].values.tolist()
    assert sorted(times) == sorted([1000 * s["ts"], 1000 * s["dur"]] for s in work)
    steps = trace.steps()
    assert set(trace.events["step"]) <= set(steps["number"])
    first = steps["start_ns"].min()
    begun = steps.groupby("number")["start_ns"].min()
    after = trace.events["start_ns"] >= trace.events["step"].map(begun)
    assert (after | (trace.events["start_ns"] < first)).all()


# --- other tools --------------------------------------------------------------------------------


def test_the_timeline_of_tensorflow_names_nodes_in_its_args(read):
    args = {"name": "dense/MatMul", "op": "MatMul", "input0": "x"}
    trace = read([slice_("MatMul", 0, 5, args=args, cat="Op")])
    assert rows(trace, "name", "op") == [("dense/MatMul", "MatMul")]


def test_the_trace_viewer_of_tensorboard(read):
    """Steps by group, summaries of a device left out, an empty event at the end."""
    trace = read(
        {
            "traceEvents": [
                named("process_name", "/host:CPU", pid=7),
                named("process_name", "/device:GPU:0", pid=8),
                named("thread_name", "Steps", pid=8, tid=1),
                named("thread_name", "stream", pid=8, tid=2),
                slice_("train", 0, 10, pid=7, args={"step_num": "12", "group_id": 0}),
                slice_("train", 10, 10, pid=7, args={"step_num": "13", "group_id": 1}),
                slice_("12", 1, 12, pid=8, tid=1, args={"group_id": 0}),
                slice_(
                    "MatMul",
                    12,
                    3,
                    pid=8,
                    tid=2,
                    args={"group_id": 0, "long_name": "dense/MatMul:MatMul"},
                ),
                {},
            ]
        }
    )
    assert trace.steps()["number"].tolist() == [12, 13]
    assert rows(trace, "name", "op", "device", "step") == [
        ("dense/MatMul", "MatMul", "/device:GPU:0", 12)
    ]
    assert trace.meta.left_out == {"summaries of other lanes": 1}


def test_torch_profiler_marks_its_steps(read):
    base = 1_738_000_000_000_000_000
    trace = read(
        {
            "baseTimeNanoseconds": base,
            "traceEvents": [
                slice_("ProfilerStep#3", 10, 50, cat="user_annotation"),
                slice_("ProfilerStep#3", 20, 60, tid="stream 7", cat="gpu_user_annotation"),
                slice_("aten::linear", 12, 9, cat="cpu_op", args={"device": 0}),
            ],
        }
    )
    assert trace.steps().values.tolist() == [[3, 0, base + 10_000, base + 60_000]]
    assert trace.events["start_ns"].min() == base + 12_000
    assert ("aten::linear", "aten::linear", 3) in rows(trace, "name", "op", "step")


# --- steps --------------------------------------------------------------------------------------


def test_of_steps_inside_each_other_the_inner_ones_count(read):
    trace = read(
        [
            slice_("epoch", 0, 100, args={"step_num": 1}),
            slice_("train", 0, 40, args={"step_num": 5}),
            slice_("train", 50, 40, args={"step_num": 6}),
            slice_("a", 45, 1),
            slice_("b", 60, 1),
        ]
    )
    assert trace.steps()["number"].tolist() == [5, 6]
    assert rows(trace, "name", "step") == [("a", 5), ("b", 6)]


def test_steps_of_two_threads_have_a_track_each(read):
    trace = read([slice_("train 1", 0, 5), slice_("train 1", 1, 5, tid=2), slice_("a", 2, 1)])
    assert trace.steps()[["number", "track"]].values.tolist() == [[1, 0], [1, 1]]
    assert trace.tracks["name"].tolist()[:2] == ["Main step", "Main step 2"]


def test_numbers_that_come_twice_on_a_thread_are_counted_anew(read):
    marks = [slice_("train 0", 0, 1), slice_("train 1", 2, 1), slice_("test 0", 4, 1)]
    trace = read([*marks, slice_("a", 0, 1)])
    assert trace.steps()["number"].tolist() == [1, 2, 3]


def test_a_node_may_be_named_as_a_step(read):
    trace = read(
        [slice_("step_1", 0, 1), slice_("Add", 0, 1, args={"op": "Add", "name": "step 4"})]
    )
    assert len(trace.events) == 2


def test_what_ran_before_the_first_step_is_of_the_first(read):
    trace = read([slice_("train 4", 10, 5), slice_("a", 1, 2)])
    assert trace.events["step"].tolist() == [4]


# --- what a trace has no place for --------------------------------------------------------------


def test_other_events_are_counted_and_said_once(read, caplog):
    others = [{"ph": phase} for phase in ("C", "C", "i", "s", "b", "N", "P", "c", "v", "(", "Q")]
    with caplog.at_level(logging.WARNING, "workbench"):
        trace = read([slice_("a", 0, 1), *others, half("B", "cut", 1), half("E", "x", 1, tid=9)])
    assert trace.meta.left_out == {
        "counters": 2,
        "instants": 1,
        "flows": 1,
        "asynchronous events": 1,
        "objects": 1,
        "samples": 1,
        "clock syncs": 1,
        "memory dumps": 1,
        "contexts": 1,
        "events of phase 'Q'": 1,
        "begins without an end": 1,
        "ends without a begin": 1,
    }
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(
        "x.json: the trace has no place for 2 counters, 1 instants"
    )


def test_nothing_is_said_where_nothing_is_left_out(read, caplog):
    read([slice_("a", 0, 1)])
    assert caplog.messages == []


# --- refusals -----------------------------------------------------------------------------------


def without(event, field):
    return {name: value for name, value in event.items() if name != field}


X_NEEDS = r": a complete event \(ph X\) needs name, ts, dur, pid and tid"


@pytest.mark.parametrize("field", ["name", "ts", "dur", "pid", "tid"])
def test_a_missing_field_is_named_with_its_event(read, field):
    with pytest.raises(TraceError, match=f"event 1 has no `{field}`{X_NEEDS}"):
        read([slice_("a", 0, 1), without(slice_("b", 0, 1), field)])


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (without(half("B", "b", 1), "ts"), r"no `ts`: a begin \(ph B\) needs name, ts"),
        (without(half("E", "b", 1), "tid"), r"no `tid`: an end \(ph E\) needs ts, pid"),
        (slice_(None, 0, 1), "event 1: `name` is None; expected text"),
        (slice_("b", "0", 1), "event 1: `ts` is '0'; expected a number of microseconds, 0 or"),
        (slice_("b", 0, True), "event 1: `dur` is True; expected a number of microseconds"),
        (slice_("b", -1.5, 1), r"event 1: `ts` is -1\.5; expected a number of microseconds"),
        (slice_("b", 1, -3), r"event 1: `dur` is -3; expected a number of microseconds"),
        (slice_("b", 1e300, 3), r"event 1: `ts` is 1E\+300; expected a number of microseconds"),
        (slice_("b", 0, 1, tid=[]), r"event 1: `tid` is \[\]; expected a number or a name"),
        (slice_("b", 0, 1, args=[1]), r"event 1: `args` is \[1\]; expected an object"),
        ({"name": "b", "x": 1}, "event 1 has no `ph`, the phase, but `name`, `x`; expected"),
        ({"ph": 5}, "event 1: `ph` is 5; expected a letter"),
        ("step", "event 1 is 'step'; expected an object with a `ph`"),
        (
            {"ph": "M", "name": "thread_name"},
            r"event 1 has no `args\.name`: a thread_name",
        ),
        (without(named("thread_name", "a"), "tid"), "event 1 has no `tid`: a thread_name"),
        (without(named("process_name", "a"), "pid"), "event 1 has no `pid`: a process_name"),
    ],
)
def test_each_refusal_names_the_event_and_what_was_found(read, event, message):
    with pytest.raises(TraceError, match=message):
        read([slice_("a", 0, 1), event])


def test_an_end_of_another_slice_is_refused(read):
    with pytest.raises(TraceError, match="event 1 ends 'b', but on its thread 'a' of event 0"):
        read([half("B", "a", 1), half("E", "b", 2)])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"nodes": []},
            "has no `traceEvents`, but `nodes`; expected Chrome trace JSON: ",
        ),
        ({}, "has no `traceEvents`, but nothing"),
        ({"traceEvents": 3}, r"its events are 3; expected a list"),
        (
            [],
            "it holds no span of an op or a call, .*; expected events with a start and",
        ),
        ([{"ph": "C"}], "it holds no span"),
        ([slice_("train 1", 0, 5)], "it holds no span of an op or a call"),
    ],
)
def test_a_document_without_slices_is_refused(read, document, message):
    with pytest.raises(TraceError, match=message):
        read(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[{"ph":"X"},',
            "it is not whole JSON: .*; write or copy the file again, or close a",
        ),
        ('[{"ph":"X","ts":NaN}]', "it is not whole JSON: NaN is no number of JSON"),
        ("[" * 100_000, "it is nested too deep for a trace|it is not whole JSON"),
        ("[" + "1" * 5000 + "]", "it is not whole JSON: Exceeds the limit"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(TraceError, match=f"x.json` is no trace: {message}"):
        import_trace(tmp_path / "x.json")


def test_gzip_and_a_byte_order_mark_are_read(tmp_path):
    text = b"\xef\xbb\xbf" + json.dumps([slice_("a", 0, 1)]).encode()
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(text))
    assert len(import_trace(tmp_path / "x.json.gz").events) == 1

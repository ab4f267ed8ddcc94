"""Chrome JSON of other tools: what becomes of its slices, and the message of each refusal."""

from __future__ import annotations

import json
import logging
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders.chrome_events import half, named, rows, slice_
from workbench.core.importing.import_trace import import_trace
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError


@pytest.fixture
def read(tmp_path):
    """Reads events, or a whole document, from a file."""

    def write_and_read(document) -> Trace:
        (tmp_path / "x.json").write_text(json.dumps(document))
        trace = import_trace(tmp_path / "x.json")
        trace.self_check()
        return trace

    return write_and_read


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
    assert caplog.messages[0].startswith("x.json: the trace leaves out 2 counters, 1 instants")


def test_nothing_is_said_where_nothing_is_left_out(read, caplog):
    read([slice_("a", 0, 1)])
    assert caplog.messages == []


# --- events with a fault ------------------------------------------------------------------------


def without(event, field):
    return {name: value for name, value in event.items() if name != field}


FAULTS = [
    (without(slice_("b", 0, 1), "name"), " has no `name`: a complete event (ph X) needs name, ts"),
    (without(slice_("b", 0, 1), "ts"), " has no `ts`: a complete event (ph X) needs name, ts and"),
    (without(slice_("b", 0, 1), "dur"), " has no `dur`: a complete event (ph X) needs name, ts"),
    (without(half("B", "b", 1), "ts"), " has no `ts`: a begin (ph B) needs name and ts"),
    (without(half("E", "b", 1), "ts"), " has no `ts`: an end (ph E) needs ts"),
    (slice_(None, 0, 1), ": `name` is None; expected text"),
    (slice_("b", "0", 1), ": `ts` is '0'; expected a number of microseconds, 0 or more"),
    (slice_("b", float("nan"), 1), ": `ts` is None; expected a number of microseconds"),
    (slice_("b", 0, True), ": `dur` is True; expected a number of microseconds"),
    (slice_("b", -1.5, 1), ": `ts` is -1.5; expected a number of microseconds"),
    (slice_("b", 1, -3), ": `dur` is -3; expected a number of microseconds"),
    (slice_("b", 1e300, 3), ": `ts` is 1E+300; expected a number of microseconds"),
    (slice_("b", 0, 1, tid=[]), ": `tid` is []; expected a number or a name"),
    (slice_("b", 0, 1, pid={}), ": `pid` is {}; expected a number or a name"),
    (slice_("b", 0, 1, args=[1]), ": `args` is [1]; expected an object"),
    ({"name": "b", "x": 1}, " has no `ph`, the phase, but `name`, `x`; expected Chrome trace"),
    ({"ph": 5}, ": `ph` is 5; expected a letter"),
    ({"ph": []}, ": `ph` is []; expected a letter"),
    ("step", " is 'step'; expected an object with a `ph`"),
]


@pytest.mark.parametrize(("event", "fault"), FAULTS)
def test_an_event_with_a_fault_is_left_out_counted_and_said(read, caplog, event, fault):
    trace = read([slice_("a", 0, 1), event, slice_("c", 2, 1), event])
    assert rows(trace, "name") == [("a",), ("c",)]
    ((what, count),) = trace.meta.left_out.items()
    assert count == 2
    assert what.startswith(f"events with a fault, the first of them: event 1{fault}")
    assert f"2 {what}" in caplog.messages[0]


@pytest.mark.parametrize(("event", "fault"), FAULTS)
def test_a_file_of_nothing_else_is_refused_with_the_first_fault(read, event, fault):
    with pytest.raises(TraceError, match=f"x.json` is no trace: event 1{re.escape(fault)}"):
        read([{"ph": "C"}, event, 5])


def test_an_end_ends_the_slice_that_it_names(read):
    trace = read(
        [
            half("B", "outer", 1),
            half("B", "never ended", 2),
            half("E", "never begun", 3),
            half("E", "outer", 5),
        ]
    )
    assert rows(trace, "name", "start_ns", "dur_ns") == [("outer", 1000, 4000)]
    assert trace.meta.left_out == {"ends without a begin": 1, "begins without an end": 1}


def test_events_of_a_process_without_threads_are_one_row(read):
    """As Horovod writes them: each tensor a process, and a first name that is none."""
    start = {"ph": "M", "name": "process_name", "pid": 0, "args": {"start_time": 1}}
    outer, inner = half("B", "NEGOTIATE", 1, pid=7), half("B", "ALLREDUCE", 2, pid=7)
    ends = [{"ph": "E", "ts": time, "pid": 7} for time in (4, 9)]
    events = [start, named("process_name", "grads/w", pid=7), outer, inner, *ends]
    events += [slice_("x", 3, 1, pid=8), {"ph": "X", "name": "y", "ts": 3, "dur": 1}]
    trace = read([without(event, "tid") for event in events])
    assert rows(trace, "name", "track", "dur_ns") == [
        ("NEGOTIATE", "grads/w", 8000),
        ("ALLREDUCE", "grads/w", 2000),
        ("x", "process 8", 1000),
        ("y", "process 0", 1000),
    ]
    assert trace.meta.left_out == {"names of processes or threads that say none": 1}


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

"""XSpace of tf.profiler → Trace, and the message of each refusal."""

from __future__ import annotations

import re

import pytest
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

from tests.builders.profiles import add_environment, add_plane
from workbench.core.importing.import_trace import import_trace
from workbench.errors import TraceError

BEGUN = 1_795_399_526_580_350_055
HOST = "/host:CPU"
NS = 1_000


def space(lines=None, **more):
    """A profile of one host plane."""
    made = XSpace()
    usual = {
        "python": [
            ("train", 0, 90 * NS, {"step_num": 12, "_r": 1}),
            ("EagerExecute: step", 5 * NS, 70 * NS, {}),
            ("train", 100 * NS, 50 * NS, {"step_num": 13, "_r": 1}),
        ],
        "tf_Compute/117404680115802709": [
            ("dense/MatMul:MatMul", 20 * NS + 999, 30 * NS, {}),
            ("ThreadpoolListener::Record", 60 * NS, 0, {}),
            ("Sum:Sum", 110 * NS, 2 * NS, {}),
        ],
    }
    add_plane(made, HOST, usual if lines is None else lines, **more)
    return made


def rows(trace, *columns):
    return list(trace.to_pandas()[list(columns)].itertuples(index=False, name=None))


def test_lines_become_tracks_and_marks_become_steps():
    trace = import_trace(space(), title="profile")
    trace.self_check()
    assert trace.tracks["name"].tolist() == ["Main step", "python", "tf_Compute"]
    assert trace.meta.thread_names == {"tf_Compute": "tf_Compute/117404680115802709"}
    assert trace.steps().values.tolist() == [[12, 0, 0, 90], [13, 0, 100, 150]]
    assert rows(trace, "name", "op", "start_ns", "dur_ns", "track", "step") == [
        ("EagerExecute: step", "EagerExecute", 5, 70, "python", 12),
        ("dense/MatMul", "MatMul", 20, 30, "tf_Compute", 12),
        ("Sum", "Sum", 110, 2, "tf_Compute", 13),
    ]
    assert trace.meta.left_out == {"instants": 1}
    assert (trace.meta.title, trace.meta.source) == ("profile", "tf.profiler")


def test_times_count_from_the_begin_of_the_profile():
    made = space(timestamp_ns=5110)
    add_environment(made, BEGUN)
    assert import_trace(made).steps()["start_ns"].tolist() == [BEGUN + 5110, BEGUN + 5210]


def test_times_of_the_wall_clock_stay():
    made = space(timestamp_ns=BEGUN + 7)
    add_environment(made, BEGUN)
    assert import_trace(made).steps()["start_ns"].iloc[0] == BEGUN + 7


def test_without_marks_one_step_goes_from_the_first_event_to_the_last():
    trace = import_trace(space({"python": [("a:A", 4 * NS, NS, {}), ("b:B", NS, 9 * NS, {})]}))
    assert trace.steps().values.tolist() == [[1, 0, 1, 10]]


def test_a_name_marks_a_step_too():
    trace = import_trace(space({"python": [("train 7", 0, 9 * NS, {}), ("b:B", NS, NS, {})]}))
    assert trace.steps()["number"].tolist() == [7]


def test_a_group_says_the_step():
    """A kernel of step 12 that runs while step 13 does, as on a device."""
    made = space(
        {
            "python": [
                ("train", 0, 10 * NS, {"step_num": 12, "group_id": 0}),
                ("train", 10 * NS, 10 * NS, {"step_num": 13, "group_id": 1}),
            ]
        }
    )
    kernels = [("gemm<float>", 15 * NS, NS, {"group_id": 0, "tf_op": "dense/MatMul:MatMul"})]
    summaries = [("12", 0, 20 * NS, {}), ("13", 20 * NS, 5 * NS, {})]
    add_plane(made, "/device:GPU:0", {"Stream #13": kernels, "Steps": summaries})
    trace = import_trace(made)
    assert rows(trace, "name", "op", "device", "track", "step") == [
        ("dense/MatMul", "MatMul", "/device:GPU:0", "/device:GPU:0: Stream #13", 12)
    ]
    assert trace.meta.left_out == {"summaries of other lanes": 2}


def test_stages_of_tf_data_are_shown_short():
    name, short = "Iterator::Root::Prefetch::ParallelMapV2", "Iterator::ParallelMapV2"
    trace = import_trace(space({"t": [(name, 0, NS, {})]}, shown={name: short}))
    assert rows(trace, "name", "op") == [(name, short)]


def test_lines_of_one_id_are_one_thread():
    made = space()
    for line in made.planes[0].lines:
        line.id = 5
    assert import_trace(made).tracks["name"].tolist() == ["Main step", "python"]


def test_sums_of_events_are_counted():
    made = space()
    made.planes[0].lines[0].events[1].num_occurrences = 40
    assert import_trace(made).meta.left_out == {"sums of events": 1, "instants": 1}


WHERE = "plane `/host:CPU`, line `python`, event 1"


def unknown_kind(event):
    event.metadata_id = 99


def no_start(event):
    event.ClearField("offset_ps")


def negative(event):
    event.duration_ps = -5


def before_the_epoch(event):
    event.offset_ps = -9


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (unknown_kind, f"{WHERE}: `metadata_id` 99 is not in the plane's `event_metadata`"),
        (no_start, f"{WHERE} has no `offset_ps`: an event needs a start"),
        (negative, f"{WHERE}: `duration_ps` is -5; expected a time of 0 or more"),
        (before_the_epoch, f"{WHERE}: `offset_ps` is -9; expected a time .* `timestamp_ns`"),
    ],
)
def test_an_event_with_a_fault_is_left_out_and_counted(damage, message):
    made = space()
    events = len(import_trace(made).events)
    damage(made.planes[0].lines[0].events[1])
    trace = import_trace(made)
    assert len(trace.events) == events - 1
    ((what, count),) = (each for each in trace.meta.left_out.items() if "fault" in each[0])
    assert count == 1 and re.search(f"the first of them: {message}", what)


def test_an_event_of_a_type_without_a_name_is_left_out():
    made = space()
    made.planes[0].event_metadata[77].id = 77
    made.planes[0].lines[0].events[1].metadata_id = 77
    (what,) = (what for what in import_trace(made).meta.left_out if "fault" in what)
    assert what.endswith(f"{WHERE}: event type 77 has no `name`")


def test_a_profile_of_nothing_else_is_refused():
    made = space()
    for event in (event for line in made.planes[0].lines for event in line.events):
        event.metadata_id = 99
    with pytest.raises(TraceError, match=r"event 0: `metadata_id` 99 is not in the plane's"):
        import_trace(made)


def test_a_profile_without_events_is_refused():
    with pytest.raises(TraceError, match="it holds no span of an op or a call"):
        import_trace(space({"python": []}))


def test_what_the_profiler_could_not_record_is_said(caplog):
    made = space()
    made.errors.append("no permission to read the counters of the GPU")
    import_trace(made, title="mine")
    assert caplog.messages[0] == (
        "mine: the profiler itself reported: no permission to read the counters of the GPU"
    )

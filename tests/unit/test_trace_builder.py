"""Recorded runs → Trace: which track, which run, which step."""

from __future__ import annotations

from types import SimpleNamespace as Obj

from workbench.core.step_stats import op_spans
from workbench.core.trace_builder import StepRecord, build_trace

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def node(name: str, op: str, start: int, end: int, thread: int = 1, scheduled: int | None = None):
    return Obj(
        node_name=name,
        timeline_label=f"{name} = {op}(x, y)",
        all_start_micros=start // 1000,
        all_start_nanos=start,
        op_end_rel_nanos=end - start,
        all_end_rel_nanos=end - start,
        scheduled_nanos=start if scheduled is None else scheduled,
        scheduled_micros=0,
        thread_id=thread,
    )


def metadata(*nodes):
    return Obj(step_stats=Obj(dev_stats=[Obj(device=CPU, node_stats=list(nodes))]))


def stage_run(number: int, thread: int, start: int, end: int, *nodes):
    return Obj(
        stage="prefetch",
        thread=thread,
        number=number,
        start_ns=start,
        end_ns=end,
        metadata=metadata(*nodes),
    )


def a_trace():
    """Item 7 was put before the capture; thread 0 puts item 8 in run 1; steps 5 and 6 take them."""
    steps = [
        StepRecord(
            number=5,
            client=77,
            start_ns=1000,
            end_ns=1900,
            metadata=metadata(
                node("prefetch/take", "WorkbenchBufferTake", 1010, 1030),
                node("mm", "MatMul", 1100, 1800, thread=3, scheduled=1050),
                node("_SOURCE", "NoOp", 1000, 1001),
            ),
        ),
        StepRecord(
            number=6,
            client=77,
            start_ns=2000,
            end_ns=2900,
            metadata=metadata(
                node("prefetch/take", "WorkbenchBufferTake", 2010, 2200),
                node("mm", "MatMul", 2300, 2400, thread=4),
            ),
        ),
    ]
    runs = [
        stage_run(
            1,
            0,
            1100,
            2150,
            node("read", "ReadFile", 1110, 1900, thread=3),
            node("prefetch/put", "WorkbenchBufferPut", 1950, 2100),
        )
    ]
    events = {
        "prefetch": [
            [1, 7, 500, 1012, 1015, 0],
            [0, 8, 0, 1960, 2090, 1],
            [1, 8, 501, 2015, 2095, 0],
        ]
    }
    return build_trace(steps, runs, events, meta={"capacity": {"prefetch": 1}})


def test_tracks_are_named_and_ordered():
    trace = a_trace()
    trace.self_check()
    assert trace.tracks["name"].tolist() == ["Main step", "Prefetch 0", "Inter-op 0", "Inter-op 1"]
    # The busiest thread of the main step is the first.
    first = trace.events[trace.events["track"] == 2]
    assert first["dur_ns"].tolist() == [700]
    assert first["delay_ns"].tolist() == [50]


def test_waiting_ops_and_bookkeeping_are_no_events():
    trace = a_trace()
    names = trace.nodes["name"].tolist()
    assert sorted(names) == ["mm", "read"]


def test_items_bind_puts_to_runs_and_takes_to_steps():
    items = a_trace().items
    assert items["item"].tolist() == [7, 8]
    assert items["put_start_ns"].tolist() == [-1, 1960]
    assert items["put_run"].tolist() == [-1, 1]
    assert items["put_track"].tolist() == [-1, 1]
    assert items["take_step"].tolist() == [5, 6]
    assert items["take_track"].tolist() == [0, 0]


def test_occupancy_at_start_counts_what_was_there_before():
    assert a_trace().meta["occupancy_at_start"] == {"prefetch": 1}


def test_labels_give_the_op_type():
    spans = list(op_spans(metadata(node("a/b", "Add", 10, 12), node("c", "", 10, 12))))
    assert [span.op for span in spans] == ["Add", "Unknown"]


def test_without_thread_ids_overlapping_ops_get_rows_of_their_own():
    nodes = [
        node("a", "Add", 100, 200, thread=0),
        node("b", "Add", 150, 260, thread=0),
        node("c", "Add", 200, 300, thread=0),
        node("d", "Add", 270, 280, thread=0),
    ]
    record = StepRecord(number=1, client=1, start_ns=90, end_ns=400, metadata=metadata(*nodes))
    trace = build_trace([record], [], {}, meta={})
    trace.self_check()
    placed = dict(
        zip(trace.nodes["name"][trace.events["node"]], trace.events["track"], strict=True)
    )
    assert placed == {"a": 1, "b": 2, "c": 1, "d": 2}
    assert trace.meta["threads"] == "inferred from overlap"

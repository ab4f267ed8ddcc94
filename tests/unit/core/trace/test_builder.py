"""Recorded runs → Trace: which track, which run, which step."""

from __future__ import annotations

from types import SimpleNamespace as Obj

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.core.capture.step_stats import op_spans, stats_columns
from workbench.core.trace.builder import StepRecord, build_trace
from workbench.core.trace.meta import TraceMeta
from workbench.core.trace.op_columns import OpColumns

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
    ops = stats_columns([run.metadata for run in [*steps, *runs]])
    return build_trace(steps, runs, events, TraceMeta(capacity={"prefetch": 1}), ops)


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
    names = trace.nodes["name"].to_numpy(object)
    assert sorted(set(names[trace.events["node"]])) == ["mm", "read"]
    # Whoever follows the data through a stage meets them.
    assert {"prefetch/put", "prefetch/take"} < set(names)


def test_items_bind_puts_to_runs_and_takes_to_steps():
    items = a_trace().items
    assert items["item"].tolist() == [7, 8]
    assert items["put_start_ns"].tolist() == [-1, 1960]
    assert items["put_run"].tolist() == [-1, 1]
    assert items["put_track"].tolist() == [-1, 1]
    assert items["take_step"].tolist() == [5, 6]
    assert items["take_track"].tolist() == [0, 0]


def test_occupancy_at_start_counts_what_was_there_before():
    assert a_trace().meta.occupancy_at_start == {"prefetch": 1}


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
    trace = build_trace([record], [], {}, TraceMeta(), stats_columns([record.metadata]))
    trace.self_check()
    placed = dict(
        zip(trace.nodes["name"][trace.events["node"]], trace.events["track"], strict=True)
    )
    assert placed == {"a": 1, "b": 2, "c": 1, "d": 2}
    assert trace.meta.threads == "inferred from overlap"


CALLER, POOL, OTHER = 900, 901, 902


def columns(*rows: tuple[int, str, str, int, int, int], scheduled: int = 0, **known) -> OpColumns:
    """Ops as a tracer that knows threads has them: (run, name, op, thread, start, end)."""
    names = list(dict.fromkeys((name, op) for _, name, op, *_ in rows))
    number = [names.index((name, op)) for _, name, op, *_ in rows]
    run, thread, start, end = (np.array([row[i] for row in rows], np.int64) for i in (0, 3, 4, 5))
    return OpColumns(
        run=run,
        node=np.array(number, np.int64),
        thread=thread,
        scheduled_ns=start - scheduled,
        start_ns=start,
        end_ns=end,
        nodes=pd.DataFrame([(*n, CPU) for n in names], columns=["name", "op", "device"]),
        **known,
    )


def step(number: int, start: int, end: int, client: int = 77) -> StepRecord:
    return StepRecord(
        number=number, client=client, start_ns=start, end_ns=end, thread_id=CALLER + client - 77
    )


def placed(trace) -> list[tuple[str, str, int]]:
    """(node, track, start) of every event."""
    names, tracks = trace.nodes["name"].tolist(), trace.tracks["name"].tolist()
    rows = trace.events[["node", "track", "start_ns"]].to_numpy(np.int64).tolist()
    return [(names[node], tracks[track], start) for node, track, start in rows]


def test_recorded_threads_become_tracks_the_clients_own_first_then_the_busiest():
    ops = columns(
        (0, "a", "Add", POOL, 110, 120),
        (0, "b", "Add", OTHER, 112, 190),
        (0, "c", "Add", CALLER, 105, 109),
        (0, "d", "Add", CALLER, 109, 111),
        scheduled=3,
        thread_names={POOL: "tf_Compute", OTHER: "tf_Compute", CALLER: ""},
    )
    trace = build_trace([step(4, 100, 200)], [], {}, TraceMeta(), ops)
    trace.self_check()
    assert trace.tracks["name"].tolist() == [
        "Main step", "Main step ops", "Inter-op 0", "Inter-op 1",
    ]  # fmt: skip
    assert trace.tracks["kind"].tolist() == ["step", *["inter_op"] * 3]
    assert placed(trace) == [
        ("c", "Main step ops", 105),
        ("d", "Main step ops", 109),
        ("a", "Inter-op 1", 110),
        ("b", "Inter-op 0", 112),
    ]
    assert trace.events["delay_ns"].tolist() == [3, 3, 3, 3]
    assert trace.events["step"].tolist() == [4, 4, 4, 4]
    assert trace.meta.threads == "recorded"
    assert trace.meta.thread_names == {"Inter-op 0": "tf_Compute", "Inter-op 1": "tf_Compute"}


def test_each_client_has_a_track_for_the_ops_on_its_own_thread():
    ops = columns((0, "a", "Add", CALLER, 110, 120), (1, "a", "Add", CALLER + 1, 115, 130))
    trace = build_trace([step(1, 100, 200), step(2, 105, 200, client=78)], [], {}, TraceMeta(), ops)
    assert sorted(placed(trace)) == [("a", "Main step 2 ops", 115), ("a", "Main step ops", 110)]


def test_asynchronous_ops_have_tracks_of_their_own_each_time_they_run():
    ops = columns(
        # next waits while its thread runs others; the second time nothing else runs
        (0, "next", "IteratorGetNext", POOL, 110, 150),
        (0, "send", "_Send", POOL, 111, 140),
        (0, "a", "Add", POOL, 112, 120),
        (0, "b", "Add", POOL, 120, 160),
        (1, "next", "IteratorGetNext", POOL, 210, 250),
        (1, "a", "Add", POOL, 250, 260),
    )
    trace = build_trace([step(1, 100, 200), step(2, 200, 300)], [], {}, TraceMeta(), ops)
    trace.self_check()
    assert trace.tracks["name"].tolist() == ["Main step", "Inter-op 0", "Async 0", "Async 1"]
    assert placed(trace) == [
        ("next", "Async 0", 110),
        ("send", "Async 1", 111),
        ("a", "Inter-op 0", 112),
        ("b", "Inter-op 0", 120),
        ("next", "Async 0", 210),
        ("a", "Inter-op 0", 250),
    ]


def test_an_op_that_was_done_on_a_thread_which_ran_another_meanwhile_is_the_asynchronous_one():
    # The thread is that of the done callback: a was running on it when next began.
    ops = columns(
        (0, "a", "Add", POOL, 110, 120),
        (0, "next", "IteratorGetNext", POOL, 115, 150),
        (0, "b", "Add", POOL, 150, 160),
    )
    trace = build_trace([step(1, 100, 200)], [], {}, TraceMeta(), ops)
    assert [track for _, track, _ in placed(trace)] == ["Inter-op 0", "Async 0", "Inter-op 0"]


def test_ops_of_a_stage_run_are_on_its_prefetch_track_whichever_thread_ran_them():
    runs = [stage_run(3, 1, 100, 200)]
    ops = columns(
        (1, "read", "ReadFile", POOL, 110, 120),
        (1, "hash", "Hash", OTHER, 112, 118),
        (0, "a", "Add", POOL, 121, 122),
    )
    trace = build_trace([step(1, 120, 200)], runs, {}, TraceMeta(), ops)
    trace.self_check()
    assert placed(trace) == [
        ("read", "Prefetch 0", 110),
        ("hash", "Prefetch 0", 112),
        ("a", "Inter-op 0", 121),
    ]
    assert trace.events["step"].tolist() == [3, 3, 1]


def test_takes_are_found_by_tensorflows_step_id_where_it_is_known():
    steps = [step(5, 1000, 1900), step(6, 2000, 2900)]
    ops = columns((0, "mm", "MatMul", POOL, 1100, 1800), run_of_step={500: 0, 501: 1, 502: 2})
    runs = [stage_run(1, 0, 2100, 2500)]
    events = {"prefetch": [[1, 7, 501, 1012, 1015, 0], [1, 8, 500, 2015, 2095, 0],
                           [1, 9, 502, 2200, 2300, 0], [1, 10, 99, 2400, 2410, 0]]}  # fmt: skip
    items = build_trace(steps, runs, events, TraceMeta(), ops).items
    assert items["take_step"].tolist() == [6, 5, -1, -1]
    assert items["take_track"].tolist() == [0, 0, -1, -1]


def test_of_takes_that_were_running_the_last_to_begin_took_the_item():
    take = "WorkbenchBufferTake"
    ops = columns(
        (0, "prefetch/take", take, 0, 100, 900),
        (1, "prefetch/take", take, 0, 200, 300),
        (2, "prefetch/take", take, 0, 400, 410),
        (2, "other/take", take, 0, 450, 2000),
    )
    steps = [step(1, 0, 1000), step(2, 0, 1000, client=78), step(3, 0, 3000, client=79)]
    asked = [50, 150, 250, 350, 405, 800, 1500]
    events = {"prefetch": [[1, i, 0, at, at + 5, 0] for i, at in enumerate(asked)]}
    items = build_trace(steps, [], events, TraceMeta(), ops).items
    assert items["take_step"].tolist() == [-1, 1, 2, 1, 3, 1, -1]


def test_puts_belong_to_the_run_their_thread_was_in():
    runs = [stage_run(n, thread, at, at + 50) for n, thread, at in
            [(1, 0, 100), (2, 1, 120), (3, 0, 200)]]  # fmt: skip
    puts = [(0, 149), (1, 149), (0, 160), (0, 210), (1, 210), (2, 210), (0, 90)]
    events = {"prefetch": [[0, i, who, at, at + 1, 1] for i, (who, at) in enumerate(puts)]}
    items = build_trace([step(1, 0, 300)], runs, events, TraceMeta(), columns()).items
    assert items["put_run"].tolist() == [1, 2, -1, 3, -1, -1, -1]


def test_stats_of_several_runs_and_of_none():
    found = stats_columns(
        [metadata(node("a", "Add", 10, 12)), None, metadata(node("a", "Add", 20, 25))]
    )
    assert found.run.tolist() == [0, 2]
    assert found.node.tolist() == [0, 0]
    assert (found.end_ns - found.start_ns).tolist() == [2, 5]


def test_no_ops_at_all():
    trace = build_trace([step(1, 100, 200)], [], {}, TraceMeta(), columns())
    trace.self_check()
    assert len(trace.events) == 0 and trace.tracks["name"].tolist() == ["Main step"]


@st.composite
def threads_at_work(draw) -> list[tuple[int, str, str, int, int, int]]:
    """Threads that run short ops one after the other, and long asynchronous ones beside them."""
    rows = []
    for thread in range(POOL, POOL + draw(st.integers(1, 3))):
        at = 100
        for _ in range(draw(st.integers(0, 12))):
            at += draw(st.integers(0, 5))
            last = at + draw(st.integers(0, 9))
            rows.append((0, f"op{draw(st.integers(0, 5))}", "Add", thread, at, last))
            if draw(st.booleans()):
                wait = last + draw(st.integers(0, 40))
                rows.append((0, f"wait{draw(st.integers(0, 2))}", "Next", thread, at, wait))
            at = last
    return draw(st.permutations(rows))


@settings(deadline=None)
@given(threads_at_work())
def test_no_two_ops_of_a_track_overlap_and_none_is_lost(rows):
    trace = build_trace([step(1, 0, 1000)], [], {}, TraceMeta(), columns(*rows))
    trace.self_check()
    seen = sorted((name, start) for name, _, start in placed(trace))
    assert seen == sorted((name, start) for _, name, _, _, start, _ in rows)
    events = trace.events.assign(end=trace.events["start_ns"] + trace.events["dur_ns"])
    for _, own in events.groupby("track"):
        own = own.sort_values(["start_ns", "end"])
        assert (own["end"].to_numpy()[:-1] <= own["start_ns"].to_numpy()[1:]).all()

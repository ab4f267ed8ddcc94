"""capture of sessions on Workbench's executors, which record their ops themselves."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from workbench import _native
from workbench.core.capture import op_events
from workbench.core.capture.session_capture import capture_steps
from workbench.core.session.running.stage_run import live_runs
from workbench.core.trace.metrics import step_metrics
from workbench.errors import TraceError

pytestmark = pytest.mark.executors
v1 = tf.compat.v1
EXECUTORS = ["WORKBENCH_NORMAL", "WORKBENCH_INLINE", "WORKBENCH_COST_MODEL"]
every_executor = pytest.mark.parametrize("executor", EXECUTORS)


def on(executor: str, threads: int = 2) -> v1.ConfigProto:
    _native.library()
    config = v1.ConfigProto(inter_op_parallelism_threads=threads, use_per_session_threads=True)
    config.experimental.executor_type = executor
    return config


def slow_source(seconds: float = 0.004):
    def read() -> np.ndarray:
        time.sleep(seconds)
        return np.ones((64, 64), np.float32)

    return tf.ensure_shape(v1.py_func(read, [], tf.float32, name="read"), [64, 64])


def compute(x, name: str = "dense"):
    for i in range(6):
        x = tf.tanh(tf.matmul(x, x, name=f"{name}_{i}"))
    return tf.reduce_sum(x)


def captured(
    executor: str, options: wb.StageOptions | None, steps: int = 12, hooks: tuple = ()
) -> wb.Trace:
    source = slow_source()
    loss = compute(source if options is None else wb.staged(source, options, name="clicks"))
    capture = wb.CaptureHook("a test")
    every = [wb.make_prefetch_hook(), capture, *hooks]
    with v1.train.MonitoredTrainingSession(hooks=every, config=on(executor)) as session:
        for _ in range(5):
            session.run(loss)
        capture.start()
        for _ in range(steps):
            session.run(loss)
        return capture.stop()


def tracer_is_on() -> bool:
    """Whether steps that run now are recorded; a stage's run under way may still add ops."""
    native = _native.calls()
    with tf.Graph().as_default(), v1.Session(config=on("WORKBENCH_NORMAL")) as session:
        op = tf.random.normal([2])
        seen = [native.workbench_traced_ops()]
        for _ in range(10):
            session.run(op)
            seen.append(native.workbench_traced_ops())
    return bool((np.diff(seen) > 0).all())


def executed(trace: wb.Trace) -> dict[str, int]:
    """How often each node ran on the main side."""
    ops = trace.to_pandas()
    return ops[ops["kind"] == "inter_op"]["name"].astype(str).value_counts().to_dict()


@every_executor
def test_the_executor_is_the_source_and_no_step_stats_are_collected(executor):
    asked: list[int] = []

    class Stats(v1.train.SessionRunHook):
        def after_run(self, run_context, run_values) -> None:
            asked.append(len(run_values.run_metadata.step_stats.dev_stats))

    trace = captured(executor, wb.StageOptions(), hooks=(Stats(),))
    trace.self_check()
    assert len(asked) >= 12 and not any(asked)
    assert trace.meta.source == "executor"
    assert trace.meta.threads == "recorded"
    assert trace.meta.lost_ops == 0
    assert trace.steps()["number"].tolist() == list(range(6, 18))


@every_executor
def test_every_op_is_there_in_the_run_that_ran_it(executor):
    trace = captured(executor, None, steps=8)
    trace.self_check()
    often = executed(trace)
    assert [often[f"dense_{i}"] for i in range(6)] == [8] * 6
    assert often["read"] == 8
    ops = trace.to_pandas().merge(trace.steps(), left_on="step", right_on="number")
    assert (ops["start_ns_x"] >= ops["start_ns_y"]).all()
    assert (ops["start_ns_x"] + ops["dur_ns"] <= ops["end_ns"]).all()
    assert ops[ops["name"] == "read"]["dur_ns"].min() > 3_900_000
    # In the order of the graph.
    first = ops[ops["step"] == 1 + ops["step"].min()].set_index("name")["start_ns_x"]
    assert first[[f"dense_{i}" for i in range(6)]].is_monotonic_increasing
    assert step_metrics(trace).steps == 8


@every_executor
def test_the_trace_knows_the_graph_that_ran_and_who_made_it(executor):
    trace = captured(executor, wb.StageOptions(), steps=4)
    names = trace.nodes["name"].tolist()
    edges = {
        (names[source], names[target])
        for source, target in zip(trace.edges["source"], trace.edges["target"], strict=True)
    }
    assert {(f"dense_{i}", f"dense_{i + 1}") for i in range(5)} & edges == set()
    assert {("Tanh", "dense_1"), ("dense_0", "Tanh"), ("dense_1", "Tanh_1")} <= edges
    # The data goes through the stage: into its put on one side, out of its take on the other.
    assert ("EnsureShape", "clicks/put") in edges
    assert ("clicks/take", "dense_0") in edges
    made_by = dict(zip(names, trace.nodes["source"], strict=True))
    assert made_by["dense_3"].endswith(" compute") and __file__ in made_by["dense_3"]
    assert made_by["read"].endswith(" slow_source")


def test_what_ran_is_what_stocks_step_stats_say():
    x = slow_source(0.0)
    loss = compute(x) + tf.cast(tf.size(tf.where(x > 0)), tf.float32)
    with v1.Session() as session:
        session.run(loss)
        stock = capture_steps(session, loss, 3)
    with v1.Session(config=on("WORKBENCH_NORMAL")) as session:
        session.run(loss)
        native = capture_steps(session, loss, 3)
    assert stock.meta.source == "step_stats"
    assert executed(native) == executed(stock)
    for name in ("op", "device"):
        assert dict(zip(native.nodes["name"], native.nodes[name], strict=True)) == dict(
            zip(stock.nodes["name"], stock.nodes[name], strict=True)
        )


@every_executor
def test_stage_runs_go_ahead_of_the_steps_that_consume_them(executor):
    trace = captured(executor, wb.StageOptions(capacity=2, num_threads=2))
    trace.self_check()
    assert trace.tracks["name"].tolist()[:3] == ["Main step", "Prefetch 0", "Prefetch 1"]
    kinds = trace.to_pandas()
    reads = kinds[kinds["name"] == "read"]
    assert set(reads["kind"]) == {"prefetch"} and len(reads) >= 6
    assert set(kinds[kinds["name"] == "dense_3"]["kind"]) == {"inter_op"}
    assert not kinds["op"].astype(str).str.contains("WorkbenchBuffer").any()
    items = trace.items
    whole = items[(items["put_run"] >= 0) & (items["take_step"] >= 0)]
    assert len(whole) >= 6
    assert (whole["put_end_ns"] <= whole["take_end_ns"]).all()
    taken = items[items["take_step"] >= 0].sort_values("take_end_ns")
    assert taken["take_step"].tolist() == trace.steps()["number"].tolist()
    assert trace.meta.capacity == {"clicks": 2}


@every_executor
def test_ops_of_one_thread_do_not_overlap(executor):
    dataset = tf.data.Dataset.from_tensors(tf.ones([64, 64])).map(lambda x: x * 2.0).repeat()
    iterator = v1.data.make_one_shot_iterator(dataset.prefetch(1))
    called = tf.function(lambda x: compute(x, "inner"))
    losses = [compute(iterator.get_next(), f"way{i}") for i in range(3)]
    loss = tf.add_n([*losses, called(tf.random.normal([64, 64]))])
    with v1.Session(config=on(executor)) as session:
        for _ in range(3):
            session.run(loss)
        trace = capture_steps(session, loss, 20)
    trace.self_check()
    events = trace.events.assign(end=trace.events["start_ns"] + trace.events["dur_ns"])
    for track, own in events.groupby("track"):
        own = own.sort_values(["start_ns", "end"])
        late = own["end"].to_numpy()[:-1] - own["start_ns"].to_numpy()[1:]
        assert (late <= 0).all(), (trace.tracks["name"][track], late.max())
    names = trace.tracks["name"]
    assert names.str.fullmatch(r"Main step( ops)?|Inter-op \d+|Async \d+").all()
    assert (names == "Main step ops").any() == (executor == "WORKBENCH_INLINE")


@every_executor
@pytest.mark.parametrize("inlined", [True, False])
def test_ops_of_a_function_belong_to_the_step_that_calls_it(executor, inlined):
    @tf.function(autograph=False, experimental_attributes=None if inlined else {"_noinline": True})
    def called(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.matmul(y, y)), (0, x))[1]

    loss = tf.reduce_sum(called(tf.random.normal([8, 8])))
    with v1.Session(config=on(executor)) as session:
        session.run(loss)
        trace = capture_steps(session, loss, 4)
    trace.self_check()
    ops = trace.to_pandas()
    if inlined:
        inside = ops[ops["name"].astype(str).str.endswith("MatMul")]
        assert inside["step"].value_counts().to_dict() == {1: 3, 2: 3, 3: 3, 4: 3}
    else:
        call = ops[ops["op"].astype(str).str.contains("PartitionedCall")]
        assert call["step"].tolist() == [1, 2, 3, 4]


def test_other_sessions_are_left_out_and_have_captures_of_their_own():
    traces: dict[str, wb.Trace] = {}
    at_work = threading.Barrier(3)

    def work(name: str) -> None:
        with tf.Graph().as_default():
            loss = compute(slow_source(0.001), name)
            with v1.Session(config=on("WORKBENCH_NORMAL")) as session:
                session.run(loss)
                at_work.wait(60)
                traces[name] = capture_steps(session, loss, 20)

    def never_recorded() -> None:
        with tf.Graph().as_default():
            loss = compute(tf.ones([64, 64]), "third")
            with v1.Session(config=on("WORKBENCH_NORMAL")) as session:
                at_work.wait(60)
                for _ in range(50):
                    session.run(loss)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    threads.append(threading.Thread(target=never_recorded))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for name in ("one", "two"):
        often = executed(traces[name])
        assert often[f"{name}_0"] == 20
        assert not any(node.startswith(("one", "two", "third")) for node in often
                       if not node.startswith(name))  # fmt: skip
    assert not tracer_is_on()


def test_a_step_under_way_when_the_capture_starts_is_left_out_whole():
    capture = wb.CaptureHook()
    started: list[int] = []

    def start() -> np.float32:
        if not started:
            started.append(1)
            capture.start()
        return np.float32(1)

    loss = compute(v1.py_func(start, [], tf.float32, stateful=True) * tf.ones([8, 8]))
    config = on("WORKBENCH_NORMAL")
    with v1.train.MonitoredTrainingSession(hooks=[capture], config=config) as session:
        session.run(loss)
        session.run(loss)
        trace = capture.stop()
    trace.self_check()
    assert trace.steps()["number"].tolist() == [2]
    assert executed(trace)["dense_0"] == 1


def test_the_time_of_traced_steps_stands_in_where_none_were_run_before():
    loss = compute(slow_source(0.01))
    with v1.Session(config=on("WORKBENCH_NORMAL")) as session:
        session.run(loss)
        untraced = capture_steps(session, loss, 12).meta.untraced
    assert untraced.while_traced
    assert untraced.steps >= 8
    assert 10_000_000 < untraced.step_ns < 60_000_000
    trace = captured("WORKBENCH_NORMAL", None)
    assert trace.meta.untraced is None or trace.meta.untraced.while_traced


def test_the_time_of_untraced_steps_goes_first():
    capture = wb.CaptureHook()
    loss = compute(slow_source(0.01))
    config = on("WORKBENCH_NORMAL")
    with v1.train.MonitoredTrainingSession(hooks=[capture], config=config) as session:
        for _ in range(12):
            session.run(loss)
        capture.start()
        for _ in range(12):
            session.run(loss)
        untraced = capture.stop().meta.untraced
    # of 12: the first ones count for nothing, nor do some that were much slower than the others
    assert not untraced.while_traced and 5 <= untraced.steps <= 11


def test_lost_ops_are_noted_and_said(monkeypatch, caplog):
    stop = op_events.Recording.stop
    monkeypatch.setattr(
        op_events.Recording, "stop", lambda self: dataclasses.replace(stop(self), lost=7)
    )
    loss = compute(tf.ones([8, 8]))
    with v1.Session(config=on("WORKBENCH_NORMAL")) as session:
        session.run(loss)
        with caplog.at_level(logging.WARNING, "workbench"):
            trace = capture_steps(session, loss, 2)
    assert trace.meta.lost_ops == 7
    assert "the trace lacks 7 ops: more ran than the tracer's memory holds" in caplog.text
    assert "trace fewer steps at a time" in caplog.text


def test_after_a_failure_nothing_stays_switched_on():
    loss = compute(wb.staged(slow_source()))
    fed = v1.placeholder(tf.float32, [])
    capture = wb.CaptureHook()
    with v1.Session(config=on("WORKBENCH_NORMAL")) as session, wb.prefetching(session):
        with pytest.raises(tf.errors.InvalidArgumentError):
            capture_steps(session, [loss, fed + 1.0], 3)
        assert all(run.sink is None for run in live_runs(session))
        assert not tracer_is_on()
        # A session that is made again ends a capture that was on.
        capture.after_create_session(session, None)
        capture.start()
        assert tracer_is_on()
        capture.after_create_session(session, None)
        assert not tracer_is_on()
        capture.start()
        with pytest.raises(TraceError, match="no step was run"):
            capture.stop()
        assert not tracer_is_on()


def test_a_server_takes_no_notice_of_the_executor_so_step_stats_stay_the_source():
    server = v1.train.Server.create_local_server()
    loss = compute(tf.random.normal([8, 8]))
    config = v1.ConfigProto()
    config.experimental.executor_type = "WORKBENCH_NORMAL"
    with v1.Session(server.target, config=config) as session:
        session.run(loss)
        trace = capture_steps(session, loss, 2)
    trace.self_check()
    assert trace.meta.source == "step_stats"
    assert executed(trace)["dense_0"] == 2

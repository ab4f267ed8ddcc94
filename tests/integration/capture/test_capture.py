"""capture: real sessions under the tracer → Trace."""

from __future__ import annotations

import logging
import threading
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing as data_testing

import workbench as wb
from workbench.core.capture.session_capture import capture_steps
from workbench.core.session.running.stage_run import live_runs
from workbench.errors import TraceError
from workbench.viz.timeline.view import timeline_view

v1 = tf.compat.v1


def slow_source(seconds: float = 0.004):
    def read() -> np.ndarray:
        time.sleep(seconds)
        return np.ones((64, 64), np.float32)

    return tf.ensure_shape(v1.py_func(read, [], tf.float32, name="read"), [64, 64])


def compute(x):
    for i in range(6):
        x = tf.tanh(tf.matmul(x, x, name=f"dense_{i}"))
    return tf.reduce_sum(x)


def captured(options: wb.StageOptions | None, steps: int = 12) -> wb.Trace:
    source = slow_source()
    return capture_of(
        compute(source if options is None else wb.staged(source, options, name="clicks")), steps
    )


def capture_of(loss, steps: int, threads: int = 0) -> wb.Trace:
    capture = wb.CaptureHook("a test")
    hooks = [wb.make_prefetch_hook(), capture]
    # The pool that sessions share is as large as the first of them wished.
    config = v1.ConfigProto(
        inter_op_parallelism_threads=threads, use_per_session_threads=bool(threads)
    )
    with v1.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
        for _ in range(5):
            session.run(loss)
        capture.start()
        for _ in range(steps):
            session.run(loss)
        return capture.stop()


class ReadAhead:
    """Reads and steps that wait for each other.

    A read ends after its step has begun, and a step after the next two reads have.
    """

    def __init__(self, steps: int) -> None:
        self._last = steps
        self._changed = threading.Condition()
        self._reads = self._begun = self._ended = 0

    def read(self) -> np.ndarray:
        with self._changed:
            self._reads += 1
            self._changed.notify_all()
            step = min(self._reads, self._last)
            self._wait(lambda: self._begun >= step)
        return np.ones((64, 64), np.float32)

    def begin_step(self) -> np.float32:
        with self._changed:
            self._begun += 1
            self._changed.notify_all()
        return np.float32(0)

    def end_step(self) -> np.float32:
        with self._changed:
            self._ended += 1
            self._wait(lambda: self._reads >= self._ended + 2)
        return np.float32(0)

    def _wait(self, until) -> None:
        assert self._changed.wait_for(until, timeout=20)


@pytest.mark.executors
def test_stage_runs_go_ahead_of_the_steps_that_consume_them():
    ahead = ReadAhead(steps=5 + 12)
    source = tf.ensure_shape(v1.py_func(ahead.read, [], tf.float32, name="read"), [64, 64])
    item = wb.staged(source, wb.StageOptions(capacity=2, num_threads=2), name="clicks")
    loss = compute(item) + v1.py_func(ahead.begin_step, [], tf.float32)
    with tf.control_dependencies([item]):
        loss += v1.py_func(ahead.end_step, [], tf.float32)
    # Two reads and the end of a step hold a thread each while they wait.
    trace = capture_of(loss, steps=12, threads=4)
    trace.self_check()
    steps = trace.steps()
    assert steps["number"].tolist() == list(range(6, 18))
    assert trace.tracks["name"].tolist()[:3] == ["Main step", "Prefetch 0", "Prefetch 1"]
    items = trace.items
    whole = items[(items["put_run"] >= 0) & (items["take_step"] >= 0)]
    assert len(whole) >= 8
    starts = steps.set_index("number")["start_ns"]
    runs = trace.runs.merge(trace.tracks, left_on="track", right_index=True)
    made = runs[runs["kind"] == "prefetch"].set_index("number")
    for row in whole.itertuples():
        assert row.put_end_ns <= row.take_end_ns
        run = made.loc[row.put_run]
        assert run["start_ns"] < starts[row.take_step] < run["end_ns"]
        assert run["track"] == row.put_track
    # Every step took exactly one item, in order.
    taken = items[items["take_step"] >= 0].sort_values("take_end_ns")
    assert taken["take_step"].tolist() == steps["number"].tolist()
    assert taken["item"].is_monotonic_increasing
    assert trace.meta.capacity == {"clicks": 2}
    assert trace.occupancy()["count"].max() <= 2


def test_ops_are_where_they_ran():
    trace = captured(wb.StageOptions())
    kinds = trace.to_pandas()
    reads = kinds[kinds["name"] == "read"]
    assert set(reads["kind"]) == {"prefetch"}
    assert reads["dur_ns"].median() > 3_000_000
    assert set(kinds[kinds["name"] == "dense_3"]["kind"]) == {"inter_op"}
    assert not kinds["op"].astype(str).str.contains("WorkbenchBuffer").any()


def test_an_unstaged_trace_has_neither_prefetch_nor_buffer():
    trace = captured(None)
    trace.self_check()
    assert set(trace.tracks["kind"]) == {"step", "inter_op"}
    assert len(trace.items) == 0
    assert len(trace.steps()) == 12


def test_a_plain_session_can_be_captured():
    loss = compute(wb.staged(slow_source()))
    with v1.Session() as session, wb.prefetching(session):
        trace = capture_steps(session, loss, 4, title="plain")
        trace.self_check()
        assert len(trace.steps()) == 4
        assert trace.meta.title == "plain"
        assert all(run.sink is None for run in live_runs(session))


def test_after_a_failed_step_nothing_stays_switched_on():
    loss = compute(wb.staged(slow_source()))
    fed = v1.placeholder(tf.float32, [])
    with v1.Session() as session, wb.prefetching(session):
        with pytest.raises(tf.errors.InvalidArgumentError):
            capture_steps(session, [loss, fed + 1.0], 3)
        assert all(run.sink is None for run in live_runs(session))
        session.run(loss)


def test_a_server_is_captured_too():
    server = v1.train.Server.create_local_server()
    loss = compute(wb.staged(slow_source()))
    with v1.Session(server.target) as session, wb.prefetching(session):
        session.run(loss)
        trace = capture_steps(session, loss, 5)
    trace.self_check()
    assert len(trace.runs[trace.runs["track"] == 1]) >= 3
    assert (trace.items["take_step"] >= 0).sum() == 5


def test_what_can_go_wrong_is_said():
    capture = wb.CaptureHook()
    with pytest.raises(TraceError, match="has no session"):
        capture.start()
    x = tf.constant(1)
    with v1.train.MonitoredTrainingSession(hooks=[capture]) as session:
        with pytest.raises(TraceError, match="capture is off"):
            capture.stop()
        capture.start()
        with pytest.raises(TraceError, match="on already"):
            capture.start()
        with pytest.raises(TraceError, match="no step was run"):
            capture.stop()
        session.run(x)


def test_the_trace_says_how_long_and_how_busy_steps_were_untraced():
    capture = wb.CaptureHook()
    with tf.Graph().as_default():
        loss = compute(slow_source(0.03))
        config = v1.ConfigProto(inter_op_parallelism_threads=3)
        with v1.train.MonitoredTrainingSession(hooks=[capture], config=config) as session:
            for _ in range(12):
                session.run(loss)
            capture.start()
            for _ in range(5):
                session.run(loss)
            meta = capture.stop().meta
            capture.start()
            session.run(loss)
            again = capture.stop().meta
    assert meta.untraced.steps >= 8
    assert meta.untraced.step_ns > 30_000_000
    # a source that sleeps uses no CPU
    assert 0 < meta.untraced.cpu_ns < meta.untraced.step_ns
    assert meta.inter_op_threads == 3
    assert meta.packs_when_idle is False  # The conftest has it known.
    # what was traced does not count as untraced
    assert again.untraced == meta.untraced


def test_cores_in_use_while_an_iterator_is_waited_for():
    capture = wb.CaptureHook()
    with tf.Graph().as_default():
        dataset = tf.data.Dataset.from_tensors(tf.ones([64, 64])).repeat()
        dataset = dataset.apply(data_testing.sleep(10_000))
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        iterator = v1.data.make_initializable_iterator(dataset.with_options(options))
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        loss = compute(iterator.get_next())
        with v1.train.MonitoredTrainingSession(hooks=[capture]) as session:
            session.run(loss)
            capture.start()
            for _ in range(12):
                session.run(loss)
            meta = capture.stop().meta
    assert meta.untraced is None  # one step is too few
    assert meta.source_cores < 0.5


@pytest.mark.executors
def test_a_capture_that_falls_back_on_step_stats_says_so_and_what_to_do(caplog):
    capture = wb.CaptureHook()
    loss = compute(slow_source(0.002))
    with v1.train.MonitoredTrainingSession(hooks=[capture]) as session:
        for _ in range(12):
            session.run(loss)
        with caplog.at_level(logging.WARNING, "workbench"):
            capture.start()
        for _ in range(3):
            session.run(loss)
        trace = capture.stop()
        said = [record.getMessage() for record in caplog.records]
        caplog.clear()
        capture.start(step_stats=True)
        session.run(loss)
        asked = capture.stop()
    assert trace.meta.source == asked.meta.source == "step_stats"
    assert trace.meta.step_stats.startswith("the session does not run on one of Workbench's")
    assert 'config=wb.executor_options("normal", config=…)' in trace.meta.step_stats
    assert said == [
        "the capture uses TensorFlow's step stats, which lengthen every step and op: "
        f"{trace.meta.step_stats}; step_stats=True asks for them without this line"
    ]
    assert asked.meta.step_stats == "step_stats=True asked for them" and not caplog.records
    # measured by the hook itself, and in the caption beside the traced one
    assert trace.meta.untraced.run_ns > 2_000_000
    words = timeline_view(trace).describe()
    assert " traced, " in words and " measured (medians of 3 and " in words
    assert "step stats, which lengthen every step and op: the session does not run" in words


def test_a_library_without_executors_has_step_stats_alone_and_the_capture_says_so(
    caplog, without_executors
):
    with v1.Session() as session:
        trace = capture_steps(session, compute(slow_source(0.002)), 3)
    assert trace.meta.source == "step_stats"
    assert trace.meta.step_stats == (
        "Workbench's executors, which record their ops, need TensorFlow 2.20 or newer"
    )
    assert trace.meta.step_stats in caplog.text


@pytest.mark.executors
def test_a_server_has_step_stats_alone_and_the_capture_says_so(caplog):
    server = v1.train.Server.create_local_server()
    loss = compute(tf.random.normal([8, 8]))
    config = wb.executor_options("normal")
    with v1.Session(server.target, config=config) as session:
        session.run(loss)
        with caplog.at_level(logging.WARNING, "workbench"):
            trace = capture_steps(session, loss, 2)
    assert trace.meta.source == "step_stats"
    assert server.target in caplog.text and "trace a session without a server" in caplog.text


@pytest.mark.executors
def test_step_stats_of_an_executor_that_records_ops_are_there_when_asked_for(caplog):
    source = wb.staged(slow_source(), wb.StageOptions(), name="clicks")
    capture = wb.CaptureHook()
    hooks = [wb.make_prefetch_hook(), capture]
    config = wb.executor_options("normal")
    loss = compute(source)
    with v1.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
        session.run(loss)
        found = {}
        # A producer keeps what it runs from one capture to the next.
        for step_stats in (True, False, True):
            capture.start(step_stats=step_stats)
            for _ in range(6):
                session.run(loss)
            trace = capture.stop()
            trace.self_check()
            kinds = trace.to_pandas()
            found[step_stats] = {
                (name, kind)
                for name, kind in zip(kinds["name"], kinds["kind"], strict=True)
                if name == "read" or name.startswith("dense")
            }
            assert trace.meta.source == ("step_stats" if step_stats else "executor")
    assert found[True] == found[False]
    assert ("read", "prefetch") in found[True] and ("dense_3", "inter_op") in found[True]
    # TensorFlow has words of its own for the first test of a process that makes a py_func.
    assert not [each for each in caplog.records if each.name == "workbench"]

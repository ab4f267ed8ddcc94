"""Ops of a buffer that wait: which threads they hold, what ends them, and that nothing is lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf

from tests.builders.buffers import OWNER, Stage, told
from workbench.core.staging import buffer

v1 = tf.compat.v1

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@contextlib.contextmanager
def one_inter_op_thread() -> Iterator[Any]:
    config = v1.ConfigProto(inter_op_parallelism_threads=1, use_per_session_threads=True)
    with v1.Session(config=config) as session:
        yield session


def test_waiting_holds_no_inter_op_thread(clients):
    taking, putting = threading.Event(), threading.Event()
    empty, full = Stage(name="empty"), Stage(name="full")
    with tf.control_dependencies([told(taking, tf.constant(0))]):
        waiting_take = buffer.Buffer(capacity=1, shared_name="key/empty").take([tf.int32])[0]
    waiting_put = buffer.Buffer(capacity=1, shared_name="key/full").put(
        tf.constant(OWNER, tf.int64), [told(putting, tf.constant(5))]
    )
    other = tf.constant(1) + 1
    with one_inter_op_thread() as session:
        empty.resume(session)
        full.resume(session)
        full.put(session, 4)
        taken = clients.submit(session.run, waiting_take)
        put = clients.submit(session.run, waiting_put)
        assert taking.wait(30)
        assert putting.wait(30)
        # The only thread goes from step to step; after some it has passed the waiting ops, too.
        for _ in range(50):
            assert session.run(other) == 2
        assert not taken.done()
        assert not put.done()
        empty.put(session, 3)
        assert taken.result(30) == 3
        assert [full.take(session), full.take(session)] == [4, 5]
        put.result(30)


@pytest.mark.timeout(120)  # Steps that wait for each other cannot be cancelled.
def test_steps_in_their_callers_threads_leave_the_intra_op_threads_free(clients):
    stage = Stage()
    with tf.control_dependencies([stage.taken]):
        noise = tf.random.stateless_uniform([1000, 1000], [1, 2])
        step = tf.reduce_sum(tf.exp(tf.tanh(noise) * noise + tf.sin(noise)))
    config = v1.ConfigProto(intra_op_parallelism_threads=2, use_per_session_threads=True)
    in_caller = v1.RunOptions(inter_op_thread_pool=-1)
    consumers, each = 4, 30

    def consume(session: Any) -> int:
        for _ in range(each):
            session.run(step.op, options=in_caller)
        return each

    with v1.Session(config=config) as session:
        stage.resume(session)
        # More of them than intra-op threads: each waits in take, goes on, and needs those threads.
        calls = [clients.submit(consume, session) for _ in range(consumers)]
        for value in range(consumers * each):
            stage.put(session, value)
        assert sum(call.result() for call in calls) == consumers * each


def test_closing_the_session_ends_who_waits(clients):
    taking, putting = threading.Event(), threading.Event()
    stage = Stage()
    with tf.control_dependencies([told(taking, tf.constant(0))]):
        waiting_take = buffer.Buffer(capacity=1, shared_name="other").take([tf.int32])[0]
    resume = buffer.Buffer(capacity=1, shared_name="other").resume(tf.constant(OWNER, tf.int64))
    waiting_put = buffer.Buffer(capacity=1, shared_name="key/clicks").put(
        tf.constant(OWNER, tf.int64), [told(putting, tf.constant(5))]
    )
    for _ in range(20):
        taking.clear()
        putting.clear()
        session = v1.Session()
        stage.resume(session)
        session.run(resume)
        stage.put(session, 1)
        calls = [clients.submit(session.run, op) for op in (waiting_take, waiting_put)]
        assert taking.wait(30)
        assert putting.wait(30)
        session.close()
        for call in calls:
            with pytest.raises(tf.errors.CancelledError):
                call.result(30)


@pytest.mark.parametrize("where", ["run", "session"])
def test_a_step_that_times_out_takes_and_loses_nothing(where):
    stage = Stage()
    options = v1.RunOptions(timeout_in_ms=50) if where == "run" else None
    config = v1.ConfigProto(operation_timeout_in_ms=50 if where == "session" else 0)
    with v1.Session(config=config) as session:
        stage.resume(session)
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            stage.take(session, options)
        assert not buffer.is_parked(caught.value)
        stage.put(session, 1)
        assert stage.size(session) == 1
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            stage.put(session, 2, options=options)
        assert not buffer.is_parked(caught.value)
        assert stage.take(session) == 1
        assert stage.size(session) == 0  # The step of 2 is dead, and 2 with it.


def test_a_put_that_times_out_loses_nothing(clients):
    stage = Stage(timeout_millis=20)
    with v1.Session() as session:
        stage.resume(session)
        stage.put(session, 1)
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            stage.put(session, 2)
        assert buffer.is_parked(caught.value)
        for part in ("stage 'clicks'", "20 ms", "capacity 1", "the batch stays in line"):
            assert part in caught.value.message
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            stage.flush(session)
        assert buffer.is_parked(caught.value)
        assert stage.size(session) == 1
        assert stage.take(session) == 1
        stage.flush(session)
        assert stage.take(session) == 2


def test_take_without_a_runner_says_what_is_missing():
    stage = Stage()
    with v1.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError) as caught:
            stage.take(session)
        for part in ("stage 'clicks'", "200 ms", "make_prefetch_hook()"):
            assert part in caught.value.message
        with pytest.raises(tf.errors.FailedPreconditionError, match="before any resume"):
            stage.put(session, 1)


def test_many_producers_and_consumers_each_item_once(clients):
    stage = Stage(capacity=3)
    producers, each = 4, 200
    with v1.Session() as session:
        stage.resume(session)

        def produce(thread: int) -> None:
            for i in range(each):
                stage.put(session, thread * each + i, [OWNER[0], thread])

        def consume() -> list[int]:
            taken = []
            with contextlib.suppress(tf.errors.OutOfRangeError):
                while True:
                    taken.append(int(stage.take(session)))
            return taken

        consumers = [clients.submit(consume) for _ in range(3)]
        for call in [clients.submit(produce, thread) for thread in range(producers)]:
            call.result(60)
        stage.close(session)
        taken = [value for call in consumers for value in call.result(60)]
    assert sorted(taken) == list(range(producers * each))

"""The state of an iterator, saved and restored while stages read ahead of it."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.epochs import take_all
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.staging.buffer import Buffer

v1 = tf.compat.v1
KINDS = ("plain", "stage", "two stages", "smart", "smart over stage")
CAPACITY = 3


class Program:
    """Batches of range(`count`), staged in one way, and a saver of the iterator alone."""

    def __init__(self, kind: str = "stage", *, count: int = 100, name: str = "clicks", **options):
        self.iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(count))
        self.batch = self.iterator.get_next()
        chosen = StageOptions(**{"capacity": CAPACITY, **options})
        if kind in ("stage", "two stages", "smart over stage"):
            self.batch = wb.staged(self.batch, chosen, name=name)
        if kind == "two stages":
            self.batch = wb.staged(self.batch * 1, chosen, name="second")
        self.step = tf.cast(self.batch * 2, tf.float32)
        saveable = tf.data.experimental.make_saveable_from_iterator(self.iterator)
        self.saver = v1.train.Saver([saveable])
        self.config = None
        if kind.startswith("smart"):
            self.config, plan = wb.prepare_config(
                v1.get_default_graph(),
                None,
                SmartStageOptions(capacity=CAPACITY),
                targets=[self.step],
            )
            assert plan.stages

    @contextlib.contextmanager
    def running(self, path: Path | None = None, target: str = ""):
        with v1.Session(target, config=self.config) as session:
            session.run(self.iterator.initializer)
            if path:
                self.restore(session, path)
            with wb.prefetching(session):
                yield session

    def take(self, session: v1.Session, count: int) -> list[int]:
        return [int(session.run([self.batch, self.step])[0]) for _ in range(count)]

    def save(self, session: v1.Session, path: Path) -> None:
        self.saver.save(session, str(path / "state"), write_meta_graph=False)

    def restore(self, session: v1.Session, path: Path) -> None:
        self.saver.restore(session, str(path / "state"))


def wait_for_items(session: v1.Session, stage: str = "clicks", count: int = CAPACITY) -> None:
    """Waits until a stage has read ahead as far as it can."""
    graph = session.graph
    with graph.as_default(), tf.device("/CPU:0"):
        take = graph.get_operation_by_name(f"{stage}/take")
        size = Buffer(
            shared_name=take.get_attr("shared_name").decode(),
            capacity=take.get_attr("capacity"),
            stage=stage,
        ).size()
    while session.run(size) < count:
        time.sleep(0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_batch_after_a_restore_follows_the_last_trained_one(kind, tmp_path):
    program = Program(kind)
    with program.running() as session:
        assert program.take(session, 5) == list(range(5))
        program.save(session, tmp_path)
        assert program.take(session, 3) == [5, 6, 7]
    with program.running(tmp_path) as session:
        assert program.take(session, 12) == list(range(5, 17))


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_in_a_running_session_gives_the_same_batches_again(kind, tmp_path):
    program = Program(kind)
    with program.running() as session:
        program.take(session, 3)
        program.save(session, tmp_path)
        for _ in range(3):
            assert program.take(session, 7) == list(range(3, 10))
            program.restore(session, tmp_path)


def test_what_was_read_ahead_is_saved_when_the_stage_has_stopped(tmp_path):
    program = Program()
    with program.running() as session:
        program.take(session, 2)
        wait_for_items(session)
    with v1.Session() as session:
        session.run(program.iterator.initializer)
        with wb.prefetching(session):
            program.take(session, 2)
        program.save(session, tmp_path)
    with program.running(tmp_path) as session:
        assert program.take(session, 4) == [2, 3, 4, 5]


def test_no_batch_of_several_producers_is_saved_twice_or_lost(tmp_path):
    program = Program(num_threads=3, count=60)
    with program.running() as session:
        before = program.take(session, 10)
        program.save(session, tmp_path)
    with program.running(tmp_path) as session:
        assert sorted(before + take_all(session, program.batch)) == list(range(60))


def test_a_save_at_the_end_of_the_input_keeps_the_last_batches(tmp_path):
    program = Program(count=5)
    with program.running() as session:
        program.take(session, 2)
        wait_for_items(session)
        program.save(session, tmp_path)
    with program.running(tmp_path) as session:
        assert take_all(session, program.batch) == [2, 3, 4]


@pytest.mark.parametrize("kind", ["plain", "stage"])
def test_a_state_without_batches_is_the_one_that_tensorflow_saves(kind, tmp_path):
    program = Program(kind, count=3)
    with program.running() as session:
        assert take_all(session, program.batch) == [0, 1, 2]
        program.save(session, tmp_path)
    with tf.Graph().as_default():
        program = Program("plain", count=3)
        with program.running(tmp_path) as session:
            assert take_all(session, program.batch) == []


def test_a_stage_goes_on_from_a_state_that_was_saved_without_one(tmp_path):
    with tf.Graph().as_default():
        program = Program("plain")
        with program.running() as session:
            program.take(session, 5)
            program.save(session, tmp_path)
    program = Program()
    with program.running(tmp_path) as session:
        assert program.take(session, 3) == [5, 6, 7]


@pytest.mark.parametrize("kind", ["plain", "stage"])
def test_a_graph_without_the_stage_refuses_the_batches_of_it(kind, tmp_path):
    with tf.Graph().as_default():
        program = Program()
        with program.running() as session:
            program.take(session, 1)
            wait_for_items(session)
            program.save(session, tmp_path)
    other = Program(kind, name="views")
    refused = pytest.raises(tf.errors.FailedPreconditionError, match="batches that stage 'clicks'")
    with refused, other.running(tmp_path):
        pass


def test_a_stage_that_delivers_other_types_refuses_the_batches(tmp_path):
    with tf.Graph().as_default():
        program = Program()
        with program.running() as session:
            program.take(session, 1)
            wait_for_items(session)
            program.save(session, tmp_path)
    iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(100))
    wb.staged(tf.cast(iterator.get_next(), tf.int32), name="clicks")
    saver = v1.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    with v1.Session() as session:
        session.run(iterator.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"dtypes \[int64\], but"):
            saver.restore(session, str(tmp_path / "state"))


def test_an_initializer_after_a_restore_begins_from_the_start(tmp_path):
    program = Program()
    with program.running() as session:
        program.take(session, 5)
        wait_for_items(session)
        program.save(session, tmp_path)
    with v1.Session() as session:
        session.run(program.iterator.initializer)
        program.restore(session, tmp_path)
        session.run(program.iterator.initializer)
        with wb.prefetching(session):
            assert program.take(session, 3) == [0, 1, 2]


def test_a_checkpoint_object_saves_what_was_read_ahead(tmp_path):
    program = Program()
    checkpoint = tf.train.Checkpoint(iterator=program.iterator)
    with program.running() as session, session.as_default():
        program.take(session, 4)
        wait_for_items(session)
        path = checkpoint.write(str(tmp_path / "state"))
    with v1.Session() as session:
        session.run(program.iterator.initializer)
        checkpoint.read(path).run_restore_ops(session)
        with wb.prefetching(session):
            assert program.take(session, 5) == [4, 5, 6, 7, 8]


def test_sessions_of_a_server_save_and_restore_what_was_read_ahead(tmp_path):
    server = v1.train.Server.create_local_server()
    program = Program()
    with program.running(target=server.target) as session:
        program.take(session, 4)
        wait_for_items(session)
        program.save(session, tmp_path)
    with program.running(tmp_path, server.target) as session:
        assert program.take(session, 5) == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("restored_first", [True, False])
def test_a_monitored_session_restores_the_iterator_by_a_hook(restored_first, tmp_path):
    program = Program()
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, program.iterator.initializer)
    v1.train.get_or_create_global_step()

    class Restore(v1.train.SessionRunHook):
        def after_create_session(self, session, coord):
            if (tmp_path / "checkpoint").exists():
                program.restore(session, tmp_path)

    hooks = [Restore(), wb.make_prefetch_hook()]
    hooks = hooks if restored_first else hooks[::-1]
    for first in (0, 6):
        with v1.train.MonitoredSession(hooks=hooks) as session:
            seen = program.take(session, 6)
            session.run_step_fn(lambda step_context: program.save(step_context.session, tmp_path))
        assert seen == list(range(first, first + 6))


def test_two_iterators_of_one_stage_are_saved_as_one(tmp_path):
    iterators = [
        v1.data.make_initializable_iterator(tf.data.Dataset.range(start, start + 50))
        for start in (0, 100)
    ]
    batch = wb.staged([each.get_next() for each in iterators], StageOptions(capacity=2))
    make = tf.data.experimental.make_saveable_from_iterator
    saver = v1.train.Saver([make(each) for each in iterators])
    start = [each.initializer for each in iterators]
    with v1.Session() as session:
        session.run(start)
        with wb.prefetching(session):
            for step in range(20):
                assert session.run(batch) == [step, 100 + step]
                saver.save(session, str(tmp_path / "state"), write_meta_graph=False)
    with v1.Session() as session:
        session.run(start)
        for _ in range(2):
            saver.restore(session, str(tmp_path / "state"))
            with wb.prefetching(session):
                assert [session.run(batch) for _ in range(5)] == [
                    [i, 100 + i] for i in range(20, 25)
                ]


def test_a_step_may_take_and_save(tmp_path):
    program = Program(capacity=1)
    path = {program.saver.saver_def.filename_tensor_name: str(tmp_path / "state")}
    save = program.saver.saver_def.save_tensor_name
    with program.running() as session:
        for number in range(20):
            assert session.run([program.batch, save], path)[0] == number


def test_a_save_waits_for_the_batch_that_is_being_read(tmp_path, clients):
    reads, goes_on = threading.Event(), threading.Event()

    def slow(number):
        if number == 2:
            reads.set()
            assert goes_on.wait(30)
        return number

    data = tf.data.Dataset.range(9).map(lambda i: tf.numpy_function(slow, [i], tf.int64))
    options = tf.data.Options()
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    iterator = v1.data.make_initializable_iterator(data.with_options(options))
    batch = wb.staged(iterator.get_next(), StageOptions(capacity=CAPACITY))
    saveable = tf.data.experimental.make_saveable_from_iterator(
        iterator, external_state_policy="ignore"
    )
    saver = v1.train.Saver([saveable])
    path = {saver.saver_def.filename_tensor_name: str(tmp_path / "state")}
    with v1.Session() as session:
        session.run(iterator.initializer)
        with wb.prefetching(session):
            assert session.run(batch) == 0
            assert reads.wait(30)
            saved = clients.submit(session.run, saver.saver_def.save_tensor_name, path)
            with pytest.raises(TimeoutError):
                saved.result(0.3)
            goes_on.set()
            saved.result(30)
        assert session.run(batch) == 1
        saver.restore(session, str(tmp_path / "state"))
        with wb.prefetching(session):
            assert [session.run(batch) for _ in range(4)] == [1, 2, 3, 4]


def test_a_save_that_waits_too_long_says_so(clients):
    queue = tf.queue.FIFOQueue(9, tf.int64, [[]])
    iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(9))
    # The producer waits for the queue.
    batch = wb.staged(
        iterator.get_next() + queue.dequeue(), StageOptions(timeout_millis=200), name="clicks"
    )
    state = tf.raw_ops.SerializeIterator(resource_handle=iterator._iterator_resource)
    with v1.Session() as session:
        session.run(iterator.initializer)
        with wb.prefetching(session):
            session.run(queue.enqueue(tf.constant(10, tf.int64)))
            assert session.run(batch) == 10
            with pytest.raises(tf.errors.DeadlineExceededError, match="did not finish reading"):
                session.run(state)
            session.run(queue.enqueue(tf.constant(10, tf.int64)))
            assert session.run(batch) == 11
            session.run(queue.close(cancel_pending_enqueues=True))


def test_a_function_and_a_reader_refuse_to_save_behind_a_stage():
    queue = tf.queue.FIFOQueue(9, tf.string, [[]])
    reader = v1.IdentityReader()
    read = wb.staged(reader.read(queue)[1], name="lines")
    iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(9))
    batch = wb.staged(iterator.get_next(), name="clicks")
    serialize = tf.function(lambda handle: tf.raw_ops.SerializeIterator(resource_handle=handle))
    in_a_function = serialize(iterator._iterator_resource)
    with v1.Session() as session:
        session.run([iterator.initializer, queue.enqueue_many([["a", "b", "c"]])])
        with wb.prefetching(session):
            session.run([read, batch])
            with pytest.raises(tf.errors.FailedPreconditionError, match="of stage 'lines' was not"):
                session.run(reader.serialize_state())
            with pytest.raises(tf.errors.FailedPreconditionError, match="'clicks' was not saved"):
                session.run(in_a_function)

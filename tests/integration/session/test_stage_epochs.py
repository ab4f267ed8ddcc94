"""Stages whose input is initialized again: the epoch loop, as without a stage."""

from __future__ import annotations

import collections
import contextlib
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.epochs import take_all
from tests.builders.grids import every_value
from workbench.core import smart_stage
from workbench.core.options import SmartStageOptions, StageOptions

v1 = tf.compat.v1
KINDS = ("plain", "stage", "smart", "smart over stage", "two stages")


class Loop:
    """A counter of batches over an iterator of range(20), un-staged or staged in one way."""

    def __init__(self, kind: str, threads: int = 1, capacity: int = 1) -> None:
        self.iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(20))
        batch = self.iterator.get_next()
        chosen = StageOptions(num_threads=threads, capacity=capacity)
        if kind in ("stage", "smart over stage", "two stages"):
            batch = wb.staged(batch, chosen)
        if kind == "two stages":
            batch = wb.staged(batch * 1, chosen)
        seen = tf.cast(batch * 2, tf.float32)
        weight = v1.get_variable("w", [], initializer=tf.zeros_initializer(), use_resource=True)
        self.step = v1.train.get_or_create_global_step()
        with tf.control_dependencies([weight.assign_add(seen)]):
            self.train = self.step.assign_add(1)
        self.batch = batch
        self.config = None
        if kind.startswith("smart"):
            self.config, plan = smart_stage.prepare_config(
                v1.get_default_graph(),
                None,
                SmartStageOptions(num_threads=threads, capacity=capacity, reorder=threads > 1),
                targets=[self.train],
            )
            assert plan.stages

    def run(self, session) -> int:
        return int(session.run([self.batch, self.train])[0])

    def until_the_end(self, session) -> list[int]:
        seen = []
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                seen.append(self.run(session))
        return seen

    @contextlib.contextmanager
    def session(self):
        with v1.Session(config=self.config) as session:
            session.run(v1.global_variables_initializer())
            with wb.prefetching(session):
                yield session


@every_value(kind=KINDS, threads=[1, 3])
class TestEpochs:
    def test_each_epoch_of_a_plain_session_has_each_item_once(self, kind, threads):
        loop = Loop(kind, threads, capacity=threads)
        with loop.session() as session:
            for _ in range(4):
                session.run(loop.iterator.initializer)
                assert sorted(loop.until_the_end(session)) == list(range(20))
            assert session.run(loop.step) == 80

    def test_each_epoch_of_a_monitored_session_has_each_item_once(self, kind, threads):
        loop = Loop(kind, threads, capacity=threads)
        with v1.train.MonitoredTrainingSession(
            hooks=[wb.make_prefetch_hook()], config=loop.config
        ) as session:
            for _ in range(3):
                session.run(loop.iterator.initializer)
                assert sorted(loop.until_the_end(session)) == list(range(20))

    def test_an_epoch_given_up_leaves_nothing_to_the_next(self, kind, threads):
        loop = Loop(kind, threads, capacity=4)
        with loop.session() as session:
            for taken in (5, 1, 0, 19, 20, 7):
                session.run(loop.iterator.initializer)
                seen = [loop.run(session) for _ in range(taken)]
                assert len(set(seen)) == taken
                assert all(item < taken + 20 for item in seen)
            session.run(loop.iterator.initializer)
            assert sorted(loop.until_the_end(session)) == list(range(20))


@pytest.mark.parametrize("kind", ["stage", "smart", "two stages"])
def test_many_clients_and_an_initialization_between_lose_nothing(kind):
    loop = Loop(kind, threads=2, capacity=2)
    taken: collections.deque[int] = collections.deque()
    with loop.session() as session:
        session.run(loop.iterator.initializer)

        def client():
            with contextlib.suppress(tf.errors.OutOfRangeError):
                while True:
                    taken.append(loop.run(session))

        clients = [threading.Thread(target=client) for _ in range(3)]
        for thread in clients:
            thread.start()
        while len(taken) < 3:
            time.sleep(0.001)
        session.run(loop.iterator.initializer)
        for thread in clients:
            thread.join(60)
            assert not thread.is_alive()
    # The second epoch is whole; of the first there are the items taken before, each once.
    times = collections.Counter(taken)
    assert set(times) == set(range(20))
    assert max(times.values()) <= 2


class TestInputs:
    def test_an_iterator_made_from_a_structure_goes_from_dataset_to_dataset(self):
        first, second = tf.data.Dataset.range(10), tf.data.Dataset.range(100, 105)
        iterator = v1.data.Iterator.from_structure(tf.int64, [])
        back = wb.staged(iterator.get_next(), StageOptions(capacity=3, num_threads=2))
        # Made after the stage.
        starts = [iterator.make_initializer(first), iterator.make_initializer(second)]
        with v1.Session() as session, wb.prefetching(session):
            for start, expected in [(0, range(10)), (1, range(100, 105)), (0, range(10))]:
                session.run(starts[start])
                assert sorted(take_all(session, back)) == list(expected)
            session.run(starts[0])
            session.run(back)
            session.run(starts[1])
            assert sorted(take_all(session, back)) == list(range(100, 105))

    def test_an_initializer_made_while_the_session_runs_is_seen(self):
        iterator = v1.data.Iterator.from_structure(tf.int64, [])
        back = wb.staged(iterator.get_next(), StageOptions(capacity=3))
        start = iterator.make_initializer(tf.data.Dataset.range(10))
        with v1.Session() as session, wb.prefetching(session):
            session.run(start)
            assert session.run(back) == 0
            session.run(iterator.make_initializer(tf.data.Dataset.range(100, 105)))
            assert take_all(session, back) == list(range(100, 105))

    def test_an_iterator_behind_a_fed_handle_begins_again(self):
        iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(10))
        handle = v1.placeholder(tf.string, [])
        chosen = v1.data.Iterator.from_string_handle(handle, tf.int64, [])
        back = wb.staged(
            chosen.get_next() + 0,
            StageOptions(capacity=3),
            feed_dict={handle: iterator.string_handle()},
        )
        with v1.Session() as session, wb.prefetching(session):
            for taken in (3, 10):
                session.run(iterator.initializer)
                assert [session.run(back) for _ in range(taken)] == list(range(taken))

    def test_an_iterator_that_values_are_fed_from_begins_again(self):
        iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(10))
        fed = v1.placeholder(tf.int64, [])
        back = wb.staged(fed * 1, StageOptions(capacity=3), feed_dict={fed: iterator.get_next()})
        with v1.Session() as session, wb.prefetching(session):
            for taken in (3, 10, 10):
                session.run(iterator.initializer)
                assert [session.run(back) for _ in range(taken)] == list(range(taken))

    def test_several_iterators_are_initialized_together_or_one_by_one(self):
        iterators = [
            v1.data.make_initializable_iterator(tf.data.Dataset.range(start, start + 10))
            for start in (0, 100)
        ]
        back = wb.staged([each.get_next() for each in iterators], StageOptions(capacity=3))
        starts = [each.initializer for each in iterators]
        expected = [[i, 100 + i] for i in range(10)]
        with v1.Session() as session, wb.prefetching(session):
            for run in range(6):
                for start in [starts] if run % 2 else starts:
                    session.run(start)
                if run % 3:
                    assert take_all(session, back) == expected
                else:
                    assert [session.run(back) for _ in range(4)] == expected[:4]

    def test_threads_with_an_iterator_each_begin_again(self):
        iterators = [
            v1.data.make_initializable_iterator(tf.data.Dataset.range(start, start + 5))
            for start in (0, 100)
        ]
        back = wb.prefetch_join([each.get_next() for each in iterators])
        with v1.Session() as session, wb.prefetching(session):
            for taken in (3, 10, 1, 10):
                session.run([each.initializer for each in iterators])
                seen = [int(session.run(back)) for _ in range(taken)]
                assert len(set(seen)) == taken
            assert sorted(seen) == [*range(5), *range(100, 105)]

    def test_a_reader_that_is_reset_begins_again(self, tmp_path):
        path = tmp_path / "lines.txt"
        path.write_text("".join(f"{i}\n" for i in range(8)))
        queue = tf.queue.FIFOQueue(8, [tf.string], [[]])
        fill = queue.enqueue([str(path)])
        reader = v1.TextLineReader()
        back = wb.staged(reader.read(queue)[1], StageOptions(capacity=3))
        with v1.Session() as session, wb.prefetching(session):
            session.run(fill)
            assert [int(session.run(back)) for _ in range(3)] == [0, 1, 2]
            while session.run(queue.size()):
                pass
            session.run(reader.reset())
            session.run(fill)
            assert [int(session.run(back)) for _ in range(5)] == [0, 1, 2, 3, 4]

    def test_an_input_that_begins_again_unseen_is_asked_again(self):
        state = {"next": 0}

        def read():
            if state["next"] == 5:
                raise StopIteration
            state["next"] += 1
            return np.int64(state["next"])

        back = wb.staged(v1.py_func(read, [], tf.int64))
        with v1.Session() as session, wb.prefetching(session):
            for _ in range(3):
                assert take_all(session, back) == [1, 2, 3, 4, 5]
                assert take_all(session, back) == []
                state["next"] = 0

    def test_a_session_that_places_pruned_graphs_sees_the_ends_of_epochs(self):
        loop = Loop("stage", capacity=3)
        loop.config = v1.ConfigProto(graph_options=v1.GraphOptions(place_pruned_graph=True))
        with loop.session() as session:
            for _ in range(3):
                session.run(loop.iterator.initializer)
                assert loop.until_the_end(session) == list(range(20))

    def test_a_server_sees_what_a_session_in_the_process_sees(self):
        server = v1.train.Server.create_local_server()
        loop = Loop("two stages", capacity=3)
        with v1.Session(server.target) as session:
            session.run(v1.global_variables_initializer())
            with wb.prefetching(session):
                for taken in (3, 20, 20):
                    session.run(loop.iterator.initializer)
                    assert [loop.run(session) for _ in range(taken)] == list(range(taken))
            session.run(loop.iterator.initializer)


class TestRefusals:
    def test_a_step_must_not_be_in_the_run_that_initializes(self):
        loop = Loop("two stages")
        with loop.session() as session:
            session.run(loop.iterator.initializer)
            assert loop.run(session) == 0
            with pytest.raises(
                tf.errors.FailedPreconditionError, match="run the initializer in a run of its own"
            ):
                for _ in range(100):  # The take may come first, and is served then.
                    session.run([loop.iterator.initializer, loop.batch])
            session.run(loop.iterator.initializer)
            assert loop.until_the_end(session) == list(range(20))

    def test_what_is_never_initialized_is_said_at_the_first_step(self):
        for kind in ("stage", "smart", "two stages"):
            with tf.Graph().as_default():
                loop = Loop(kind, threads=2, capacity=2)
                with (
                    loop.session() as session,
                    pytest.raises(tf.errors.FailedPreconditionError, match="not been initialized"),
                ):
                    loop.run(session)

    @pytest.mark.parametrize("stages", [1, 2])
    def test_an_initialization_that_was_cut_short_is_said_and_can_be_repeated(self, stages):
        reading, go_on = threading.Event(), threading.Event()

        def slow(number):
            if number == 2 and not go_on.is_set():
                reading.set()
                go_on.wait(60)
            return number

        data = tf.data.Dataset.range(10).map(lambda i: tf.numpy_function(slow, [i], tf.int64))
        plain = tf.data.Options()
        plain.experimental_optimization.inject_prefetch = False
        iterator = v1.data.make_initializable_iterator(data.with_options(plain))
        back = iterator.get_next()
        for _ in range(stages):
            back = wb.staged(back * 1, name="clicks")
        last = "clicks" if stages == 1 else "clicks_1"
        with v1.Session() as session, wb.prefetching(session):
            session.run(iterator.initializer)
            assert session.run(back) == 0
            assert reading.wait(30)
            limit = v1.RunOptions(timeout_in_ms=200)
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(iterator.initializer, options=limit)
            with pytest.raises(
                tf.errors.FailedPreconditionError,
                match=f"'{last}' finds nothing.*initializer again",
            ):
                session.run(back)
            go_on.set()
            session.run(iterator.initializer)
            assert take_all(session, back) == list(range(10))

    def test_producers_that_read_on_end_the_wait_of_an_initializer(self):
        queue = tf.queue.FIFOQueue(4, [tf.int64], [[]])
        fill = queue.enqueue([7])
        iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(10))
        with tf.control_dependencies([queue.dequeue()]):
            batch = iterator.get_next()
        back = wb.staged(batch, StageOptions(timeout_millis=300), name="clicks")
        with v1.Session() as session, wb.prefetching(session):
            session.run(iterator.initializer)
            with pytest.raises(tf.errors.FailedPreconditionError, match="waited too long"):
                session.run(back)
            session.run(fill)
            session.run(iterator.initializer)
            session.run(fill)
            assert session.run(back) == 0

    def test_a_session_is_closed_while_its_producers_rest(self):
        loop = Loop("stage")
        session = v1.Session()
        session.run(v1.global_variables_initializer())
        with wb.prefetching(session):
            session.run(loop.iterator.initializer)
            assert len(loop.until_the_end(session)) == 20
            session.close()
        assert not [t for t in threading.enumerate() if t.name.startswith("prefetch")]

"""Where an initializer may stand: in functions, in branches, in other sessions, in older runs."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
import tensorflow as tf
from tensorflow.python.framework import function as v1_function

import workbench as wb
from tests.builders.epochs import take_all
from workbench.core.options import StageOptions

v1 = tf.compat.v1
AHEAD = StageOptions(capacity=3)
ALWAYS = ["function", "nested_functions", "function_of_two_handles", "defun"]
WHEN_ASKED = ["switch", "branch", "case", "loop"]


@contextlib.contextmanager
def control_flow(*, of_functions: bool) -> Iterator[None]:
    """Conditionals as an If that calls functions, or as Switch and Merge."""
    was = v1.control_flow_v2_enabled()
    v1.enable_control_flow_v2() if of_functions else v1.disable_control_flow_v2()
    try:
        yield
    finally:
        v1.enable_control_flow_v2() if was else v1.disable_control_flow_v2()


class Epoch:
    """An iterator of range(10) behind a stage, and many ways to initialize it."""

    def __init__(self, shared_name: str | None = None) -> None:
        self.data = tf.data.Dataset.range(10)
        self.iterator = v1.data.make_initializable_iterator(self.data, shared_name)
        self.asked = v1.placeholder(tf.bool, [])
        self.back = wb.staged(self.iterator.get_next(), AHEAD, name="clicks")

    def starting(self, way: str) -> tf.Tensor:
        """Initializes the iterator; those of WHEN_ASKED do so if `asked`."""
        return getattr(self, f"by_{way}")()

    def start(self, handle: tf.Tensor | None = None) -> tf.Tensor:
        handle = self.iterator._iterator_resource if handle is None else handle
        made = tf.raw_ops.MakeIterator(dataset=self.data._variant_tensor, iterator=handle)
        with tf.control_dependencies([made]):
            return tf.constant(1)

    def by_function(self):
        return tf.function(lambda: self.start(), autograph=False)()

    def by_nested_functions(self):
        inner = tf.function(lambda: self.start(), autograph=False)
        return tf.function(lambda: inner() + 1, autograph=False)()

    def by_function_of_two_handles(self):
        other = v1.data.make_initializable_iterator(self.data)
        second = tf.function(lambda first, second: self.start(second), autograph=False)
        return second(other._iterator_resource, self.iterator._iterator_resource)

    def by_defun(self):
        @v1_function.Defun(tf.resource, tf.variant)
        def start(iterator, dataset):
            made = tf.raw_ops.MakeIterator(dataset=dataset, iterator=iterator)
            with tf.control_dependencies([made]):
                return tf.constant(1)

        return start(self.iterator._iterator_resource, self.data._variant_tensor)

    def by_switch(self):
        with control_flow(of_functions=False):
            return tf.cond(self.asked, self.start, lambda: tf.constant(0))

    def by_branch(self):
        with control_flow(of_functions=True):
            return tf.cond(self.asked, self.start, lambda: tf.constant(0))

    def by_case(self):
        with control_flow(of_functions=True):
            which = tf.cast(self.asked, tf.int32)
            return tf.switch_case(which, [lambda: tf.constant(0), self.start])

    def by_loop(self):
        with control_flow(of_functions=True):
            turns = 2 * tf.cast(self.asked, tf.int32)
            return tf.while_loop(
                lambda turn: turn < turns, lambda turn: [turn + self.start()], [tf.constant(0)]
            )


@pytest.mark.parametrize("way", [*ALWAYS, *WHEN_ASKED])
class TestPlaces:
    def test_the_stage_begins_again(self, way):
        epoch = Epoch()
        start = epoch.starting(way)
        with v1.Session() as session, wb.prefetching(session):
            session.run(epoch.iterator.initializer)
            for taken in (4, 10, 3, 10):
                session.run(start, {epoch.asked: True})
                assert [session.run(epoch.back) for _ in range(taken)] == list(range(taken))
            assert take_all(session, epoch.back) == []

    def test_a_graph_grows_while_the_stage_reads(self, way):
        epoch = Epoch()
        with v1.Session() as session, wb.prefetching(session):
            session.run(epoch.iterator.initializer)
            assert session.run(epoch.back) == 0
            start = epoch.starting(way)
            for _ in range(2):
                session.run(start, {epoch.asked: True})
                assert [session.run(epoch.back) for _ in range(4)] == [0, 1, 2, 3]
            _ = epoch.back + 1  # The graph grows once more, and has the changed functions already.
            session.run(start, {epoch.asked: True})
            assert take_all(session, epoch.back) == list(range(10))


class TestWhatIsLeftAlone:
    @pytest.mark.parametrize("way", WHEN_ASKED)
    def test_a_branch_that_is_not_taken_loses_nothing(self, way):
        epoch = Epoch()
        start = epoch.starting(way)
        with v1.Session() as session, wb.prefetching(session):
            session.run(epoch.iterator.initializer)
            seen = []
            for _ in range(10):
                seen.append(session.run(epoch.back))
                session.run(start, {epoch.asked: False})
            assert seen == list(range(10))

    def test_an_iterator_that_a_function_has_but_does_not_initialize(self):
        epoch = Epoch()
        other = v1.data.make_initializable_iterator(epoch.data)
        second = tf.function(lambda first, second: epoch.start(second), autograph=False)
        start = second(epoch.iterator._iterator_resource, other._iterator_resource)
        with v1.Session() as session, wb.prefetching(session):
            session.run(epoch.iterator.initializer)
            seen = []
            for _ in range(10):
                seen.append(session.run(epoch.back))
                session.run(start)
            assert seen == list(range(10))

    def test_an_iterator_of_the_same_name_in_another_session(self):
        epoch = Epoch(shared_name="clicks")
        with v1.Session() as session, wb.prefetching(session):
            elsewhere = v1.Session()
            session.run(epoch.iterator.initializer)
            seen = []
            for _ in range(10):
                seen.append(session.run(epoch.back))
                elsewhere.run(epoch.iterator.initializer)
            assert seen == list(range(10))
            elsewhere.close()

    def test_a_function_of_the_staged_side(self):
        iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(10))
        numbers = tf.data.Dataset.range(5)
        other = v1.data.make_initializable_iterator(numbers)

        def first_of_other():
            made = tf.raw_ops.MakeIterator(
                dataset=numbers._variant_tensor, iterator=other._iterator_resource
            )
            with tf.control_dependencies([made]):
                return other.get_next()

        read = iterator.get_next() + tf.function(first_of_other, autograph=False)()
        back = wb.staged(read, AHEAD)
        with v1.Session() as session, wb.prefetching(session):
            for _ in range(2):
                session.run(iterator.initializer)
                assert take_all(session, back) == list(range(10))


class TestSessions:
    def test_one_that_places_pruned_graphs(self):
        epoch = Epoch()
        start = epoch.starting("function")
        config = v1.ConfigProto(graph_options=v1.GraphOptions(place_pruned_graph=True))
        with v1.Session(config=config) as session, wb.prefetching(session):
            session.run(epoch.iterator.initializer)
            for taken in (4, 10, 3):
                session.run(start)
                assert [session.run(epoch.back) for _ in range(taken)] == list(range(taken))

    @pytest.mark.executors
    @pytest.mark.parametrize("policy", ["INLINE", "COST_MODEL"])
    def test_one_with_an_executor_of_workbench(self, policy):
        epoch = Epoch()
        starts = [epoch.starting(way) for way in ("function", "branch", "loop")]
        config = v1.ConfigProto()
        config.experimental.executor_type = f"WORKBENCH_{policy}"
        with v1.Session(config=config) as session, wb.prefetching(session):
            session.run(epoch.iterator.initializer)
            for start in starts * 2:
                session.run(start, {epoch.asked: True})
                assert [session.run(epoch.back) for _ in range(4)] == [0, 1, 2, 3]

    def test_one_of_a_cluster_of_several_tasks(self):
        cluster = two_tasks()
        servers = [v1.train.Server(cluster, "worker", task) for task in range(2)]
        with tf.device("/job:worker/task:1"):
            epoch = Epoch(shared_name="clicks")
        with tf.Graph().as_default() as graph, tf.device("/job:worker/task:1"):
            plain = v1.data.make_initializable_iterator(tf.data.Dataset.range(3))
            number = plain.get_next()
        with v1.Session(servers[0].target, graph=graph) as session:
            session.run(plain.initializer)
            assert take_all(session, number) == [0, 1, 2]
        with v1.Session(servers[0].target) as session, wb.prefetching(session):
            for taken in (4, 10, 3):
                session.run(epoch.iterator.initializer)
                assert [session.run(epoch.back) for _ in range(taken)] == list(range(taken))


def two_tasks() -> tf.train.ClusterSpec:
    """Two servers' addresses, on ports that are free."""
    with socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.bind(("localhost", 0))
        ports = [each.getsockname()[1] for each in (first, second)]
    return tf.train.ClusterSpec({"worker": [f"localhost:{port}" for port in ports]})


class TestOtherRuns:
    def test_a_run_that_is_older_than_the_stage(self):
        wb.staged(tf.constant(1))  # The native library is loaded before the session is made.
        iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(10))
        batch = iterator.get_next()
        with v1.Session() as session:
            start = session.make_callable(iterator.initializer)
            start()
            back = wb.staged(batch, AHEAD)
            with wb.prefetching(session):
                for taken in (4, 10, 3):
                    start()
                    assert [session.run(back) for _ in range(taken)] == list(range(taken))

    def test_an_iterator_that_is_found_by_its_string_handle(self):
        epoch = Epoch()
        handle = v1.placeholder(tf.string, [])
        found = v1.data.Iterator.from_string_handle(handle, tf.int64, [])
        start = found.make_initializer(epoch.data)
        with v1.Session() as session, wb.prefetching(session):
            session.run(epoch.iterator.initializer)
            text = session.run(epoch.iterator.string_handle())
            for taken in (4, 10, 3):
                session.run(start, {handle: text})
                assert [session.run(epoch.back) for _ in range(taken)] == list(range(taken))

    @pytest.mark.parametrize("two", [False, True])
    def test_another_session_of_the_same_server(self, two):
        server = v1.train.Server.create_local_server()
        epoch = Epoch(shared_name="clicks")
        back = wb.staged(epoch.back * 1, AHEAD) if two else epoch.back
        with tf.Graph().as_default() as graph:
            same = v1.data.make_initializable_iterator(tf.data.Dataset.range(10), "clicks")
            other = v1.data.make_initializable_iterator(tf.data.Dataset.range(10), "others")
        elsewhere = v1.Session(server.target, graph=graph)
        with v1.Session(server.target) as session, wb.prefetching(session):
            session.run(epoch.iterator.initializer)
            for taken in (4, 10, 3):
                elsewhere.run(same.initializer)
                seen = []
                for _ in range(taken):
                    seen.append(session.run(back))
                    elsewhere.run(other.initializer)
                assert seen == list(range(taken))
        # The stage is no more; its input is.
        elsewhere.run(same.initializer)
        elsewhere.close()

    def test_what_another_session_initializes_first(self):
        server = v1.train.Server.create_local_server()
        epoch = Epoch(shared_name="clicks")
        with tf.Graph().as_default() as graph:
            same = v1.data.make_initializable_iterator(tf.data.Dataset.range(10), "clicks")
        elsewhere = v1.Session(server.target, graph=graph)
        with v1.Session(server.target) as session, wb.prefetching(session):
            elsewhere.run(same.initializer)
            assert take_all(session, epoch.back) == list(range(10))
        elsewhere.close()

    def test_producers_that_read_on_when_another_session_initializes_are_an_error(self):
        server = v1.train.Server.create_local_server()
        queue = tf.queue.FIFOQueue(4, [tf.int64], [[]])
        fill = queue.enqueue([7])
        iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(10), "clicks")
        with tf.control_dependencies([queue.dequeue()]):
            batch = iterator.get_next()
        back = wb.staged(batch, StageOptions(timeout_millis=300), name="clicks")
        with tf.Graph().as_default() as graph:
            same = v1.data.make_initializable_iterator(tf.data.Dataset.range(10), "clicks")
        elsewhere = v1.Session(server.target, graph=graph)
        with v1.Session(server.target) as session, wb.prefetching(session):
            session.run(iterator.initializer)
            elsewhere.run(same.initializer)
            with pytest.raises(
                tf.errors.FailedPreconditionError,
                match="'clicks' finds nothing: its input was to be initialized again.*"
                "run the initializer again",
            ):
                session.run(back)
            session.run(fill)
            elsewhere.run(same.initializer)
            session.run(fill)
            assert session.run(back) == 0
            session.run(queue.close())  # The producer waits for the queue.
        elsewhere.close()

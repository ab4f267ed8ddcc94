"""staged(): nests, ends, errors and life cycle, in real sessions."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

import workbench as wb
from tests.builders.epochs import take_all
from tests.builders.stage_plans import numbers
from workbench.core.session.runner_registry import runners
from workbench.core.session.running.stage_run import StageRun, live_runs
from workbench.errors import OptionError, UnsupportedError

v1 = tf.compat.v1


def monitored(*hooks, **kwargs):
    return v1.train.MonitoredTrainingSession(hooks=[wb.make_prefetch_hook(), *hooks], **kwargs)


def producers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("prefetch")]


def comes_true(condition: Callable[[], Any]) -> bool:
    """Whether it holds within ten seconds."""
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(condition())


def no_producer_is_left() -> bool:
    return comes_true(lambda: not producers())


class TestNests:
    def test_every_kind_of_leaf_comes_back_in_its_place(self):
        sparse = tf.sparse.from_dense(tf.constant([[0, 5], [7, 0]]))
        ragged = tf.ragged.constant([["a"], ["b", "c"]])
        nest = {
            "dense": tf.constant([[1.5, 2.5]]),
            "inner": [sparse, None, (tf.constant("text"), ragged)],
        }
        back = wb.staged(nest)
        assert back["inner"][1] is None
        assert isinstance(back["inner"][2], tuple)
        fetches = [
            back["dense"],
            tf.sparse.to_dense(back["inner"][0]),
            back["inner"][2][0],
            back["inner"][2][1].to_tensor(),
        ]
        with monitored() as session:
            got = session.run(fetches)
        np.testing.assert_array_equal(got[0], [[1.5, 2.5]])
        np.testing.assert_array_equal(got[1], [[0, 5], [7, 0]])
        assert got[2] == b"text"
        np.testing.assert_array_equal(got[3], [[b"a", b""], [b"b", b"c"]])

    def test_an_item_keeps_the_value_that_a_variable_had(self):
        variable = v1.get_variable("counter", initializer=[0.0], use_resource=False)
        back = wb.staged(variable, wb.StageOptions(capacity=1))
        with tf.control_dependencies([back]):
            change = v1.assign_add(variable, [1.0])
        with monitored() as session:
            first = [session.run([back, change])[0][0] for _ in range(4)]
        # What a step takes was made before it, so it cannot know of the step's own change.
        assert all(value <= step for step, value in enumerate(first))

    def test_static_shapes_and_dtypes_survive(self):
        source = v1.placeholder_with_default(np.zeros((2, 3), np.float16), [None, 3])
        back = wb.staged([source, tf.constant(1, tf.int64)])
        assert back[0].shape.as_list() == [None, 3]
        assert back[0].dtype == tf.float16
        assert back[1].shape.as_list() == []

    def test_static_shapes_survive_an_imported_graph(self, graph):
        wb.staged(tf.zeros([2, 3]), name="clicks")
        with tf.Graph().as_default() as copy:
            tf.import_graph_def(graph.as_graph_def(), name="")
            assert copy.get_tensor_by_name("clicks/take:0").shape.as_list() == [2, 3]

    def test_a_list_can_be_assigned_to(self):
        back = wb.staged([tf.constant(1), tf.constant(2)])
        back[0] = back[0] + 1
        with monitored() as session:
            assert session.run(back) == [2, 2]

    def test_one_tensor_stays_one_tensor(self):
        back = wb.staged(tf.constant([3]))
        with monitored() as session:
            np.testing.assert_array_equal(session.run(back), [3])

    def test_an_empty_nest_is_refused(self):
        with pytest.raises(OptionError, match=r"given no tensor at all: \{\}"):
            wb.staged({})

    def test_what_is_no_tensor_is_refused_by_name(self):
        with pytest.raises(OptionError, match="cannot carry .* of type object"):
            wb.staged([tf.constant(1), object()])

    def test_no_gradient_flows_through_a_stage(self):
        x = v1.get_variable("x", initializer=2.0)
        assert tf.gradients(wb.staged(x * 3.0), x) == [None]


class TestEnds:
    @pytest.mark.parametrize("threads", [1, 3])
    def test_the_end_comes_after_every_produced_item(self, threads):
        back = wb.staged(numbers(50), wb.StageOptions(num_threads=threads, capacity=4))
        with monitored() as session:
            taken = take_all(session, back)
        assert sorted(taken) == list(range(50))
        if threads == 1:
            assert taken == sorted(taken)
        assert no_producer_is_left()

    @pytest.mark.parametrize("kind", [tf.errors.InvalidArgumentError, tf.errors.INVALID_ARGUMENT])
    def test_closed_types_may_be_classes_or_codes(self, kind):
        source = tf.debugging.check_numerics(1.0 / tf.cast(3 - numbers(), tf.float32), "pole")
        back = wb.staged(source, wb.StageOptions(closed_exception_types=(kind,)))
        with monitored() as session:
            assert len(take_all(session, back)) == 3

    def test_ignored_batches_are_skipped_and_counted(self):
        number = numbers(10)
        with tf.control_dependencies(
            [v1.assert_none_equal(number % 3, tf.constant(0, tf.int64), message="third")]
        ):
            source = tf.identity(number)
        back = wb.staged(
            source, wb.StageOptions(ignored_exception_types=(tf.errors.InvalidArgumentError,))
        )
        with monitored() as session:
            run = live_runs(session._tf_sess())[0]
            assert take_all(session, back) == [1, 2, 4, 5, 7, 8]
        assert run.ignored == 4

    def test_an_unknown_exception_type_is_refused_where_it_is_written(self):
        with pytest.raises(OptionError, match="KeyError.* is not an exception type of a stage"):
            wb.staged(tf.constant(1), wb.StageOptions(ignored_exception_types=(KeyError,)))


class TestErrors:
    def test_a_producers_error_reaches_the_loop_with_its_message(self):
        number = numbers()
        broken = tf.debugging.check_numerics(1.0 / tf.cast(2 - number, tf.float32), "my own pole")
        back = wb.staged([number, broken], name="reader")
        taken = []
        with (
            pytest.raises(tf.errors.InvalidArgumentError, match="my own pole"),
            monitored() as session,
        ):
            while not session.should_stop():
                taken.append(session.run(back)[0])
        assert taken in ([0], [0, 1])
        assert no_producer_is_left()

    def test_a_plain_session_sees_the_error_too_after_what_was_produced(self):
        number = numbers()
        broken = tf.debugging.check_numerics(1.0 / tf.cast(2 - number, tf.float32), "my own pole")
        back = wb.staged([number, broken])
        with v1.Session() as session, wb.prefetching(session):
            assert [session.run(back)[0] for _ in range(2)] == [0, 1]
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"stage 'prefetch'.*own pole"):
                session.run(back)

    def test_a_missing_hook_is_said_within_ten_seconds(self, graph):
        back = wb.staged(tf.constant(1), name="clicks")
        (take,) = (op for op in graph.get_operations() if op.type == "WorkbenchBufferTake")
        assert take.get_attr("start_timeout_millis") < 10_000
        take._set_attr("start_timeout_millis", attr_value_pb2.AttrValue(i=200))
        with (
            pytest.raises(tf.errors.FailedPreconditionError, match=r"clicks.*make_prefetch_hook"),
            v1.train.MonitoredTrainingSession() as session,
        ):
            session.run(back)

    def test_a_put_that_times_out_loses_no_batch(self, caplog):
        back = wb.staged(numbers(6), wb.StageOptions(timeout_millis=20, num_threads=2))

        def warned() -> list[str]:
            return [r.getMessage() for r in caplog.records if "stays in line" in r.getMessage()]

        with monitored() as session:
            taken = [session.run(back)]
            # Each of two producers timed out, and at least one of them again while its batch waits.
            assert comes_true(lambda: len(warned()) > 2)
            taken += take_all(session, back)
        assert sorted(taken) == list(range(6))
        assert "prefetch" in warned()[0]
        assert "20 ms" in warned()[0]

    def test_an_operation_timeout_of_the_session_spares_waiting_puts(self):
        config = v1.ConfigProto(operation_timeout_in_ms=500)
        back = wb.staged(numbers(4))
        with monitored(config=config) as session:
            taken = [session.run(back)]
            time.sleep(0.8)  # The second put waits for longer than the session lets an op wait.
            taken += take_all(session, back)
        assert taken == [0, 1, 2, 3]

    def test_cancelled_upstream_is_an_error_not_a_hang(self):
        queue = tf.queue.FIFOQueue(4, [tf.int32], [[]], name="upstream")
        fill = queue.enqueue([1])
        back = wb.staged(queue.dequeue())
        cancel = queue.close(cancel_pending_enqueues=True)
        with v1.Session() as session:
            session.run(fill)
            with wb.prefetching(session):
                assert session.run(back) == 1
                session.run(cancel)
                with pytest.raises(tf.errors.OutOfRangeError):
                    session.run(back)


class TestLifeCycle:
    def test_capacity_bounds_what_is_produced_ahead(self):
        produced = []
        source = v1.py_func(lambda: np.int64(produced.append(0) or len(produced)), [], tf.int64)
        back = wb.staged(source, wb.StageOptions(capacity=3, num_threads=2))
        with monitored() as session:
            assert session.run(back) >= 1
            run = live_runs(session._tf_sess())[0]
            assert comes_true(lambda: len(produced) >= 6)
            time.sleep(0.1)  # Time for the producers to make more than they may.
            # One was consumed, three are held, each of two threads holds one that waits.
            assert len(produced) == 6
            assert run.runner.options.capacity == 3

    def test_sessions_may_be_closed_and_made_again(self):
        back = wb.staged(numbers(), wb.StageOptions(num_threads=2, capacity=2))
        for _ in range(5):
            with monitored() as session:
                assert 0 <= session.run(back) < 6
            assert no_producer_is_left()

    def test_closing_a_plain_session_ends_its_producers(self):
        back = wb.staged(numbers())
        session = v1.Session()
        for runner in runners(v1.get_default_graph()):
            StageRun(runner, session)
        session.run(back)
        session.close()
        assert no_producer_is_left()

    def test_items_of_a_dead_session_never_reach_the_next(self, graph):
        server = v1.train.Server.create_local_server()
        session_number = v1.placeholder_with_default(0, [], name="session_number")
        variable = v1.get_local_variable("who", initializer=0, use_resource=True)
        mark = variable.assign(session_number)
        back = wb.staged(variable + 0, wb.StageOptions(capacity=4))
        init = v1.local_variables_initializer()
        runner = runners(graph)[0]
        for number in (1, 2, 3):
            session = v1.Session(server.target)
            session.run(init)
            session.run(mark, {session_number: number})
            run = StageRun(runner, session)
            assert {int(session.run(back)) for _ in range(6)} == {number}
            if number == 2:
                run.stop()
            session.close()
            run.stop()

    def test_preemption_of_a_monitored_session_is_survived(self):
        server = v1.train.Server.create_local_server()
        number = numbers()
        back = wb.staged(number, wb.StageOptions(capacity=2, timeout_millis=1000))
        failures = [2, 5]

        class Preempt(v1.train.SessionRunHook):
            count = 0

            def after_run(self, run_context, run_values):
                self.count += 1
                if failures and self.count == failures[0]:
                    failures.pop(0)
                    raise tf.errors.AbortedError(None, None, "the machine was taken away")

        taken = []
        with monitored(Preempt(), master=server.target) as session:
            for _ in range(8):
                taken.append(int(session.run(back)))
        assert len(taken) == 8
        assert not failures
        assert no_producer_is_left()

    def test_two_graphs_on_one_server_keep_apart(self):
        server = v1.train.Server.create_local_server()
        sessions = []
        for value in (1, 2):
            with tf.Graph().as_default() as graph:
                back = wb.staged(tf.constant(value))
                session = v1.Session(server.target, graph=graph)
                run = StageRun(runners(graph)[0], session)
                sessions.append((session, back, run))
        for _ in range(3):
            assert [int(s.run(b)) for s, b, _ in sessions] == [1, 2]
        for session, _, run in sessions:
            run.stop()
            session.close()

    def test_a_graph_without_a_stage_may_keep_the_hook(self):
        x = tf.constant(1)
        with monitored() as session:
            assert session.run(x) == 1

    def test_a_finalized_graph_is_enough(self, graph):
        back = wb.staged(numbers(2))
        graph.finalize()
        with v1.Session() as session, wb.prefetching(session):
            assert take_all(session, back) == [0, 1]

    @pytest.mark.parametrize("twice", ["two hooks", "one hook twice", "hook and prefetching"])
    def test_a_second_hook_loses_no_batch_and_is_named(self, twice, caplog):
        back = wb.staged(numbers(200), wb.StageOptions(capacity=3), name="clicks")
        hook = wb.make_prefetch_hook()
        hooks = {"two hooks": [wb.make_prefetch_hook()], "one hook twice": [hook]}.get(twice, [])
        with v1.train.MonitoredTrainingSession(hooks=[hook, *hooks]) as session:
            with contextlib.ExitStack() as stack:
                if twice == "hook and prefetching":
                    assert stack.enter_context(wb.prefetching(session._tf_sess())) == ()
                first = [session.run(back) for _ in range(5)]
            assert [*first, *take_all(session, back)] == list(range(200))
        assert "stage 'clicks' runs in this session already" in caplog.text
        assert no_producer_is_left()

    def test_a_stage_that_was_stopped_can_be_started_again(self, caplog):
        back = wb.staged(numbers(), name="clicks")
        with v1.Session() as session:
            for _ in range(2):
                with wb.prefetching(session) as runs:
                    assert len(runs) == 1
                    session.run(back)
        assert "already" not in caplog.text

    def test_producers_run_at_the_same_time(self):
        met: list[bool] = []
        meet = threading.Barrier(3, action=lambda: met.append(True), timeout=120)

        def number() -> np.int64:
            with contextlib.suppress(threading.BrokenBarrierError):
                meet.wait()
            return np.int64(7)

        back = wb.staged(v1.py_func(number, [], tf.int64), wb.StageOptions(num_threads=3))
        # Threads of its own: others may have made the process's, as many as there are cores.
        config = v1.ConfigProto(inter_op_parallelism_threads=4, use_per_session_threads=True)
        with v1.Session(config=config) as session, wb.prefetching(session):
            try:
                assert session.run(back) == 7
                assert met
            finally:
                meet.abort()

    def test_many_clients_get_each_item_once(self):
        back = wb.staged(numbers(200), wb.StageOptions(num_threads=3, num_clients=4, capacity=2))
        taken: collections.deque[int] = collections.deque()
        with v1.Session() as session, wb.prefetching(session):

            def client():
                try:
                    while True:
                        taken.append(int(session.run(back)))
                except tf.errors.OutOfRangeError:
                    return

            clients = [threading.Thread(target=client) for _ in range(4)]
            for thread in clients:
                thread.start()
            for thread in clients:
                thread.join(60)
        assert sorted(taken) == list(range(200))


class TestJoin:
    def test_each_thread_has_its_own_features(self):
        parts = [
            {"n": v1.data.make_one_shot_iterator(tf.data.Dataset.range(a, a + 5)).get_next()}
            for a in (0, 100, 200)
        ]
        back = wb.prefetch_join(parts)
        with monitored() as session:
            taken = [int(item["n"]) for item in take_all(session, back)]
        assert sorted(taken) == [*range(5), *range(100, 105), *range(200, 205)]

    def test_shapes_that_differ_become_unknown(self):
        back = wb.prefetch_join([tf.zeros([2, 3]), tf.zeros([4, 3])])
        assert back.shape.as_list() == [None, 3]

    def test_no_features_are_refused(self):
        with pytest.raises(OptionError, match="given no features"):
            wb.prefetch_join([])

    def test_other_dtypes_are_refused(self):
        with pytest.raises(OptionError, match=r"thread 1 has dtypes \['int32'\]"):
            wb.prefetch_join([tf.constant(1.0), tf.constant(1)])

    def test_another_structure_is_refused(self):
        with pytest.raises(OptionError, match="thread 1 have another structure"):
            wb.prefetch_join([{"a": tf.constant(1)}, {"b": tf.constant(1)}])


class TestWhere:
    def test_eager_execution_is_refused(self):
        with (
            tf.__internal__.eager_context.eager_mode(),
            pytest.raises(UnsupportedError, match="executing eagerly"),
        ):
            wb.staged(tf.constant(1))

    def test_a_function_is_refused(self):
        @tf.function(autograph=False)
        def step():
            return wb.staged(tf.constant(1))

        with pytest.raises(UnsupportedError, match="inside the function"):
            step()

    def test_control_flow_is_refused(self):
        with v1.Graph().as_default() as graph:
            context = v1.get_default_graph
            assert context() is graph
            v1.disable_control_flow_v2()
            try:
                with pytest.raises(UnsupportedError, match=r"tf\.cond or tf\.while_loop"):
                    v1.cond(tf.constant(True), lambda: wb.staged(tf.constant(1)), lambda: 2)
            finally:
                v1.enable_control_flow_v2()

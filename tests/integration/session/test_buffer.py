"""The buffer's ops in real sessions: values, waiting, cancelling, owners, ends, events."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.core.staging import buffer

v1 = tf.compat.v1

OWNER, LATER = [11, 0], [22, 0]


class Stage:
    """One buffer of scalars in the default graph, with all of its ops."""

    def __init__(self, capacity: int = 1, timeout_millis: int = 60_000, name: str = "clicks"):
        at = buffer.Buffer(capacity=capacity, shared_name=f"key/{name}", stage=name)
        self.owner = v1.placeholder(tf.int64, [2])
        self.value = v1.placeholder(tf.int32, [])
        self.code = v1.placeholder(tf.int32, [])
        self.message = v1.placeholder(tf.string, [])
        self.enable = v1.placeholder(tf.bool, [])
        self.put_op = at.put(self.owner, [self.value], timeout_millis=timeout_millis)
        self.flush_op = at.flush(self.owner, timeout_millis=timeout_millis)
        self.taken = at.take([tf.int32], start_timeout_millis=200)[0]
        self.resume_op = at.resume(self.owner)
        self.cancel_op = at.cancel(self.owner, self.code, self.message)
        self.close_op = at.close(self.owner)
        self.size_op = at.size()
        self.drain_op = at.drain(self.enable)

    def put(self, session, value, owner=OWNER, options=None):
        session.run(self.put_op, {self.owner: owner, self.value: value}, options=options)

    def flush(self, session, owner=OWNER):
        session.run(self.flush_op, {self.owner: owner})

    def take(self, session, options=None):
        return session.run(self.taken, options=options)

    def resume(self, session, owner=OWNER):
        session.run(self.resume_op, {self.owner: owner})

    def cancel(self, session, code, message, owner=OWNER):
        session.run(self.cancel_op, {self.owner: owner, self.code: code, self.message: message})

    def close(self, session, owner=OWNER):
        session.run(self.close_op, {self.owner: owner})

    def size(self, session):
        return session.run(self.size_op)

    def drain(self, session, enable):
        return session.run(self.drain_op, {self.enable: enable})


@pytest.fixture(autouse=True)
def on_the_cpu(graph: tf.Graph) -> Iterator[None]:
    """A buffer's ops must be on one device, on a machine with a GPU too."""
    with tf.device("/CPU:0"):
        yield


@pytest.fixture
def clients() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    """Threads that call session.run while the test goes on."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        yield pool


@contextlib.contextmanager
def one_inter_op_thread() -> Iterator[Any]:
    config = v1.ConfigProto(inter_op_parallelism_threads=1, use_per_session_threads=True)
    with v1.Session(config=config) as session:
        yield session


def told(event: threading.Event, value: tf.Tensor) -> tf.Tensor:
    """`value`, and the event is set when the step gets there."""

    def tell(passed: np.ndarray) -> np.ndarray:
        event.set()
        return passed

    return tf.ensure_shape(v1.py_func(tell, [value], value.dtype), value.shape)


VALUES = [
    np.float32([[1.5, -2.0], [np.inf, 0.0]]),
    np.float64(3.25),
    np.float16([0.5]),
    tf.bfloat16.as_numpy_dtype(1.5) * np.ones(3, tf.bfloat16.as_numpy_dtype),
    np.int8([-1]),
    np.uint8([255]),
    np.int16([-300]),
    np.uint16([60000]),
    np.int32(7),
    np.int64([2**60]),
    np.uint64([2**63]),
    np.bool_([True, False]),
    np.complex64([1 + 2j]),
    np.array([b"", b"a\x00b", b"x" * 1000], dtype=object),
    np.zeros((0, 3), np.float32),
]


def test_values_come_back_as_they_were():
    tensors = [tf.constant(value) for value in VALUES]
    owner = tf.constant(OWNER, tf.int64)
    at = buffer.Buffer(capacity=1, shared_name="values")
    put = at.put(owner, tensors)
    taken = at.take([tensor.dtype for tensor in tensors])
    resume = at.resume(owner)
    with v1.Session() as session:
        session.run(resume)
        for _ in range(3):
            session.run(put)
            for value, back in zip(VALUES, session.run(taken), strict=True):
                np.testing.assert_array_equal(back, value)


_PLACES = st.lists(st.integers(0, len(VALUES) - 1), max_size=5)


@settings(max_examples=40, deadline=None)
@given(first=_PLACES, host=_PLACES, items=st.integers(1, 3))
def test_host_tensors_come_back_after_the_others(first, host, items):
    with tf.Graph().as_default(), tf.device("/CPU:0"), v1.Session() as session:
        owner = tf.constant(OWNER, tf.int64)
        at = buffer.Buffer(capacity=items, shared_name="both lists")
        order = [*first, *host]
        fed = [v1.placeholder(VALUES[place].dtype, VALUES[place].shape) for place in order]
        tensors, host_tensors = fed[: len(first)], fed[len(first) :]
        put = at.put(owner, tensors, host_tensors)
        taken = at.take(
            [tensor.dtype for tensor in tensors],
            [tensor.dtype for tensor in host_tensors],
            shapes=[tensor.shape for tensor in tensors],
            host_shapes=[tensor.shape for tensor in host_tensors],
            name="take",
        )
        assert [tensor.shape for tensor in taken] == [tensor.shape for tensor in fed]
        session.run(at.resume(owner))
        for _ in range(items):
            session.run(put, dict(zip(fed, (VALUES[place] for place in order), strict=True)))
        for _ in range(items):
            _, back = session.run(["take", taken])
            for place, value in zip(order, back, strict=True):
                np.testing.assert_array_equal(value, VALUES[place])
                assert value.dtype == VALUES[place].dtype
        assert session.run(at.size()) == 0


def test_shapes_of_each_list_are_known_or_not():
    at = buffer.Buffer(capacity=1, shared_name="shapes")
    dtypes, host_dtypes = [tf.float32, tf.int64], [tf.string]
    matrix, vector = tf.TensorShape([None, 3]), tf.TensorShape([7])

    def shapes_taken(**shapes):
        return [tensor.shape.rank for tensor in at.take(dtypes, host_dtypes, **shapes)]

    assert shapes_taken() == [None, None, None]
    assert shapes_taken(shapes=[matrix, vector]) == [2, 1, None]
    assert shapes_taken(host_shapes=[matrix]) == [None, None, 2]
    with pytest.raises(ValueError, match="^shapes has 1 entries.* for each of 2 tensors"):
        shapes_taken(shapes=[matrix])
    with pytest.raises(ValueError, match="host_shapes has 2 entries.* for each of 1 tensors"):
        shapes_taken(shapes=[matrix, vector], host_shapes=[matrix, vector])


def test_a_graph_from_before_host_tensors_runs():
    old = """
      node { name: "owner" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } } }
      node { name: "value" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
      node { name: "resume" op: "WorkbenchBufferResume" input: "owner"
             attr { key: "shared_name" value { s: "old" } } }
      node { name: "put" op: "WorkbenchBufferPut" input: "owner" input: "value"
             attr { key: "shared_name" value { s: "old" } }
             attr { key: "dtypes" value { list { type: DT_INT32 } } } }
      node { name: "take" op: "WorkbenchBufferTake"
             attr { key: "shared_name" value { s: "old" } }
             attr { key: "dtypes" value { list { type: DT_INT32 } } }
             attr { key: "shapes" value { list { shape {} } } } }
    """
    v1.import_graph_def(text_format.Parse(old, v1.GraphDef()), name="")
    with v1.Session() as session:
        session.run("resume", {"owner:0": OWNER})
        session.run("put", {"owner:0": OWNER, "value:0": 4})
        assert session.run("take:0") == 4
        assert session.graph.get_tensor_by_name("take:0").shape == []


def test_an_item_of_nothing_is_an_item():
    at = buffer.Buffer(capacity=1, shared_name="nothing")
    owner = tf.constant(OWNER, tf.int64)
    put = at.put(owner, [])
    assert at.take([], name="take_nothing") == []
    resume, size = at.resume(owner), at.size()
    with v1.Session() as session:
        session.run([resume])
        session.run(put)
        assert session.run(size) == 1
        session.run("take_nothing")
        assert session.run(size) == 0


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


def test_a_new_owner_gets_nothing_of_the_earlier_one(clients):
    stage = Stage(timeout_millis=20)
    with v1.Session() as session:
        stage.resume(session)
        stage.put(session, 1)
        with pytest.raises(tf.errors.DeadlineExceededError):
            stage.put(session, 2)
        stage.resume(session, LATER)
        assert stage.size(session) == 0
        with pytest.raises(tf.errors.CancelledError) as caught:
            stage.put(session, 3)
        assert buffer.is_superseded(caught.value)
        stage.cancel(session, tf.errors.INTERNAL, "late")
        stage.close(session)
        stage.put(session, 4, LATER)
        assert stage.take(session) == 4


def test_close_is_the_end_of_an_epoch_and_resume_the_next():
    stage = Stage(capacity=2)
    with v1.Session() as session:
        for _ in range(2):
            stage.resume(session)
            stage.put(session, 1)
            stage.put(session, 2)
            stage.close(session)
            with pytest.raises(tf.errors.CancelledError) as caught:
                stage.put(session, 3)
            assert "is closed" in caught.value.message
            assert not buffer.is_superseded(caught.value)
            assert [stage.take(session), stage.take(session)] == [1, 2]
            with pytest.raises(tf.errors.OutOfRangeError, match="'clicks' has ended"):
                stage.take(session)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (tf.errors.DATA_LOSS, tf.errors.DataLossError),
        (tf.errors.INTERNAL, tf.errors.InternalError),
        (tf.errors.CANCELLED, tf.errors.CancelledError),
        (0, tf.errors.CancelledError),
    ],
)
def test_cancel_hands_its_error_to_the_consumer(code, kind):
    stage = Stage()
    with v1.Session() as session:
        stage.resume(session)
        stage.put(session, 1)
        stage.cancel(session, code, "shard 3 is damaged")
        assert stage.take(session) == 1
        with pytest.raises(kind, match="shard 3 is damaged"):
            stage.take(session)
        with pytest.raises(tf.errors.CancelledError, match="shard 3 is damaged"):
            stage.put(session, 2)


def test_events_are_recorded_on_demand_only():
    stage = Stage(capacity=2)
    with v1.Session() as session:
        stage.resume(session)
        stage.put(session, 1)
        assert stage.drain(session, True).shape == (0, 6)
        before = time.time_ns()
        stage.put(session, 2, [OWNER[0], 5])
        stage.take(session)
        after = time.time_ns()
        events = stage.drain(session, False)
        stage.take(session)
        assert stage.drain(session, False).shape == (0, 6)
    kind, item, who, start, end, size = events.T
    assert len(buffer.EVENT_COLUMNS) == events.shape[1]
    assert kind.tolist() == [buffer.EVENT_PUT, buffer.EVENT_TAKE]
    assert item.tolist() == [1, 0]
    assert who[0] == 5
    assert size.tolist() == [2, 1]
    assert (before <= start).all()
    assert (start <= end).all()
    assert (end <= after).all()


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


def test_mismatches_name_both_sides():
    stage = Stage()
    larger = buffer.Buffer(capacity=9, shared_name="key/clicks").size()
    other = buffer.Buffer(capacity=1, shared_name="key/clicks").take(
        [tf.int32, tf.string], name="other_take"
    )
    with v1.Session() as session:
        stage.resume(session)
        stage.put(session, 1)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(larger)
        assert "capacity 1" in caught.value.message
        assert "capacity 9" in caught.value.message
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(other)
        for part in ("1 tensors int32", "'other_take' has 2 tensors int32, string"):
            assert part in caught.value.message
        assert stage.take(session) == 1


def test_put_and_take_agree_on_which_tensors_are_the_hosts():
    at = buffer.Buffer(capacity=1, shared_name="lists", stage="clicks")
    owner = tf.constant(OWNER, tf.int64)
    number, text = tf.constant(1.0), tf.constant("a")
    put = at.put(owner, [number], [text], name="put")
    both_first = at.take([tf.float32, tf.string], name="both_first")
    both_host = at.take([], [tf.float32, tf.string], name="both_host")
    swapped = at.take([tf.string], [tf.float32], name="swapped")
    taken = at.take([tf.float32], [tf.string])
    with v1.Session() as session:
        session.run(at.resume(owner))
        session.run(put)
        for wrong, found in [
            (both_first, "'both_first' has 2 tensors float, string;"),
            (both_host, "'both_host' has 0 tensors and 2 host tensors float, string;"),
            (swapped, "'swapped' has 1 tensors string and 1 host tensors float;"),
        ]:
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(wrong)
            for part in ("have 1 tensors float and 1 host tensors string, as 'put' said", found):
                assert part in caught.value.message
        assert session.run(taken) == [1.0, b"a"]


def test_bad_arguments_are_refused():
    owner = tf.constant(OWNER, tf.int64)
    with pytest.raises(ValueError, match="capacity"):
        buffer.Buffer(capacity=0, shared_name="x").size()
    with pytest.raises(ValueError, match="timeout_millis"):
        buffer.Buffer(capacity=1, shared_name="x").put(owner, [], timeout_millis=0)
    with pytest.raises(ValueError, match="must be 2"):
        buffer.Buffer(capacity=1, shared_name="x").resume(tf.constant([1, 2, 3], tf.int64))
    nameless = buffer.Buffer(capacity=1, shared_name="").size()
    any_owner = v1.placeholder(tf.int64)
    resume = buffer.Buffer(capacity=1, shared_name="x").resume(any_owner)
    stage = Stage()
    with v1.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="empty shared_name"):
            session.run(nameless)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \[3\]; expected \[2\]"):
            session.run(resume, {any_owner: [1, 2, 3]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="code is 99"):
            stage.cancel(session, 99, "")


def test_no_gradient_flows_through_a_buffer():
    weight = tf.constant(2.0)
    at = buffer.Buffer(capacity=1, shared_name="gradient")
    put = at.put(tf.constant(OWNER, tf.int64), [weight * 3.0])
    with tf.control_dependencies([put]):
        (taken,) = at.take([tf.float32])
    assert v1.gradients(taken * 2.0, [weight]) == [None]


def test_a_prepared_put_feeds():
    stage = Stage(capacity=2)
    with v1.Session() as session:
        stage.resume(session)
        put = buffer.prepared(
            session,
            feeds=[stage.owner.name, stage.value.name],
            targets=[stage.put_op.name],
            options=v1.RunOptions(),
        )
        put(OWNER, np.int32(1))
        put(OWNER, np.int32(2))
        assert [stage.take(session), stage.take(session)] == [1, 2]


def test_a_server_keeps_the_buffer_between_sessions_but_not_its_items(clients):
    server = v1.train.Server.create_local_server()
    taking = threading.Event()
    stage = Stage()
    with tf.control_dependencies([told(taking, tf.constant(0))]):
        waiting = buffer.Buffer(capacity=1, shared_name="key/clicks").take([tf.int32])[0]
    with v1.Session(server.target) as session:
        stage.resume(session)
        stage.put(session, 1)
    session = v1.Session(server.target)
    stage.resume(session, LATER)
    stage.put(session, 2, LATER)
    assert stage.take(session) == 2
    taken = clients.submit(session.run, waiting)
    assert taking.wait(30)
    v1.Session.reset(server.target)
    with pytest.raises((tf.errors.CancelledError, tf.errors.AbortedError)):
        taken.result(30)
    with pytest.raises(tf.errors.AbortedError):  # The reset has ended the session, too.
        session.close()

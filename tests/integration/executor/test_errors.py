"""Errors and cancellations under every policy: as stock tells them, and none is the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.executors import (
    COUNTED,
    STEPS,
    bits,
    config_of,
    control_flow,
    each_policy,
    each_version,
    plain,
)

v1 = tf.compat.v1
ALL = ("stock", "normal", "inline", "cost_model")


def told(session: v1.Session, fetches: Any, feeds: dict | None = None, **more: Any) -> Any:
    """What a run gives, or the error as a user sees it."""
    try:
        return bits(session.run(fetches, feeds, **more))
    except tf.errors.OpError as error:
        node = None if error.node_def is None else error.node_def.name
        return type(error), node, error.op and error.op.name, COUNTED.sub("#", error.message)


def same_told(
    policy: str,
    fetches: Any,
    good: Callable[[int], dict],
    bad: Callable[[int], dict],
    *,
    before: Any = (),
    config: v1.ConfigProto | None = None,
) -> tuple:
    """Good and bad runs by turns, nine each; returns the first error, which both told."""
    found = {}
    for each in ("stock", policy):
        with v1.Session(config=config_of(each, config or plain())) as session:
            session.run(before)
            found[each] = [
                told(session, fetches, (bad if i % 2 else good)(i)) for i in range(2 * STEPS)
            ]
    assert found[policy] == found["stock"]
    assert all(isinstance(made, list) for made in found["stock"][::2])
    errors = found["stock"][1::2]
    assert all(isinstance(made, tuple) for made in errors)
    return errors[0]


@each_policy
def test_an_assertion(policy):
    x = v1.placeholder(tf.float32, [3])
    with tf.control_dependencies([tf.debugging.assert_positive(x, message="all above 0")]):
        total = tf.reduce_sum(tf.identity(x, name="guarded"), name="total")
    kind, _, _, message = same_told(
        policy, total, lambda i: {x: [1, 2, i + 1]}, lambda i: {x: [1, 2, -i]}
    )
    assert kind is tf.errors.InvalidArgumentError
    assert "all above 0" in message


@each_policy
@pytest.mark.parametrize("where", ["first", "last", "middle"])
def test_a_kernel_that_refuses_its_input(policy, where):
    table = tf.reshape(tf.range(12, dtype=tf.float32), [4, 3])
    index = v1.placeholder(tf.int32, [None], name="index")
    taken = tf.gather(table, index, name="refusing")
    made = {"first": taken, "last": taken, "middle": tf.sin(taken) + 1.0}[where]
    fetches = [made, tf.cos(table)] if where == "first" else [made]
    kind, _, name, message = same_told(
        policy, fetches, lambda i: {index: [i % 4]}, lambda i: {index: [1, i + 4]}
    )
    assert kind is tf.errors.InvalidArgumentError
    assert name == "refusing"
    assert "is not in [0, 4)" in message


@each_policy
def test_shapes_that_do_not_match(policy):
    a, b = v1.placeholder(tf.float32, [None, None]), v1.placeholder(tf.float32, [None, None])
    product = tf.matmul(a, b, name="product") + 1.0
    good = lambda i: {a: np.ones((2, 3)), b: np.ones((3, i + 1))}  # noqa: E731
    bad = lambda i: {a: np.ones((2, 3)), b: np.ones((i + 4, 2))}  # noqa: E731
    kind, _, name, _ = same_told(policy, product, good, bad)
    assert (kind, name) == (tf.errors.InvalidArgumentError, "product")


@each_policy
@pytest.mark.parametrize("resource", [False, True])
def test_a_variable_without_a_value(policy, resource):
    w = v1.get_variable("w", [2], initializer=v1.ones_initializer(), use_resource=resource)
    made = tf.identity(w, name="read_it") * 2.0
    found = {}
    for each in ("stock", policy):
        with v1.Session(config=config_of(each, plain())) as session:
            found[each] = [told(session, made) for _ in range(STEPS)]
            session.run(w.initializer)
            found[each] += [told(session, made) for _ in range(STEPS)]
    assert found[policy] == found["stock"]
    assert found["stock"][0][0] is tf.errors.FailedPreconditionError
    assert isinstance(found["stock"][-1], list)


@each_policy
def test_a_ref_variable_that_changes_its_shape(policy):
    w = v1.Variable(tf.zeros([2]), validate_shape=False, use_resource=False)
    x = v1.placeholder(tf.float32, [None])
    made = tf.identity(v1.assign(w, x, validate_shape=False)) + tf.ones([3])
    same_told(
        policy,
        made,
        lambda i: {x: [1.0, 2.0, i]},
        lambda i: {x: np.ones(i + 4)},
        before=w.initializer,
    )


@each_policy
@pytest.mark.parametrize("old", [True, False])
def test_a_failing_python_function(policy, old):
    x = v1.placeholder(tf.float32, [])

    def refuses(value):
        if float(value) < 0:
            raise ValueError(f"not below zero: {float(value)}")
        return value * np.float32(2)

    call = v1.py_func if old else tf.py_function
    made = call(refuses, [x], tf.float32, name="called") + 1.0
    kind, _, _, message = same_told(policy, made, lambda i: {x: i}, lambda i: {x: -i})
    assert kind is tf.errors.InvalidArgumentError
    assert "not below zero: -1.0" in message


@each_policy
def test_a_python_function_that_returns_another_type(policy):
    x = v1.placeholder(tf.float32, [])
    made = v1.py_func(lambda v: v if v < 5 else np.int64(3), [x], tf.float32, name="mistaken")
    same_told(policy, made, lambda i: {x: 0}, lambda i: {x: 9})


@each_policy
def test_a_missing_feed(policy):
    x = v1.placeholder(tf.float32, [2], name="wanted")
    kind, _, name, message = same_told(
        policy, tf.sqrt(x), lambda i: {x: [1, i]}, lambda i: {}, config=plain()
    )
    assert kind is tf.errors.InvalidArgumentError
    assert name == "wanted"
    assert "You must feed a value for placeholder tensor 'wanted'" in message


@each_policy
def test_the_end_of_a_dataset(policy):
    iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(5))
    made = iterator.get_next() * 2
    found = {}
    for each in ("stock", policy):
        with v1.Session(config=config_of(each)) as session:
            found[each] = []
            for _ in range(3):
                session.run(iterator.initializer)
                found[each] += [told(session, made) for _ in range(7)]
    assert found[policy] == found["stock"]
    assert [type(made) for made in found["stock"][:7]] == [list] * 5 + [tuple] * 2
    assert found["stock"][6][0] is tf.errors.OutOfRangeError


@each_policy
def test_a_failing_element_of_a_dataset(policy):
    data = tf.data.Dataset.range(12).map(
        lambda i: tf.debugging.check_numerics(1.0 / tf.cast(i % 4, tf.float32), "divided")
    )
    made = v1.data.make_one_shot_iterator(data).get_next()
    found = {}
    for each in ("stock", policy):
        with v1.Session(config=config_of(each)) as session:
            found[each] = [told(session, made) for _ in range(13)]
    assert found[policy] == found["stock"]
    assert "divided" in found["stock"][0][3]


@each_policy
@each_version
def test_an_error_inside_nested_loops(policy, version):
    x = v1.placeholder(tf.float32, [4])
    last = v1.placeholder(tf.int32, [])
    with control_flow(version):

        def inner(j, b):
            return j + 1, b + tf.gather(x, j + last, name="inner_read")

        def outer(i, a):
            return i + 1, tf.while_loop(lambda j, b: j < 2, inner, [0, a])[1]

        made = tf.while_loop(lambda i, a: i < 3, outer, [0, tf.constant(0.0)])[1]
    kind, *_, message = same_told(
        policy, made, lambda i: {x: [1, 2, 3, i], last: 2}, lambda i: {x: [1, 2, 3, i], last: 3}
    )
    assert kind is tf.errors.InvalidArgumentError
    assert "indices = 4 is not in [0, 4)" in message


@each_policy
@each_version
def test_an_error_in_a_branch(policy, version):
    on = v1.placeholder(tf.bool, [])
    x = v1.placeholder(tf.float32, [])
    with control_flow(version):
        made = tf.cond(
            on,
            lambda: tf.debugging.check_numerics(tf.math.log(x), "of a branch"),
            lambda: x * 2.0,
        )
    same_told(policy, made, lambda i: {on: i % 4 == 0, x: 2.0}, lambda i: {on: True, x: -1.0})


@each_policy
def test_an_error_in_a_function_within_a_function(policy):
    @tf.function(experimental_attributes={"_noinline": True})
    def inner(x):
        return tf.reshape(x, [2, -1], name="reshaped")

    @tf.function(experimental_attributes={"_noinline": True})
    def outer(x):
        return tf.reduce_sum(inner(x) * 2.0)

    x = v1.placeholder(tf.float32, [None])
    made = outer(x) + 1.0
    *_, message = same_told(
        policy, made, lambda i: {x: np.ones(2 * i)}, lambda i: {x: np.ones(2 * i + 1)}
    )
    assert "reshaped" in message


@each_policy
def test_an_error_of_an_async_kernel_while_others_wait(policy):
    """The error must wake the kernels that wait, on the same device and on the other."""
    x = v1.placeholder(tf.float32, [])
    empty = v1.FIFOQueue(3, [tf.float32], shapes=[[]], name="never_filled")
    waiting = []
    for i in range(6):
        with tf.device(f"/cpu:{i % 2}"):
            waiting.append(tf.sin(empty.dequeue()))
    with tf.device("/cpu:1"):
        checked = tf.debugging.check_numerics(tf.math.log(x), "one fails")
    for each in ("stock", policy):
        config = plain(device_count={"CPU": 2})
        with v1.Session(config=config_of(each, config)) as session:
            for _ in range(STEPS):
                kind, _, name, message = told(session, [*waiting, checked], {x: -1.0})
                assert kind is tf.errors.InvalidArgumentError
                assert "one fails" in message
                assert name == checked.op.name
            assert session.run(checked, {x: 1.0}) == 0.0


@each_policy
def test_an_error_on_one_device_while_the_other_waits_for_its_value(policy):
    x = v1.placeholder(tf.float32, [None])
    with tf.device("/cpu:0"):
        there = tf.reshape(x, [3], name="only_three")
    with tf.device("/cpu:1"):
        here = tf.sin(there) + tf.reduce_sum(x)
    with tf.device("/cpu:0"):
        back = here * 2.0
    config = config_of(policy, plain(device_count={"CPU": 2}))
    with v1.Session(config=config) as session:
        for i in range(STEPS):
            # Which of the other device's nodes the message adds differs from run to run in stock.
            kind, _, name, message = told(session, [here, back], {x: np.ones(i + 4)})
            assert (kind, name) == (tf.errors.InvalidArgumentError, "only_three")
            assert f"Input to reshape is a tensor with {i + 4} values" in message
            assert session.run(back, {x: [0, 0, 0]}).tolist() == [0, 0, 0]


@each_policy
def test_many_errors_in_one_step_tell_one(policy):
    x = v1.placeholder(tf.float32, [None])
    refusing = [tf.reshape(x, [i + 2, 7], name=f"refusing_{i}") for i in range(20)]
    with v1.Session(config=config_of(policy, plain())) as session:
        for i in range(STEPS):
            kind, _, name, message = told(session, refusing, {x: np.ones(5)})
            assert kind is tf.errors.InvalidArgumentError
            assert name.startswith("refusing_")
            assert f"{{{{node {name}}}}}" in message
            assert session.run(refusing[i], {x: np.ones(7 * (i + 2))}).shape == (i + 2, 7)


def run_apart(call: Callable[[], Any]) -> tuple[threading.Thread, list]:
    """Runs on another thread; the list gets what it returned."""
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(call()))
    thread.start()
    return thread, made


@each_policy
@pytest.mark.parametrize("count", [1, 5])
def test_closing_the_session_ends_a_wait(policy, count):
    started = v1.FIFOQueue(10, [tf.float32], shapes=[[]])
    empty = v1.FIFOQueue(10, [tf.float32], shapes=[[]])
    with tf.control_dependencies([started.enqueue(1.0)]):
        waiting = [empty.dequeue() * 2.0 for _ in range(count)]
    messages = []
    for each in ("stock", policy):
        session = v1.Session(config=config_of(each, plain()))
        thread, made = run_apart(lambda s=session: told(s, waiting))
        session.run(started.dequeue())
        time.sleep(0.05)  # The step has begun; nothing tells that its kernels wait by now.
        session.close()
        thread.join(20)
        assert not thread.is_alive()
        messages.append((made[0][0], made[0][3]))
    assert messages[0][0] is tf.errors.CancelledError
    assert messages[0][0] is messages[1][0]
    if count == 1:
        assert messages[0] == messages[1]


@each_policy
@each_version
def test_closing_the_session_ends_a_wait_in_a_loop(policy, version):
    started = v1.FIFOQueue(10, [tf.float32], shapes=[[]])
    empty = v1.FIFOQueue(10, [tf.float32], shapes=[[]])
    with control_flow(version):

        def body(i, a):
            with tf.control_dependencies([started.enqueue(1.0)]):
                return i + 1, a + empty.dequeue()

        made = tf.while_loop(lambda i, a: i < 9, body, [0, 0.0])[1]
    session = v1.Session(config=config_of(policy, plain()))
    thread, found = run_apart(lambda: told(session, made))
    session.run(started.dequeue())
    time.sleep(0.05)  # The loop has begun; nothing tells that its kernel waits by now.
    session.close()
    thread.join(20)
    assert not thread.is_alive()
    assert found[0][0] is tf.errors.CancelledError


def timed_out(policy: str, fetches: Any, feeds: dict | None = None, **settings: Any) -> list:
    """A limit of the run, then one of the session: both must end it."""
    graph, found = v1.get_default_graph(), []
    config = plain(device_count={"CPU": 2}, **settings)
    with v1.Session(graph=graph, config=config_of(policy, config)) as session:
        options = v1.RunOptions(timeout_in_ms=150)
        for _ in range(STEPS if policy == "cost_model" else 2):
            found.append(told(session, fetches, feeds, options=options))
    config = plain(device_count={"CPU": 2}, operation_timeout_in_ms=150, **settings)
    with v1.Session(graph=graph, config=config_of(policy, config)) as session:
        found.append(told(session, fetches, feeds))
    return found


@each_policy
@pytest.mark.parametrize(
    ("count", "devices"),
    [*(pytest.param(*less, marks=pytest.mark.slow) for less in ((1, 1), (1, 2), (6, 1))), (6, 2)],
)
def test_a_limit_of_time_ends_waiting_kernels(policy, count, devices):
    empty = v1.FIFOQueue(10, [tf.float32], shapes=[[]])
    made = []
    for i in range(count):
        with tf.device(f"/cpu:{i % devices}"):
            made.append(tf.identity(empty.dequeue()) + 1.0)
    found = timed_out(policy, made)
    assert {each[0] for each in found} == {tf.errors.DeadlineExceededError}
    assert found == timed_out("stock", made)[:1] * len(found)


@each_policy
@each_version
def test_a_limit_of_time_ends_a_loop_without_end(policy, version):
    with control_flow(version):
        made = tf.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [0])
    found = timed_out(policy, made)
    assert {each[0] for each in found} == {tf.errors.DeadlineExceededError}


@each_policy
def test_a_session_goes_on_after_a_limit_of_time(policy):
    queue = v1.FIFOQueue(10, [tf.float32], shapes=[[]])
    x = v1.placeholder(tf.float32, [])
    put, taken = queue.enqueue(x), queue.dequeue() * 2.0
    options = v1.RunOptions(timeout_in_ms=50)
    with v1.Session(config=config_of(policy, plain())) as session:
        for i in range(STEPS):
            assert told(session, taken, options=options)[0] is tf.errors.DeadlineExceededError
            session.run(put, {x: i})
            assert session.run(taken, options=v1.RunOptions(timeout_in_ms=60_000)) == 2.0 * i


@each_policy
def test_a_queue_that_is_closed_cancels_who_waits(policy):
    started = v1.FIFOQueue(10, [tf.float32], shapes=[[]])
    queue = v1.FIFOQueue(1, [tf.float32], shapes=[[]])
    with tf.control_dependencies([started.enqueue(1.0)]):
        taken = queue.dequeue(name="taken") + 1.0
    close = queue.close(cancel_pending_enqueues=True)
    found = {}
    for each in ("stock", policy):
        with v1.Session(config=config_of(each, plain())) as session:
            thread, made = run_apart(lambda s=session: told(s, taken))
            session.run(started.dequeue())
            session.run(close)
            thread.join(20)
            found[each] = [made[0], told(session, taken)]
    assert found[policy] == found["stock"]
    assert found["stock"][0][0] is tf.errors.OutOfRangeError


@each_policy
def test_an_unfinished_partial_run_ends_with_its_session(policy):
    a, b = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [])
    first = tf.sqrt(a)
    second = tf.reshape(first + b, tf.cast([b], tf.int32), name="never")
    found = {}
    for each in ("stock", policy):
        session = v1.Session(config=config_of(each, plain()))
        waiting = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(waiting, first, {a: 9.0}) == 3.0
        failing = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(failing, first, {a: 4.0}) == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="never"):
            session.partial_run(failing, second, {b: 3.0})
        # An error in a partial run ends all of its session's: they share what cancels them.
        with pytest.raises(tf.errors.OpError) as caught:
            session.partial_run(waiting, second, {b: 3.0})
        found[each] = type(caught.value)
        session.close()
    assert found[policy] is found["stock"]


@each_policy
def test_reading_a_file_that_is_not_there(policy, tmp_path):
    name = v1.placeholder(tf.string, [])
    (tmp_path / "there").write_bytes(b"read")
    made = tf.strings.length(tf.io.read_file(name, name="reading"))
    kind, *_, message = same_told(
        policy,
        made,
        lambda i: {name: str(tmp_path / "there")},
        lambda i: {name: str(tmp_path / f"missing-{i}")},
    )
    assert kind is tf.errors.NotFoundError
    assert "missing-1" in message


@each_policy
def test_no_step_is_left_behind_by_errors(policy):
    """What a failed step had made goes; the next one starts clean."""
    x = v1.placeholder(tf.float32, [None])
    w = v1.get_variable("w", [3], initializer=v1.ones_initializer(), use_resource=False)
    early = [tf.sin(x) + float(i) for i in range(5)]
    with tf.control_dependencies(early):
        middle = tf.reshape(x, [3]) * w
    late = tf.add_n([*early, middle]) + tf.identity(w)
    same_told(
        policy,
        [late, *early],
        lambda i: {x: [i, 1, 2]},
        lambda i: {x: np.ones(4)},
        before=v1.global_variables_initializer(),
    )

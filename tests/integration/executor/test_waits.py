"""An op may wait for what another op of the same step does: under each executor the run ends.

A run that hangs is ended by closing its session, so that a test that fails also ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.executors import (
    POLICIES,
    STEPS,
    config_of,
    plain,
    with_threads,
)

v1 = tf.compat.v1
each_executor = pytest.mark.parametrize("policy", ["stock", *POLICIES])
PATIENCE_S = 15.0
FLOAT = tf.TensorSpec([], tf.float32)
COUNT = tf.TensorSpec([], tf.int32)


def queue_of_one_name() -> tf.Tensor:
    return v1.raw_ops.FIFOQueueV2(
        component_types=[tf.float32], shapes=[[]], capacity=50, shared_name="awaited"
    )


def take_from_queue() -> tf.Tensor:
    return v1.raw_ops.QueueDequeueV2(handle=queue_of_one_name(), component_types=[tf.float32])[0]


def take_from_staging_area() -> tf.Tensor:
    return v1.raw_ops.Unstage(dtypes=[tf.float32], shared_name="awaited")[0]


def put(kind: str, value: tf.Tensor) -> tf.Operation:
    if kind == "queue":
        return v1.raw_ops.QueueEnqueueV2(handle=queue_of_one_name(), components=[value])
    return v1.raw_ops.Stage(values=[value], shared_name="awaited")


def concrete(function: Callable, *signature: tf.TensorSpec):
    made = tf.function(function).get_concrete_function(*signature)
    made.add_to_graph()
    return made


def call_functional(op: str, body: Callable, x: tf.Tensor, on: tf.Tensor) -> tf.Tensor:
    """One functional op that nothing lowers or inlines, whose function waits."""
    if op == "While":
        cond = concrete(lambda i, a: i < 2, COUNT, FLOAT)
        step = concrete(lambda i, a: (i + 1, body(a)), COUNT, FLOAT)
        return v1.raw_ops.While(input=[tf.constant(0), x], cond=cond, body=step)[1]
    there, other = concrete(body, FLOAT), concrete(lambda a: a + 0.0, FLOAT)
    if op == "If":
        return v1.raw_ops.If(
            cond=on, input=[x], Tout=[tf.float32], then_branch=there, else_branch=other
        )[0]
    if op == "Case":
        return v1.raw_ops.Case(
            branch_index=tf.cast(on, tf.int32),
            input=[x],
            Tout=[tf.float32],
            branches=[other, there],
        )[0]
    return v1.raw_ops.StatefulPartitionedCall(args=[x], Tout=[tf.float32], f=there)[0]


def run_all(policy: str, fetches: list, feeds: dict, steps: int = STEPS) -> list:
    """Runs some steps, but closes the session when they do not end."""
    session = v1.Session(config=config_of(policy, with_threads(plain(), 4)))
    hangs = threading.Timer(PATIENCE_S, session.close)
    hangs.start()
    try:
        return [session.run(fetches, feeds)[0] for _ in range(steps)]
    finally:
        hangs.cancel()
        session.close()


@each_executor
@pytest.mark.parametrize("kind", ["queue", "area"])
@pytest.mark.parametrize("op", ["While", "If", "Case", "StatefulPartitionedCall"])
@pytest.mark.parametrize("first", ["wait", "put"])
def test_a_function_waits_for_a_later_op_of_the_step(policy, kind, op, first):
    x, on = v1.placeholder(tf.float32, []), v1.placeholder(tf.bool, [])
    take = take_from_queue if kind == "queue" else take_from_staging_area
    rounds = 2 if op == "While" else 1
    puts = [put(kind, x * 2.0) for _ in range(rounds)] if first == "put" else []
    waited = call_functional(op, lambda a: a + take(), x, on)
    puts = puts or [put(kind, x * 2.0) for _ in range(rounds)]
    found = run_all(policy, [waited, *puts], {x: 1.5, on: True})
    assert found == [1.5 + 3.0 * rounds] * STEPS


@each_executor
def test_a_loop_in_a_call_waits_for_what_follows_the_call(policy):
    """Two functions deep: the call is what the client's thread runs."""
    x, on = v1.placeholder(tf.float32, []), v1.placeholder(tf.bool, [])

    def calls_a_loop(a):
        return call_functional("While", lambda b: b + take_from_queue(), a, on)

    waited = call_functional("If", calls_a_loop, x, on)
    puts = [put("queue", x) for _ in range(2)]
    assert run_all(policy, [waited, *puts], {x: 1.0, on: True}) == [3.0] * STEPS


@each_executor
def test_a_function_that_waits_for_nobody_runs_where_it_is_called(policy):
    """A loop over variables and random numbers is no reason to leave the thread."""
    x, on = v1.placeholder(tf.float32, []), v1.placeholder(tf.bool, [])
    waited = call_functional("While", lambda a: a * 2.0 + tf.random.uniform([]) * 0.0, x, on)
    assert run_all(policy, [waited], {x: 1.0, on: True}) == [4.0] * STEPS


@each_executor
@pytest.mark.parametrize("eager", [False, True])
def test_python_code_waits_for_python_code_of_the_step(policy, eager):
    reached = threading.Semaphore(0)

    def waits(value):
        if not reached.acquire(timeout=PATIENCE_S):
            raise TimeoutError("the other function of the step was not called")
        return np.float32(value)

    def releases(value):
        reached.release()
        return np.float32(value)

    x = v1.placeholder(tf.float32, [])
    run = (
        (lambda f: tf.py_function(f, [x], tf.float32))
        if eager
        else (lambda f: tf.numpy_function(f, [x], tf.float32))
    )
    fetches = [run(waits), run(releases)]
    assert run_all(policy, fetches, {x: 1.0}) == [1.0] * STEPS

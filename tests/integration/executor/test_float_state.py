"""Denormal numbers are flushed, on every thread, by every policy and op, as TensorFlow does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.executors import bits, config_of, each_policy, same

v1 = tf.compat.v1
# Above the least normal number, 1.2e-38; what Adam and products make of it is not.
SMALL = 2e-38
# Worth several threads.
VALUES = 1_000_000
ROWS, WIDTH = 4_000, 16


def flushes_here() -> bool:
    """Whether this thread flushes denormals; NumPy computes as its thread does."""
    return bool(np.full(1, SMALL, np.float32) * np.float32(0.1) == 0)


def trained_by_adam() -> list[tf.Tensor]:
    variable = v1.get_variable("dense", [VALUES], initializer=v1.zeros_initializer())
    optimizer = v1.train.AdamOptimizer(0.01)
    update = optimizer.apply_gradients([(tf.fill([VALUES], SMALL), variable)])
    with tf.control_dependencies([update]):
        slots = [optimizer.get_slot(variable, name).read_value() for name in ("m", "v")]
        return [*slots, variable.read_value()]


def looked_up() -> list[tf.Tensor]:
    random = np.random.default_rng(1)
    start = (random.integers(-9, 9, [ROWS, WIDTH]) * np.float32(3e-39)).astype(np.float32)
    table = v1.get_variable("table", initializer=tf.constant(start))
    lengths = random.integers(0, 9, 3_000)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    at = v1.placeholder_with_default(np.stack([rows, np.arange(len(rows))], 1), [None, 2])
    ids = tf.SparseTensor(at, tf.constant(random.integers(0, ROWS, len(rows))), [3_000, len(rows)])
    weights = ids.with_values(tf.fill([len(rows)], np.float32(0.3)))
    found = [
        v1.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean"),
        tf.nn.embedding_lookup_sparse(table, ids, weights, combiner="sum"),
        tf.nn.embedding_lookup(table, ids.values),
    ]
    loss = tf.add_n([tf.reduce_sum(each * 1e-30) for each in found])
    update = v1.train.AdamOptimizer(1e-38).minimize(loss)
    with tf.control_dependencies([update]):
        return [*found, table.read_value()]


@each_policy
def test_a_step_runs_as_on_a_thread_of_tensorflow(policy: str) -> None:
    x = v1.placeholder(tf.float32, [None])
    same(policy, [x * 0.1, tf.reduce_sum(x * 0.1)], lambda step: {x: [SMALL] * (step + 1)})


@each_policy
def test_control_flow_runs_so_too(policy: str) -> None:
    x = v1.placeholder(tf.float32, [])
    halved = tf.while_loop(lambda i, _: i < 4, lambda i, y: (i + 1, y * 0.5), (0, x))[1]
    chosen = tf.cond(x > 0, lambda: x * 0.1, lambda: x)
    same(policy, [halved, chosen], lambda step: {x: SMALL})


@pytest.mark.parametrize("build", [trained_by_adam, looked_up])
def test_fused_ops_give_the_same_bits_on_all_threads(build: Callable[[], list[tf.Tensor]]) -> None:
    fetches = build()
    graph, begin = v1.get_default_graph(), v1.global_variables_initializer()
    plan = wb.plan_fusion(graph)
    assert plan.replaced
    found = {}
    # The first one wakes the threads that help.
    for policy in ("inline", "stock", "normal", "cost_model"):
        with v1.Session(config=config_of(policy, wb.apply(plan))) as session:
            session.run(begin)
            for _ in range(6):
                values = session.run(fetches)
        found[policy] = bits(values)
    # The others are copied in part.
    for value in values[:2]:
        assert not ((np.abs(value) < 1.1e-38) & (value != 0)).any()
    assert found["inline"] == found["stock"] == found["normal"] == found["cost_model"]


def test_a_client_computes_as_before_after_a_step() -> None:
    assert not flushes_here()
    with v1.Session(config=config_of("inline")) as session:
        assert session.run(tf.constant(SMALL) * v1.placeholder_with_default(0.1, [])) == 0
        assert not flushes_here()

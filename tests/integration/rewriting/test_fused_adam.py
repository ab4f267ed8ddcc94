"""Adam's updates of tables, which move every row, as one op of a finished graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.fused_graphs import ran, trained
from tests.builders.lookup_features import ROWS, made_tables

v1 = tf.compat.v1
STEPS = 60
# Those that go through a whole table or slot: what the one op does instead.
WHOLE = ("AssignSub", "ScatterAdd", "ResourceScatterAdd", "AssignSubVariableOp")
BOTH = pytest.mark.parametrize("kind", ["ref", "resource"])


def model(
    kind: str, learning_rate: Any = 0.01, **options: Any
) -> tuple[tf.Graph, tf.Tensor, tf.Operation]:
    """Two tables of which a step reads few rows, other ones each time, and some for long not."""
    drawn = np.random.default_rng(1).zipf(1.4, (STEPS, 2, 6)) % ROWS
    with tf.Graph().as_default() as graph:
        tables = made_tables(kind, (5, 16), tf.float32, 1)
        step = v1.train.get_or_create_global_step()
        ids = tf.gather(tf.constant(drawn, tf.int64), step)
        found = [tf.nn.embedding_lookup(table, ids[i]) for i, table in enumerate(tables)]
        loss = tf.add_n([tf.reduce_mean(tf.square(each - 1.0)) for each in found])
        if callable(learning_rate):
            learning_rate = learning_rate(step)
        optimizer = v1.train.AdamOptimizer(learning_rate, **options)
        train_op = optimizer.minimize(loss, global_step=step)
        tf.group(v1.global_variables_initializer(), name="begin")
    return graph, loss, train_op


def assert_trains_alike(graph: tf.Graph, loss: tf.Tensor, train_op: tf.Operation) -> None:
    found, ours = trained(graph, loss, train_op, wb.apply(wb.plan_fusion(graph)), STEPS)
    expected, variables = trained(graph, loss, train_op, None, STEPS)
    np.testing.assert_allclose(found, expected, rtol=2e-6)
    for one, other in zip(ours, variables, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-7)


@BOTH
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beta1": 0.5, "beta2": 0.8, "epsilon": 1e-3, "use_locking": True},
        {"learning_rate": lambda step: v1.train.exponential_decay(0.05, step, 7, 0.8)},
    ],
    ids=["plain", "numbers", "decaying"],
)
def test_trains_as_stock_does_rows_that_no_batch_has_too(kind: str, options: Any) -> None:
    graph, loss, train_op = model(kind, **options)
    assert_trains_alike(graph, loss, train_op)
    ops = ran(graph, [loss, train_op], wb.apply(wb.plan_fusion(graph)))
    assert sum(op.endswith("GroupedApplyAll") for op in ops) == 1
    # What is left moves the powers of beta and the global step.
    assert not [op for op in ops if op in WHOLE]


@BOTH
def test_what_the_update_computes_can_be_fetched(kind: str) -> None:
    graph, _, train_op = model(kind)
    last = graph.get_tensor_by_name("Adam/update_table_0/truediv_1:0")
    assert_trains_alike(graph, last, train_op)


def test_a_moment_that_others_read_is_left_to_stock() -> None:
    graph, loss, train_op = model("ref")
    with graph.as_default():
        moved = graph.get_tensor_by_name("Adam/update_table_0/ScatterAdd:0")
        loss = loss + 0 * tf.reduce_sum(moved)
    plan = wb.plan_fusion(graph)
    assert [each.updates for each in plan.of("lookup")] == [False, True]
    assert_trains_alike(graph, loss, train_op)


def test_what_runs_before_the_decay_runs_before_the_op() -> None:
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        count = v1.get_variable("count", initializer=0, use_resource=True)
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, [3, 4])))
        optimizer = v1.train.AdamOptimizer(0.1)
        gradients = optimizer.compute_gradients(loss)
        with tf.control_dependencies([count.assign_add(1)]):
            train_op = optimizer.apply_gradients(gradients)
        tf.group(v1.global_variables_initializer(), name="begin")
    assert [each.updates for each in wb.plan_fusion(graph).of("lookup")] == [True]
    assert_trains_alike(graph, loss, train_op)


def test_tables_with_numbers_of_their_own_have_ops_of_their_own() -> None:
    with tf.Graph().as_default() as graph:
        tables = made_tables("resource", (4, 4), tf.float32, 1)
        losses = [tf.reduce_sum(tf.sin(tf.nn.embedding_lookup(t, [3, 3, 4]))) for t in tables]
        train_op = tf.group(
            *(
                v1.train.AdamOptimizer(rate).minimize(loss, var_list=[table])
                for rate, loss, table in zip((0.1, 0.01), losses, tables, strict=True)
            )
        )
        tf.group(v1.global_variables_initializer(), name="begin")
    ops = ran(graph, [losses, train_op], wb.apply(wb.plan_fusion(graph)))
    assert ops.count("WorkbenchResourceGroupedApplyAll") == 2
    assert_trains_alike(graph, tf.nest.flatten(losses)[0], train_op)

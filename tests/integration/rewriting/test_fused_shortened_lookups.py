"""Stock lookups with `max_norm`, fused in a finished graph that looks up, or trains too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.builders.fused_graphs import (
    EXAMPLES,
    OPTIMIZERS,
    each_optimizer,
    fed,
    loss_of,
    ran,
    trained,
)
from tests.builders.lookup_features import Feature, features, made_tables

v1 = tf.compat.v1


@EXAMPLES
@given(
    drawn=st.lists(features(), min_size=1, max_size=4),
    norms=st.lists(st.sampled_from((None, 0.3, 0.7, 100.0)), min_size=4, max_size=4),
    kind=st.sampled_from(("ref", "resource")),
    dims=st.tuples(*[st.sampled_from((1, 5, 16))] * 3),
)
def test_sessions_look_up_as_stock_ones_do(
    drawn: list[Feature], norms: list[float | None], kind: str, dims: Any
) -> None:
    with tf.Graph().as_default() as graph:
        tables = made_tables(kind, dims, tf.float32, 3)
        embeddings = [
            v1.nn.safe_embedding_lookup_sparse(
                tables[each.table],
                fed(each.sparse_ids()),
                each.weights(),
                each.combiner,
                each.default_id,
                max_norm=norm,
            )
            for each, norm in zip(drawn, norms, strict=False)
        ]
        begin = tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert len(plan.of("lookup")) == len(drawn)
    found, _ = trained(graph, embeddings, begin, wb.apply(plan), steps=1)
    expected, _ = trained(graph, embeddings, begin, None, steps=1)
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=3e-6, atol=3e-6)


INFINITE, NAN = float("inf"), float("nan")
# Of lengths that are no numbers, that overflow, and that are 0 or round to it.
EXTREME = [
    [NAN, 1, 2, 3],
    [INFINITE, 1, 2, 3],
    [-INFINITE, NAN, 0, 0],
    [INFINITE] * 4,
    [1e30, 1e30, 0, 0],
    [0, 0, 0, 0],
    [1e-30, 0, 0, 0],
    [3, 4, 0, 0],
    [0.1] * 4,
]


@pytest.mark.parametrize("width", [4, 20])
def test_rows_without_a_length_are_shortened_as_in_stock(width: int) -> None:
    rows = np.pad(np.array(EXTREME, np.float32), ((0, 0), (0, width - 4)))
    with tf.Graph().as_default() as graph:
        table = v1.get_variable("table", initializer=tf.constant(rows), use_resource=True)
        ids = fed(tf.sparse.from_dense(np.arange(1, len(rows) + 1)[:, None]))
        ids = ids.with_values(ids.values - 1)
        found = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum", max_norm=1.0)
        loss = tf.reduce_sum(found * tf.range(1.0, width + 1))
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert [each.gradients for each in plan.of("lookup")] == [1]
    ours = trained(graph, found, train_op, wb.apply(plan), steps=1)
    stock = trained(graph, found, train_op, None, steps=1)
    for one, other in zip(tf.nest.flatten(ours), tf.nest.flatten(stock), strict=True):
        assert np.isnan(other).any() and np.isfinite(other).any()
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def looking_up(build: Callable[[tf.SparseTensor, Any], Any]) -> tuple[tf.Graph, Any]:
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        found = build(fed(tf.sparse.from_dense([[1, 2], [0, 3]])), table)
        tf.group(v1.global_variables_initializer(), name="begin")
    return graph, found


def with_norm(ids: tf.SparseTensor, table: Any) -> Any:
    return tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum", max_norm=0.5)


def trained_twice(ids: tf.SparseTensor, table: Any) -> Any:
    found = with_norm(ids, table)
    return [tf.gradients(each, table) for each in (found, tf.square(found))]


def of_halves(ids: tf.SparseTensor, table: Any) -> Any:
    return with_norm(ids, v1.get_variable("half", [12, 4], tf.float16, use_resource=True))


def with_a_norm_of_zero(ids: tf.SparseTensor, table: Any) -> Any:
    return tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum", max_norm=0.0)


def divided_by_another_length(ids: tf.SparseTensor, table: Any) -> Any:
    unique, places = tf.unique(ids.values)
    rows = tf.nn.embedding_lookup(table, unique)
    length = tf.norm(rows, ord=1, axis=1, keepdims=True)
    shortened = rows * 0.5 / tf.maximum(length, 0.5)
    return tf.sparse.segment_sum(shortened, places, ids.indices[:, 0])


@each_optimizer("adagrad", "adam", "momentum")
def test_sessions_train_as_stock_ones_do(kind: str, optimizer: str) -> None:
    with tf.Graph().as_default() as graph:
        tables = made_tables(kind, (5, 16), tf.float32, 1)
        ids = fed(tf.sparse.from_dense([[1, 2, 2], [0, 3, 0]]))
        # Two lookups of a table, of different lengths.
        found = [
            tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean", max_norm=norm)
            for table, norm in zip((*tables, tables[0]), (0.7, 1.5, 1.0), strict=True)
        ]
        loss = loss_of(found)
        train_op = OPTIMIZERS[optimizer]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert [each.gradients for each in plan.of("lookup")] == [1, 1, 1]
    ops = ran(graph, [loss, train_op], wb.apply(plan))
    assert not [op for op in ops if op.startswith("SparseSegment")]
    ours = trained(graph, [loss, *found], train_op, wb.apply(plan))
    stock = trained(graph, [loss, *found], train_op, None)
    for one, other in zip(tf.nest.flatten(ours), tf.nest.flatten(stock), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_learned_weights_of_a_table_that_is_not_trained() -> None:
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        ids = fed(tf.sparse.from_dense([[1, 2], [0, 3]]))
        factors = v1.placeholder_with_default([0.5, 1.5, 2.0], [None])
        found = v1.nn.safe_embedding_lookup_sparse(
            table, ids, ids.with_values(1.0 * factors), max_norm=0.5
        )
        gradients = tf.gradients(tf.reduce_sum(tf.sin(found)), factors)
        begin = tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert [each.gradients for each in plan.of("lookup")] == [1]
    ours, _ = trained(graph, gradients, begin, wb.apply(plan), steps=1)
    stock, _ = trained(graph, gradients, begin, None, steps=1)
    np.testing.assert_allclose(ours, stock, rtol=1e-5, atol=1e-6)


def test_nothing_of_stock_is_left() -> None:
    graph, found = looking_up(with_norm)
    ops = ran(graph, found, wb.apply(wb.plan_fusion(graph)))
    assert not {"Unique", "Sqrt", "ResourceGather", "SparseSegmentSum"} & set(ops)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (trained_twice, "its rows are shortened to max_norm, and have several gradients"),
        (of_halves, "its table is not float32, and its rows are shortened to max_norm"),
        (with_a_norm_of_zero, "or a max_norm that is not TensorFlow's own"),
        (divided_by_another_length, "or a max_norm that is not TensorFlow's own"),
    ],
)
def test_says_why_a_lookup_stays(build: Any, reason: str) -> None:
    graph, _ = looking_up(build)
    plan = wb.plan_fusion(graph)
    assert not plan.of("lookup")
    (refusal,) = plan.refusals
    assert reason in refusal.reason

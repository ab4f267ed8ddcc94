"""Stock lookups of ids that have weights, fused in a finished graph: it trains as it did."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.core.framework import graph_pb2

import workbench as wb
from tests.builders.fused_graphs import (
    EXAMPLES,
    OPTIMIZERS,
    each_optimizer,
    loss_of,
    ran,
    trained,
)
from tests.builders.grids import every_value
from tests.builders.lookup_features import ROWS, made_tables
from tests.builders.weighted_lookups import FULL, Weighted, looked_up, weighted

v1 = tf.compat.v1
STOCK = ("SegmentSum", "DivNoNan", "SparseFillEmptyRows", "Unique", "Where", "ResourceGather")


def trained_by(optimizer: str, loss: tf.Tensor, tables: Any, factors: Any) -> tuple[Any, Any]:
    """An op that trains tables, and the gradients of the factors."""
    gradients = tf.gradients(loss, [*tables, *factors])
    pairs = [each for each in zip(gradients, tables) if each[0] is not None]  # noqa: B905
    return OPTIMIZERS[optimizer]().apply_gradients(pairs), gradients[len(tables) :]


def stays(lookup: Weighted) -> bool:
    """Whether a lookup is stock's still."""
    return not lookup.is_safe and lookup.is_learned and lookup.combiner == "sqrtn"


def assert_trains_alike(graph: tf.Graph, fetches: Any, train_op: Any, plan: Any) -> None:
    expected = trained(graph, fetches, train_op, None)
    found = trained(graph, fetches, train_op, wb.apply(plan))
    for value, stock in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(value, stock, rtol=3e-5, atol=3e-5)


@EXAMPLES
@given(
    drawn=st.lists(weighted(), min_size=1, max_size=4),
    id_dtype=st.sampled_from((np.int64, np.int32)),
    kind=st.sampled_from(("ref", "resource")),
    dims=st.tuples(*[st.sampled_from((1, 5, 16))] * 2),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    seed=st.integers(0, 99),
)
def test_sessions_train_as_stock_ones_do(
    drawn: list[Weighted], id_dtype: Any, kind: str, dims: Any, optimizer: str, seed: int
) -> None:
    with tf.Graph().as_default() as graph:
        tables = made_tables(kind, dims, tf.float32, seed)
        embeddings, factors = looked_up(drawn, tables, id_dtype)
        loss = loss_of(embeddings)
        train_op, gradients = trained_by(optimizer, loss, tables, factors)
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    stay = sum(stays(each) for each in drawn)
    assert len(plan.refusals) == stay
    assert len(plan.of("lookup")) == len(drawn) - stay
    assert_trains_alike(graph, [loss, *embeddings, *gradients], train_op, plan)


def lookups(
    kind: str, optimizer: str, *drawn: Weighted
) -> tuple[tf.Graph, tf.Tensor, tf.Operation]:
    with tf.Graph().as_default() as graph:
        tables = made_tables(kind, (8, 16), tf.float32, 5)
        loss = loss_of(looked_up(drawn, tables, np.int64)[0])
        train_op = OPTIMIZERS[optimizer]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    return graph, loss, train_op


@each_optimizer("adagrad", "descent", "adam")
def test_one_op_looks_up_and_one_updates(kind: str, optimizer: str) -> None:
    others = {"combiner": "sqrtn", "table": 1}
    graph, loss, train_op = lookups(kind, optimizer, FULL, dataclasses.replace(FULL, **others))
    plan = wb.plan_fusion(graph)
    assert [each.updates for each in plan.of("lookup")] == [True, True]
    ops = ran(graph, [loss, train_op], wb.apply(plan))
    assert sum(op.endswith("GroupedLookUp") for op in ops) == 1
    assert sum("GroupedApply" in op for op in ops) == 1
    # Nor is what stock makes of the weights' gradient, of which nothing is read.
    assert not [op for op in ops if op.startswith((*STOCK, "UnsortedSegmentSum"))]


@every_value(combiner=["sum", "mean", "sqrtn"], default_id=[None, 7])
def test_batches_without_ids_and_without_weights_that_count(
    combiner: str, default_id: int | None
) -> None:
    given = {"combiner": combiner, "default_id": default_id}
    empty = dataclasses.replace(FULL, at=(), ids=(), weights=(), **given)
    none_counts = dataclasses.replace(FULL, weights=(0.0, -1.0, -0.5, 0.0), table=1, **given)
    graph, loss, train_op = lookups("resource", "adagrad", empty, none_counts)
    plan = wb.plan_fusion(graph)
    assert len(plan.of("lookup")) == 2
    assert_trains_alike(graph, loss, train_op, plan)


@each_optimizer("adagrad", "halved")
def test_weights_that_are_learned_have_their_gradient_before_the_rows_change(
    kind: str, optimizer: str
) -> None:
    learned = dataclasses.replace(FULL, is_learned=True)
    with tf.Graph().as_default() as graph:
        tables = made_tables(kind, (8, 16), tf.float32, 5)
        drawn = [learned, dataclasses.replace(learned, combiner="sum", table=1)]
        embeddings, factors = looked_up(drawn, tables, np.int64)
        loss = loss_of(embeddings)
        train_op, gradients = trained_by(optimizer, loss, tables, factors)
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    added = {node.name: node for node in graph_pb2.GraphDef.FromString(plan.added).node}
    (reads,) = (name for name, node in added.items() if node.op.endswith("WeightGrad"))
    changes = "GroupedApply" if optimizer == "adagrad" else "GroupedLookUpGrad"
    (change,) = (node for node in added.values() if node.op.endswith(changes))
    assert f"^{reads}" in change.input
    ops = ran(graph, [loss, train_op, gradients], wb.apply(plan))
    assert not [op for op in ops if op.startswith((*STOCK, "UnsortedSegmentSum"))]
    assert_trains_alike(graph, [loss, gradients], train_op, plan)


def test_weights_of_a_table_that_is_not_trained() -> None:
    learned = dataclasses.replace(FULL, is_learned=True)
    with tf.Graph().as_default() as graph:
        embeddings, factors = looked_up(
            [learned], made_tables("resource", (8,), tf.float32, 5), int
        )
        gradients = tf.gradients(loss_of(embeddings), factors)
        begin = tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert [each.gradients for each in plan.of("lookup")] == [1]
    assert_trains_alike(graph, gradients, begin, plan)


def test_weighted_columns_of_an_input_layer() -> None:
    with tf.Graph().as_default() as graph:
        columns, features = [], {}
        for i, combiner in enumerate(("sum", "mean", "sqrtn")):
            name = f"ids_{i}"
            ids = tf.feature_column.categorical_column_with_identity(name, ROWS)
            column = tf.feature_column.weighted_categorical_column(ids, f"weight_{i}")
            columns.append(tf.feature_column.embedding_column(column, 4, combiner))
            features[name] = FULL.placed(FULL.ids, np.int64)
            features[f"weight_{i}"] = FULL.placed(FULL.weights, np.float32)
        found = v1.feature_column.input_layer(features, columns)
        loss = loss_of([found])
        train_op = OPTIMIZERS["adagrad"]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
        v1.set_random_seed(1)
    plan = wb.plan_fusion(graph)
    assert [each.updates for each in plan.of("lookup")] == [True] * 3
    with v1.Session(graph=graph) as session:
        session.run(graph.get_operation_by_name("begin"))
        variables = graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
        values = session.run(variables)
    with graph.as_default():
        begin = [v1.assign(each, value) for each, value in zip(variables, values, strict=True)]
    results = []
    for config in (None, wb.apply(plan)):
        with v1.Session(graph=graph, config=config) as session:
            session.run(begin)
            losses = [session.run([loss, found, train_op])[:2] for _ in range(3)]
            results.append(tf.nest.flatten([losses, session.run(variables)]))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

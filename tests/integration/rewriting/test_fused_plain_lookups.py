"""Stock lookups without a safety net, of sparse and of dense ids, fused in a finished graph."""

from __future__ import annotations

import dataclasses
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
    loss_of,
    ran,
    trained,
)
from tests.builders.lookup_features import ROWS, given_ids, made_tables

v1 = tf.compat.v1
DENSE = "dense"


@dataclasses.dataclass(frozen=True)
class Plain:
    """A lookup: of which table, by which of the given ids, combined in which way or dense."""

    table: int
    ids: int
    kind: str


PLAIN = st.builds(
    Plain,
    table=st.integers(0, 2),
    ids=st.integers(0, 2),
    kind=st.sampled_from(("sum", "mean", "sqrtn", DENSE, DENSE)),
)
IDS = st.lists(st.integers(0, ROWS - 1), min_size=0, max_size=9)


def looked_up(drawn: list[Plain], tables: list[Any], ids: list[Any]) -> list[tf.Tensor]:
    found = []
    for each in drawn:
        table, (dense, sparse) = tables[each.table], ids[each.ids]
        if each.kind == DENSE:
            found.append(tf.nn.embedding_lookup(table, dense))
        else:
            found.append(v1.nn.embedding_lookup_sparse(table, sparse, None, combiner=each.kind))
    return found


@EXAMPLES
@given(
    drawn=st.lists(PLAIN, min_size=1, max_size=6),
    numbers=st.tuples(IDS, IDS, IDS),
    id_dtype=st.sampled_from((tf.int64, tf.int32)),
    kind=st.sampled_from(("ref", "resource")),
    dims=st.tuples(*[st.sampled_from((1, 5, 16))] * 3),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    seed=st.integers(0, 99),
)
def test_sessions_train_as_stock_ones_do(
    drawn: list[Plain],
    numbers: Any,
    id_dtype: tf.DType,
    kind: str,
    dims: Any,
    optimizer: str,
    seed: int,
) -> None:
    with tf.Graph().as_default() as graph:
        tables = made_tables(kind, dims, tf.float32, seed)
        embeddings = looked_up(drawn, tables, [given_ids(each, id_dtype) for each in numbers])
        loss = loss_of(embeddings)
        train_op = OPTIMIZERS[optimizer]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert len(plan.of("lookup")) == len(drawn)
    fetches = [loss, *embeddings]
    expected, variables = trained(graph, fetches, train_op, None)
    found, ours = trained(graph, fetches, train_op, wb.apply(plan))
    for value, stock in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(value, stock, rtol=3e-5, atol=3e-5)
    for value, stock in zip(ours, variables, strict=True):
        np.testing.assert_allclose(value, stock, rtol=3e-5, atol=3e-5)


def wide_and_deep(kind: str, optimizer: str) -> tuple[tf.Graph, tf.Tensor, tf.Operation]:
    """Two features of which each is looked up in a wide and in a deep table, by the same ids."""
    with tf.Graph().as_default() as graph:
        tables = made_tables(kind, (1, 8, 1, 8), tf.float32, 3)
        ids = [given_ids([3, 3, 1, 7], tf.int64)[0] for _ in range(2)]
        found = [tf.nn.embedding_lookup(each, ids[i // 2]) for i, each in enumerate(tables)]
        loss = loss_of(found)
        train_op = OPTIMIZERS[optimizer]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    return graph, loss, train_op


@each_optimizer("adagrad", "descent", "adam", "ftrl", "shrinking")
def test_tables_that_share_ids_are_each_updated_by_its_own_gradient(
    kind: str, optimizer: str
) -> None:
    graph, loss, train_op = wide_and_deep(kind, optimizer)
    plan = wb.plan_fusion(graph)
    assert [each.updates for each in plan.of("lookup")] == [True] * 4
    config = wb.apply(plan)
    ops = ran(graph, [loss, train_op], config)
    assert sum(op.endswith("GroupedLookUp") for op in ops) == 1
    assert sum("GroupedApply" in op for op in ops) == 1
    assert not {"Unique", "ResourceGather", "GatherV2", "UnsortedSegmentSum"} & set(ops)
    found, ours = trained(graph, loss, train_op, config)
    expected, variables = trained(graph, loss, train_op, None)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for value, stock in zip(ours, variables, strict=True):
        np.testing.assert_allclose(value, stock, rtol=1e-5)


def test_dense_ids_keep_their_shape_whatever_it_is() -> None:
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        ids = v1.placeholder(tf.int32, [None, None, 2])
        found = tf.nn.embedding_lookup(table, ids)
        assert found.shape.as_list() == [None, None, 2, 4]
        tf.group(v1.global_variables_initializer(), name="begin")
    with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
        session.run(graph.get_operation_by_name("begin"))
        numbers = np.arange(12).reshape(2, 3, 2)
        value, rows = session.run([found, table], {ids: numbers})
        np.testing.assert_array_equal(value, rows[numbers])
        assert session.run(found, {ids: np.zeros([0, 3, 2])}).shape == (0, 3, 2, 4)


def test_an_id_beyond_the_table_names_the_lookup() -> None:
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        ids = v1.placeholder(tf.int64, [None])
        with tf.name_scope("users"):
            found = tf.nn.embedding_lookup(table, ids)
        tf.group(v1.global_variables_initializer(), name="begin")
    with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
        session.run(graph.get_operation_by_name("begin"))
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"feature 'users/embedding_lookup': row 1: id 12 is not in \[0, 12\)",
        ):
            session.run(found, {ids: [3, ROWS]})


def test_rows_out_of_order_are_an_error_as_they_are_in_stock() -> None:
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        indices = v1.placeholder(tf.int64, [None, 2])
        ids = tf.SparseTensor(
            indices, v1.placeholder_with_default(np.int64([1, 2]), [None]), [9, 9]
        )
        found = v1.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
        tf.group(v1.global_variables_initializer(), name="begin")
    with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
        session.run(graph.get_operation_by_name("begin"))
        assert session.run(found, {indices: [[0, 0], [3, 0]]}).shape == (4, 4)
        with pytest.raises(tf.errors.InvalidArgumentError, match="do not come in order of their"):
            session.run(found, {indices: [[3, 0], [0, 0]]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="an id is in row -2; expected a"):
            session.run(found, {indices: [[-2, 0], [0, 0]]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="in row 2147483647; expected a"):
            session.run(found, {indices: [[3, 0], [2**31 - 1, 0]]})


def test_numbers_and_other_gathers_are_no_lookups() -> None:
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        vector = v1.get_variable("vector", [9])
        ids = v1.placeholder(tf.int64, [None])
        tf.gather(vector, ids)
        tf.gather(tf.sin(table), ids)
        tf.gather(table, ids, axis=1)
    plan = wb.plan_fusion(graph)
    assert not plan.of("lookup")
    assert [each.reason for each in plan.refusals] == [
        "it gathers along another axis than the first"
    ]

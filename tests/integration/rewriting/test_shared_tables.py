"""Tables that several stock lookups share: one op applies all of their gradients."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.fused_graphs import (
    OPTIMIZERS,
    each_optimizer,
    loss_of,
    ran,
    require_trains_alike,
)
from tests.builders.lookup_features import given_ids, made_tables

v1 = tf.compat.v1
# Rows that one lookup has twice, that two have, and that one alone has.
IDS = ([3, 3, 1, 7], [7, 3, 5], [2, 7, 7])


def shared(
    kind: str, optimizer: str, *, dense: int = 0, norm: float | None = None, id_dtype: Any = None
) -> tuple[tf.Graph, list[tf.Tensor], tf.Operation]:
    """Three lookups in one table and one in another; the first `dense` ones of dense ids.

    Args:
      norm: what the rows of the last of the three are shortened to.
      id_dtype: of the ids of the last of the three.
    """
    with tf.Graph().as_default() as graph:
        table, other = made_tables(kind, (8, 5), tf.float32, 3)
        types = (tf.int64, tf.int64, id_dtype or tf.int64)
        ids = [given_ids(each, dtype) for each, dtype in zip(IDS, types, strict=True)]
        found = []
        for number, (plain, sparse) in enumerate(ids):
            if number < dense:
                found.append(tf.nn.embedding_lookup(table, plain))
                continue
            most = norm if number == 2 else None
            lookup = v1.nn.safe_embedding_lookup_sparse
            found.append(lookup(table, sparse, combiner="mean", max_norm=most))
        found.append(v1.nn.safe_embedding_lookup_sparse(other, ids[0][1], combiner="sum"))
        train_op = OPTIMIZERS[optimizer]().minimize(loss_of(found))
        tf.group(v1.global_variables_initializer(), name="begin")
    return graph, found, train_op


def require_one_update(built: tuple[tf.Graph, list[tf.Tensor], tf.Operation], of: int) -> set[str]:
    """One op has the updates of so many lookups, and trains alike; the ops of a step."""
    graph, found, train_op = built
    plan = wb.plan_fusion(graph)
    assert [each.updates for each in plan.of("lookup")].count(True) == of, plan.describe()
    ops = ran(graph, train_op, wb.apply(plan))
    assert sum("GroupedApply" in op for op in ops) == 1
    require_trains_alike(graph, plan, found, train_op, rtol=1e-5, atol=1e-6)
    return set(ops)


@pytest.mark.parametrize("dense", [0, 2])
@each_optimizer("adagrad", "descent", "adam")
def test_are_updated_by_one_op(kind: str, optimizer: str, dense: int) -> None:
    ops = require_one_update(shared(kind, optimizer, dense=dense), of=4)
    assert not {"Unique", "UnsortedSegmentSum", "SparseSegmentMeanGradV2"} & ops


@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_of_dense_ids_are_updated_by_one_op(kind: str) -> None:
    """With Ftrl a safe lookup's update stays: id 0 is moved by the gradient of rows without ids."""
    require_one_update(shared(kind, "ftrl", dense=3), of=3)


@pytest.mark.parametrize("different", [{"norm": 0.5}, {"id_dtype": tf.int32}])
def test_are_updated_as_before_where_a_gradient_stays(different: dict[str, Any]) -> None:
    graph, found, train_op = shared("resource", "adagrad", **different)
    plan = wb.plan_fusion(graph)
    assert [each.updates for each in plan.of("lookup")].count(True) == 1, plan.describe()
    assert any(op.endswith("SparseApplyAdagrad") for op in ran(graph, train_op, wb.apply(plan)))
    require_trains_alike(graph, plan, found, train_op, rtol=1e-5, atol=1e-6)


def test_are_updated_as_before_where_another_op_has_a_gradient() -> None:
    """A gather along the other axis is no lookup, but its gradient is a part of the table's."""
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (8,), tf.float32, 3)
        found = [v1.nn.safe_embedding_lookup_sparse(table, given_ids(IDS[0], tf.int64)[1])]
        with tf.control_dependencies([found[0]]):
            found.append(tf.gather(tf.identity(table * 1.0), given_ids(IDS[1], tf.int64)[0]))
        train_op = OPTIMIZERS["adagrad"]().minimize(loss_of(found))
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert not any(each.updates for each in plan.of("lookup")), plan.describe()
    require_trains_alike(graph, plan, found, train_op, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("is_dense", [False, True])
@each_optimizer("adagrad", "descent")
def test_may_be_of_one_lookup_with_two_gradients(kind: str, optimizer: str, is_dense: bool) -> None:
    with tf.Graph().as_default() as graph:
        (table,) = made_tables(kind, (8,), tf.float32, 3)
        ids, sparse = given_ids(IDS[0], tf.int64)
        if is_dense:
            found = tf.nn.embedding_lookup(table, ids)
        else:
            found = v1.nn.safe_embedding_lookup_sparse(table, sparse)
        of_table = [
            tf.gradients(tf.reduce_sum(each), [table])[0] for each in (tf.sin(found), found * found)
        ]
        values = tf.concat([each.values for each in of_table], 0)
        rows = tf.concat([each.indices for each in of_table], 0)
        both = tf.IndexedSlices(values, rows, of_table[0].dense_shape)
        train_op = OPTIMIZERS[optimizer]().apply_gradients([(both, table)])
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert [each.updates for each in plan.of("lookup")] == [True], plan.describe()
    require_trains_alike(graph, plan, found, train_op, rtol=1e-5, atol=1e-6)


def test_of_several_steps_sums_before_it_squares() -> None:
    """Adagrad counts the square of what all lookups' gradients of a row are together."""
    graph, found, train_op = shared("ref", "adagrad")
    plan = wb.plan_fusion(graph)
    require_trains_alike(graph, plan, found, train_op, rtol=1e-5, atol=1e-6, steps=30)

"""What looks like ids that count from the end of a table, and stays as it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.id_columns import from_end, matrix

v1 = tf.compat.v1


def in_order(ids: tf.Tensor) -> tf.Tensor:
    with tf.control_dependencies([tf.no_op()]):
        return from_end(ids)


def in_a_branch(ids: tf.Tensor) -> tf.Tensor:
    v1.disable_control_flow_v2()
    try:
        return v1.cond(tf.size(ids) > 0, lambda: from_end(ids), lambda: ids)
    finally:
        v1.enable_control_flow_v2()


def on_a_gpu(ids: tf.Tensor) -> tf.Tensor:
    with tf.device("/device:GPU:0"):
        return from_end(ids)


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda ids: tf.where(ids < 1, ids + 7, ids), id="below 1"),
        pytest.param(lambda ids: tf.where(ids <= 0, ids + 7, ids), id="0 too"),
        pytest.param(lambda ids: tf.where(ids < 0, ids - 7, ids), id="less"),
        pytest.param(lambda ids: tf.where(ids < 0, ids + -7, ids), id="below the table"),
        pytest.param(lambda ids: tf.where(ids < 0, ids, ids + 7), id="turned"),
        pytest.param(lambda ids: tf.where(ids < 0, ids + ids, ids), id="twice"),
        pytest.param(lambda ids: tf.where(ids < 0, ids + 7, ids * 2), id="other ids"),
        pytest.param(lambda ids: tf.where(ids < 0, ids * 2 + 7, ids), id="of other ids"),
        pytest.param(lambda ids: tf.where(ids * 2 < 0, ids + 7, ids), id="by other ids"),
        pytest.param(lambda ids: tf.where(ids < [0], ids + 7, ids), id="of a vector"),
        pytest.param(lambda ids: tf.where(ids < 0, ids + np.array([7]), ids), id="to a vector"),
        pytest.param(lambda ids: from_end(tf.cast(ids, tf.int16)), id="int16"),
        pytest.param(lambda ids: from_end(tf.cast(ids, tf.float32)), id="numbers"),
        pytest.param(in_order, id="waits"),
        pytest.param(in_a_branch, id="branch"),
        pytest.param(on_a_gpu, id="gpu"),
    ],
)
def test_all_else_stays(build: Callable[[tf.Tensor], tf.Tensor]) -> None:
    with tf.Graph().as_default() as graph:
        build(matrix(tf.int32, None))
    assert not wb.plan_fusion(graph).count


def test_more_rows_than_ids_stay() -> None:
    with tf.Graph().as_default() as graph:
        ids = matrix(tf.int32, None)
        rows = tf.constant([2**31], tf.int64)[0]
        tf.where(ids < 0, ids + tf.cast(rows, tf.int32), ids)
    assert not wb.plan_fusion(graph).count


def test_rows_that_are_not_known_stay() -> None:
    with tf.Graph().as_default() as graph:
        ids, table = matrix(tf.int32, None), v1.placeholder(tf.float32, [None, 2])
        tf.where(ids < 0, ids + tf.shape(table)[0], ids)
    assert not wb.plan_fusion(graph).count

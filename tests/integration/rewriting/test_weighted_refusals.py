"""Stock lookups of ids that have weights which stay as they are, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.lookup_features import ROWS, made_tables
from tests.builders.weighted_lookups import FULL

v1 = tf.compat.v1


def refused(build: Callable[[tf.SparseTensor, tf.SparseTensor, Any], Any]) -> str:
    """Why the one lookup of a graph stays."""
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        ids = FULL.placed(FULL.ids, np.int64)
        build(ids, FULL.placed(FULL.weights, np.float32), table)
    plan = wb.plan_fusion(graph)
    assert not plan.of("lookup")
    (refusal,) = plan.refusals
    return refusal.reason


def of_halves(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    half = v1.get_variable("half", [ROWS, 4], tf.float16, use_resource=True)
    return v1.nn.embedding_lookup_sparse(half, ids, weights, combiner="mean")


def sharded(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    return v1.nn.safe_embedding_lookup_sparse([table, table], ids, weights)


def shortened(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    found = v1.nn.safe_embedding_lookup_sparse(table, ids, weights, max_norm=1.0)
    return tf.gradients(found, table)


def filled_with_twos(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    all_ids, _ = tf.sparse.fill_empty_rows(ids, 0)
    all_weights, _ = tf.sparse.fill_empty_rows(weights, 2.0)
    return v1.nn.embedding_lookup_sparse(table, all_ids, all_weights, combiner="sum")


def weights_of_others(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    all_ids, _ = tf.sparse.fill_empty_rows(ids, 0)
    all_weights, _ = tf.sparse.fill_empty_rows(FULL.placed(FULL.weights, np.float32), 1.0)
    return v1.nn.embedding_lookup_sparse(table, all_ids, all_weights, combiner="sum")


def by_a_weight_for_each_column(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    unique, places = tf.unique(ids.values)
    rows = tf.gather(tf.nn.embedding_lookup(table, unique), places)
    each = tf.reshape(tf.tile(weights.values, [4]), [-1, 4])
    return tf.math.segment_sum(rows * each, ids.indices[:, 0])


def twice_learned(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    factor = v1.placeholder_with_default(1.0, [])
    weights = weights.with_values(factor * weights.values)
    found = tf.reduce_sum(tf.sin(v1.nn.safe_embedding_lookup_sparse(table, ids, weights)))
    return [tf.gradients(each, [table, factor]) for each in (found, tf.square(found))]


def read_as_slices(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    found = v1.nn.safe_embedding_lookup_sparse(table, ids, weights)
    return tf.gradients(found, weights.values)


def with_rows_that_decay(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    factor = v1.placeholder_with_default(1.0, [])
    weights = weights.with_values(factor * weights.values)
    found = v1.nn.safe_embedding_lookup_sparse(table, ids, weights)
    change = table.assign_sub(0.1 * tf.ones_like(table) * tf.reduce_sum(found))
    return change, tf.gradients(found, [table, factor])


def of_roots_of_zeros(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    found = v1.nn.embedding_lookup_sparse(table, ids, weights, combiner="sqrtn")
    return tf.gradients(found, weights.values)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (of_halves, "its table is not float32, and its ids have weights"),
        (sharded, "its table has several shards, or a max_norm that is not TensorFlow's own"),
        (shortened, "its rows are shortened to max_norm, and their gradient stays"),
        (filled_with_twos, "a row without ids does not get one of weight 1"),
        (weights_of_others, "its weights are dropped in a way that is not TensorFlow's own"),
        (by_a_weight_for_each_column, "its weights are not known to be one for each id"),
        (twice_learned, "its weights have a gradient, and it has several"),
        (read_as_slices, "the gradient of its weights is not the one that TensorFlow makes of a"),
        (with_rows_that_decay, "its weights have a gradient, and other gradients change its table"),
        (of_roots_of_zeros, "the gradient of its weights is no number where those of a row are 0"),
    ],
)
def test_says_why_a_lookup_stays(build: Any, reason: str) -> None:
    assert reason in refused(build)

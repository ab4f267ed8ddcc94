"""Stock feature columns, what they read, and what a graph of them gives."""

from __future__ import annotations

import contextlib

import numpy as np
import tensorflow as tf

from workbench.compat.contrib.feature_column import sequence_input_layer

v1 = tf.compat.v1
stock = v1.feature_column
# The first op of each version's lookup; see `lookups`.
FUSED = {"v1": "WorkbenchPreLookUp", "v2": "WorkbenchPruneInvalidAndFillEmptyRows"}
VERSIONS = sorted(FUSED)


def sparse(rows, dtype=tf.int64, shape=None):
    """Rows of values, left-aligned, as a SparseTensor."""
    at = [[r, c] for r, row in enumerate(rows) for c in range(len(row))]
    flat = [value for row in rows for value in row]
    width = max(map(len, rows), default=0)
    return tf.SparseTensor(
        np.reshape(np.array(at, np.int64), [-1, 2]),
        tf.constant(flat, dtype),
        shape or [len(rows), width],
    )


def features():
    words = [["a", "b", "a"], [], ["c"], ["b", "b"]]
    return {
        "id": sparse([[1, 2, 1], [], [3], [0, 0]]),
        "other": sparse([[0], [3, 2], [], [1, 1]]),
        "word": sparse(words, tf.string),
        "weight": sparse([[1.0, -2.0, 0.5], [], [3.0], [2.0, 0.0]], tf.float32),
        "age": tf.constant([[1.5], [20.0], [70.0], [33.0]]),
        "dense": tf.constant([[1], [-1], [2], [0]], tf.int64),
    }


def identity(key="id"):
    return stock.categorical_column_with_identity(key, 5)


def vocabulary():
    # "c" is out of the vocabulary: id -1, which the lookup drops.
    return stock.categorical_column_with_vocabulary_list("word", ["a", "b"])


def weighted():
    return stock.weighted_categorical_column(identity(), "weight")


CATEGORICAL = {
    "identity": identity,
    "dense": lambda: identity("dense"),
    "hash": lambda: stock.categorical_column_with_hash_bucket("word", 7),
    "vocabulary": vocabulary,
    "weighted": weighted,
    "crossed": lambda: stock.crossed_column(["word", vocabulary()], 11),
    "bucketized": lambda: stock.bucketized_column(stock.numeric_column("age"), [18, 40, 65]),
}


def initializer():
    return v1.random_uniform_initializer(-1, 1, seed=7)


def result(build, *, use_resource=True, partitioner=None, context=None):
    """Runs what `build` makes in a graph of its own.

    Returns:
      variables (names and shapes), output, gradient of each variable, types of the graph's ops.
    """
    with tf.Graph().as_default() as graph:
        with (
            v1.variable_scope("model", use_resource=use_resource, partitioner=partitioner),
            context or contextlib.nullcontext(),
        ):
            output = build()
        variables = v1.trainable_variables()
        slope = tf.cos(tf.cast(tf.range(tf.size(output)), tf.float32))
        loss = tf.reduce_sum(output * tf.reshape(slope, tf.shape(output)))
        gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, variables)]
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            values = session.run((output, gradients))
        shapes = [(each.name, each.shape.as_list()) for each in variables]
        return shapes, *values, [op.type for op in graph.get_operations()]


def lookups(types):
    """Which kinds of lookup these types of ops are of."""
    return {version for version, op in FUSED.items() if op in types} | (
        {"stock"} & {"stock" for op in types if op.startswith("SparseSegment")}
    )


def same(fused, plain, version):
    assert fused[0] == plain[0]
    np.testing.assert_allclose(fused[1], plain[1], rtol=1e-5, atol=1e-6)
    for one, other in zip(fused[2], plain[2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert lookups(fused[3]) == {version}
    assert not any(op.startswith("Workbench") for op in plain[3])


def sequence_layer(columns):
    return sequence_input_layer(features(), columns)[0]


def graph_of(build):
    with tf.Graph().as_default() as graph:
        build()
        return graph.as_graph_def()


def layer(column):
    return lambda: stock.input_layer(features(), [column])

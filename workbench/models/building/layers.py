"""Layers of the models' graphs: dense, batch normalization, lookup; weights drawn from a seed.

Their weights are variables of the current variable scope, which `model_scope` opens.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from workbench.ops.lookup.fusion import safe_embedding_lookup_sparse

v1 = tf.compat.v1


def model_scope(name: str, seed: int) -> Any:
    """The variable scope of a whole model: entered again, it reads the same variables."""
    # A resource variable would be copied whole at every step, because the safe lookup reads it
    # while the sparse update writes it.
    return v1.variable_scope(
        name, use_resource=False, initializer=seeded(seed), reuse=v1.AUTO_REUSE
    )


def seeded(seed: int) -> Callable[..., tf.Tensor]:
    """Glorot-normal weights that depend on the variable's name and the seed, on nothing else."""

    def initial(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> tf.Tensor:
        del partition_info
        name = v1.get_default_graph().get_name_scope()
        drawn = (zlib.crc32(name.encode()), seed)
        fan = sum(int(size) for size in shape)
        return tf.random.stateless_normal(shape, drawn, 0.0, (2.0 / fan) ** 0.5, dtype)

    return initial


def dense(inputs: tf.Tensor, units: int, name: str, activation: Any = tf.nn.relu) -> tf.Tensor:
    """A fully connected layer over the last axis, float32 [..., units]."""
    width = inputs.shape[-1]
    with v1.variable_scope(name):
        kernel = v1.get_variable("kernel", [width, units])
        bias = v1.get_variable("bias", [units], initializer=v1.zeros_initializer())
        if inputs.shape.rank == 2:
            outputs = tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
        else:
            flat = tf.matmul(tf.reshape(inputs, [-1, width]), kernel)
            shape = tf.concat([tf.shape(inputs)[:-1], [units]], axis=0)
            outputs = tf.reshape(tf.nn.bias_add(flat, bias), shape)
            outputs.set_shape([*inputs.shape[:-1], units])
        return outputs if activation is None else activation(outputs)


def normal(inputs: tf.Tensor, name: str) -> tf.Tensor:
    """Batch normalization of [batch, width] by the batch's own moments, as in training.

    There are no moving moments: a batch to score is normalized by its own as well.
    """
    with v1.variable_scope(f"{name}_norm"):
        width = [inputs.shape[1]]
        gamma = v1.get_variable("gamma", width, initializer=v1.ones_initializer())
        beta = v1.get_variable("beta", width, initializer=v1.zeros_initializer())
        mean, variance = tf.nn.moments(inputs, axes=[0])
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-3)


def looked_up(
    values: tf.Tensor | tf.SparseTensor,
    name: str,
    *,
    buckets: int,
    dimension: int,
    combiner: str = "mean",
    shared_name: str | None = None,
) -> tf.Tensor:
    """The vectors of hashed text, from the table of `name`; zeros where there is no text.

    Args:
      values: text. Of a dense tensor each field is one id, and an empty field is none; the ids of
        a row of a SparseTensor [..., ids] are combined.
      name: of the column; its table is called `{name}_table`.
      buckets, dimension: rows of the table, and the width of one.
      combiner: "mean", "sum" or "sqrtn".
      shared_name: of the column whose table this one shares; None has a table of its own.

    Returns:
      float32 [..., dimension] for dense values of shape [...] and sparse ones of [..., ids].
    """
    with v1.name_scope(name):
        if isinstance(values, tf.SparseTensor):
            texts, positions, shape = values.values, values.indices, values.dense_shape
            rank = values.shape.rank - 1
        else:
            present = tf.where(tf.not_equal(values, ""))
            texts, rank = tf.gather_nd(values, present), values.shape.rank
            # One id at most for each field.
            positions = tf.concat([present, tf.zeros_like(present[:, :1])], axis=1)
            shape = tf.concat([tf.shape(values, out_type=tf.int64), [1]], axis=0)
        ids = tf.strings.to_hash_bucket_fast(texts, buckets)
        table = v1.get_variable(f"{shared_name or name}_table", [buckets, dimension])
        vectors = safe_embedding_lookup_sparse(
            table, tf.SparseTensor(positions, ids, shape), combiner=combiner
        )
        return tf.ensure_shape(vectors, [*[None] * rank, dimension])

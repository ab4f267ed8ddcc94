"""EmbeddingVariables in stock ops: a hash table says which row of a matrix a key has."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.exporting.lowering.call import Call, KeyedTable


def read_keys(table: tf.Tensor, matrix: tf.Tensor, keys: tf.Tensor, of: KeyedTable) -> tf.Tensor:
    """The rows of keys, of float32; a key without one reads a default row.

    Args:
      table: handle of a hash table from int64 keys to int64 rows.
      matrix: handle of a variable, the rows of keys and then the default rows.
      keys: int64 of any shape.
      of: sizes of the matrix.
    """
    place = tf.raw_ops.LookupTableFindV2(
        table_handle=table, keys=keys, default_value=tf.constant(-1, tf.int64)
    )
    default = of.rows + tf.math.floormod(keys, tf.constant(of.defaults, tf.int64))
    place = tf.where(place >= 0, place, default)
    return tf.raw_ops.ResourceGather(resource=matrix, indices=place, dtype=tf.float32)


def embedding_gather(call: Call) -> list[Any]:
    """WorkbenchEmbeddingGather, which reads alone."""
    (of,) = call.keyed
    (table,), (matrix,) = call["handle"], call["matrix"]
    return [read_keys(table, matrix, call["keys"], of)]

"""Graphs with ids that count from the end of a table, as Keras's embeddings have them."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
# Of the ids' matrices.
COLUMNS = 5


def from_end(ids: tf.Tensor, rows: int = 7) -> tf.Tensor:
    """Ids as Keras's `take` has them."""
    return tf.where(ids < 0, ids + tf.cast(tf.shape(tf.zeros([rows, 2]))[0], ids.dtype), ids)


def matrix(dtype: tf.DType = tf.int32, *shape: int | None) -> tf.Tensor:
    return v1.placeholder(dtype, shape or [None, COLUMNS])


def drawn(dtype: tf.DType, rows: int, seed: int = 0) -> np.ndarray:
    """Ids within a table of 7 rows and outside, and the ends of their type."""
    random = np.random.default_rng(seed)
    ids = random.integers(-9, 9, (rows, COLUMNS)).astype(dtype.as_numpy_dtype)
    ids.flat[:2] = [dtype.min, dtype.max][: ids.size]
    return ids

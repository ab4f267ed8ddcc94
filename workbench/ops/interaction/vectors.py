"""Vectors of examples, as users hand them to an op that lets them interact."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from workbench.errors import UnsupportedError


def stacked(vectors: tf.Tensor | Sequence[tf.Tensor], *, op: str) -> tf.Tensor:
    """float32 [examples, vectors, dim], of that or of [examples, dim] of each vector.

    Args:
      vectors: either.
      op: what is asked for, in words.

    Raises:
      UnsupportedError: another dtype.
    """
    listed = isinstance(vectors, (list, tuple))
    x = tf.stack(vectors, axis=1) if listed else tf.convert_to_tensor(vectors)
    if x.dtype != tf.float32:
        raise UnsupportedError(f"vectors are of {x.dtype.name}; {op} is float32")
    return x

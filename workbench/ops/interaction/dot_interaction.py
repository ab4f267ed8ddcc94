"""Dot interaction: each pair of an example's vectors multiplied, in one op; one more goes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops

from workbench import _native
from workbench.errors import OptionError
from workbench.ops.interaction.vectors import stacked


def dot_interaction(
    vectors: tf.Tensor | Sequence[tf.Tensor],
    *,
    self_interaction: bool = False,
    name: str | None = None,
) -> tf.Tensor:
    """The dot products of all pairs of each example's vectors, as DLRM's interaction has them.

    The matrix of all products, of which half is not wanted, is never made.

    Args:
      vectors: float32 [examples, vectors, dim], or of each vector [examples, dim]; how many vectors
        there are has to be known.
      self_interaction: with the products of each vector with itself.
      name: of the op.

    Returns:
      float32 [examples, vectors (vectors - 1) / 2], with the products with themselves
      [examples, vectors (vectors + 1) / 2]: by the later vector of a pair, then by the other one.
      It has gradients.

    Raises:
      OptionError: vectors of another rank, or nobody knows how many.
      UnsupportedError: of another dtype.
    """
    x = stacked(vectors, op="a dot interaction")
    count = x.shape[1] if x.shape.rank == 3 else None
    if not count:
        raise OptionError(
            f"vectors have shape {x.shape}; expected [examples, vectors, dim] with a known "
            "number of vectors, at least 1"
        )
    pairs = [
        later * count + other for later in range(count) for other in range(later + self_interaction)
    ]
    return _native.library().workbench_dot_interaction(x, vectors=count, pairs=pairs, name=name)


@ops.RegisterGradient("WorkbenchDotInteraction")
def _dot_interaction_grad(op: tf.Operation, gradient: tf.Tensor) -> Any:
    return _native.library().workbench_dot_interaction_grad(
        gradient, op.inputs[0], vectors=op.get_attr("vectors"), pairs=op.get_attr("pairs")
    )

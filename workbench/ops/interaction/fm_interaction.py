"""Products of all pairs of an example's vectors, summed: what a factorization machine adds."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from tensorflow.python.framework import ops

from workbench import _native
from workbench.errors import OptionError
from workbench.ops.interaction.vectors import stacked


def fm_interaction(
    vectors: tf.Tensor | Sequence[tf.Tensor], *, keepdims: bool = False, name: str | None = None
) -> tf.Tensor:
    """The sum of the products of all pairs of each example's vectors, column by column.

    It is the second-order term of a factorization machine (Rendle, 2010), as DeepFM has it, before
    its columns are summed: half of the square of the vectors' sum, less the sum of their squares.

    Args:
      vectors: float32 [examples, vectors, dim], or of each vector [examples, dim].
      keepdims: whether the axis of the vectors stays.
      name: of the op.

    Returns:
      float32 [examples, dim], with keepdims [examples, 1, dim]. It has gradients.

    Raises:
      OptionError: vectors of another rank.
      UnsupportedError: of another dtype.
    """
    x = stacked(vectors, op="an FM interaction")
    if x.shape.rank not in (None, 3):
        raise OptionError(f"vectors have shape {x.shape}; expected [examples, vectors, dim]")
    twice = _native.library().workbench_fm_interaction(x, keep_dims=keepdims, name=name)
    return 0.5 * twice


@ops.RegisterGradient("WorkbenchFmInteraction")
def _fm_interaction_grad(op: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    return _native.library().workbench_fm_interaction_grad(gradient, op.inputs[0])

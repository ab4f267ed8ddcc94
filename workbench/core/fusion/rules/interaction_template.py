"""What TensorFlow builds for an interaction of vectors, so that it is found in other graphs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.core.fusion.pattern.template import Template

KIND = "interaction"
# Of dot interactions, and of those of a factorization machine.
DOT, FM = "dot", "FM"


@dataclasses.dataclass(frozen=True, kw_only=True)
class InteractionTemplate(Template):
    """An interaction of an example's vectors.

    Attributes:
      of: DOT or FM.
      attributes: of the op that does it; `gradient_attributes`, of its gradient's.
    """

    of: str
    attributes: Mapping[str, Any]
    gradient_attributes: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """One of it, in words."""
        return f"{self.of} {KIND}"

    @property
    def any_number(self) -> frozenset[str]:
        """The shape that a reshape's constant asks for, since what it gives is known."""
        reshapes = self.of == DOT
        return frozenset({self.graph.same(self.graph.read_for(self.y, 0, 1))} if reshapes else ())


@functools.lru_cache(maxsize=64)
def dot_template(
    rows: int | None, vectors: int, dim: int, dtype: str, pairs: bytes
) -> InteractionTemplate:
    """Some dot products of float32 vectors whose static shape is [rows, vectors, dim].

    Args:
      dtype, pairs: an array of places in a row of all dot products.
    """
    places = np.frombuffer(pairs, dtype)

    def interact(x: tf.Tensor) -> tf.Tensor:
        products = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, vectors * vectors])
        return tf.gather(products, places, axis=1)

    attributes = {"vectors": vectors, "pairs": places.tolist()}
    return InteractionTemplate.built(
        interact,
        [[rows, vectors, dim]],
        of=DOT,
        attributes=attributes,
        gradient_attributes=attributes,
    )


SQUARES: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "Square": tf.square,
    "Pow": lambda x: tf.pow(x, 2),
    "Mul": lambda x: x * x,
}


@functools.lru_cache(maxsize=64)
def fm_template(
    rows: int | None, vectors: int, dim: int, square: str, axis: bytes, flat: bool, keep_dims: bool
) -> InteractionTemplate:
    """The square of the sum of vectors, less the sum of their squares; shapes as above.

    Args:
      square: how they are squared, of SQUARES.
      axis: int32, that of the vectors.
      flat: whether it is a number, not a list of one.
      keep_dims: whether it stays.
    """
    (number,) = np.frombuffer(axis, np.int32).tolist()
    over, squared = number if flat else [number], SQUARES[square]

    def interact(x: tf.Tensor) -> tf.Tensor:
        total = tf.reduce_sum(x, over, keepdims=keep_dims)
        return squared(total) - tf.reduce_sum(squared(x), over, keepdims=keep_dims)

    return InteractionTemplate.built(
        interact,
        [[rows, vectors, dim]],
        of=FM,
        attributes={"keep_dims": keep_dims},
        gradient_attributes={},
    )

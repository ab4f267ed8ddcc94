"""How the weights of a model change in a step: its tables by Adagrad, its other weights by Adam.

Adam alone, as DeepRec's scripts have it by default for all, would move every row of every table in
every step, because TensorFlow's decays the moments of rows that the batch does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import tensorflow as tf

from workbench.experiments.cluster.synchronous import synchronous
from workbench.ops.embedding_variable.optimizers import AdagradOptimizer, AdamOptimizer

v1 = tf.compat.v1

# A gradient and its weight.
Pair: TypeAlias = tuple[Any, Any]


class Rates(Protocol):
    """Options of a run that say how fast it learns.

    Attributes:
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains what has a sparse gradient.
    """

    @property
    def learning_rate(self) -> float: ...

    @property
    def table_learning_rate(self) -> float: ...


def minimize(loss: tf.Tensor, rates: Rates, *, clip_norm: float | None = None) -> Any:
    """One step of training; counts the global step.

    Args:
      loss: scalar.
      rates: of both optimizers.
      clip_norm: longest a gradient of Adam's weights may be, each by itself; None clips none. Rows
        of tables are not clipped: their gradient has a row for each occurrence of an id in plain
        lookups and one for all in fused ones, so that its length depends on how it is looked up.

    Returns:
      The op to run.
    """
    adam = AdamOptimizer(rates.learning_rate)
    adagrad = AdagradOptimizer(rates.table_learning_rate)
    found = [pair for pair in adam.compute_gradients(loss) if pair[0] is not None]
    tables = [pair for pair in found if isinstance(pair[0], tf.IndexedSlices)]
    others = [pair for pair in found if not isinstance(pair[0], tf.IndexedSlices)]
    if clip_norm is not None:
        others = [(tf.clip_by_norm(gradient, clip_norm), weight) for gradient, weight in others]
    return applied([(adagrad, tables), (adam, others)])


def applied(parts: Sequence[tuple[Any, Sequence[Pair]]]) -> Any:
    """One step of several optimizers, each of some of the weights; counts the global step.

    Args:
      parts: each optimizer with its pairs of gradient and weight.

    Returns:
      The op to run.
    """
    several = _Several([(optimizer, pairs) for optimizer, pairs in parts])
    pairs = [pair for _, some in parts for pair in some]
    step = v1.train.get_or_create_global_step()
    return synchronous(several).apply_gradients(pairs, global_step=step)


class _Several:
    """Optimizers that apply gradients as one does; the last one counts the step."""

    def __init__(self, parts: Sequence[tuple[Any, Sequence[Pair]]]) -> None:
        self._parts = [(each, {id(weight) for _, weight in pairs}) for each, pairs in parts]

    def apply_gradients(self, pairs: Iterable[Pair], global_step: Any) -> Any:
        """As of an optimizer of `tf.compat.v1.train`."""
        given = list(pairs)
        *others, last = [
            (optimizer, [pair for pair in given if id(pair[1]) in weights])
            for optimizer, weights in self._parts
        ]
        return tf.group(
            *(optimizer.apply_gradients(some) for optimizer, some in others),
            last[0].apply_gradients(last[1], global_step=global_step),
        )

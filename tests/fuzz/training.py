"""The optimizers of a Program: each trains its share of the variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tests.fuzz.program import Program
from tests.fuzz.world import World

v1 = tf.compat.v1
OPTIMIZERS: Mapping[str, Callable[[], Any]] = {
    "descent": lambda: v1.train.GradientDescentOptimizer(0.1),
    "adagrad": lambda: v1.train.AdagradOptimizer(0.1),
    "adam": lambda: v1.train.AdamOptimizer(0.01),
    "ftrl": lambda: v1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "momentum": lambda: v1.train.MomentumOptimizer(0.05, 0.9),
    "keras descent": lambda: _Keras(tf.keras.optimizers.SGD(0.1)),
    "keras adagrad": lambda: _Keras(tf.keras.optimizers.Adagrad(0.1)),
    "keras adam": lambda: _Keras(tf.keras.optimizers.Adam(0.01)),
    "keras momentum": lambda: _Keras(tf.keras.optimizers.SGD(0.05, momentum=0.9)),
}
Pairs = list[tuple[Any, Any]]


class _Keras:
    """An optimizer of Keras's, to be called like those of `tf.compat.v1.train`."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    def compute_gradients(self, loss: tf.Tensor, share: Sequence[Any]) -> Pairs:
        """Gradients and variables; makes the slots."""
        with tf.init_scope():
            self._optimizer.build(share)
        return list(zip(v1.gradients(loss, share), share, strict=True))

    def apply_gradients(self, pairs: Pairs) -> Any:
        """Changes the variables; Keras wants a gradient for each that it was built for."""
        self._optimizer.apply_gradients(pairs)
        return tf.no_op()

    def variables(self) -> list[Any]:
        """The slots."""
        return list(self._optimizer.variables)


def made_optimizers(program: Program) -> list[Any]:
    """The optimizers of a program."""
    return [OPTIMIZERS[name]() for name in program.optimizers]


def train_op(world: World, trained: Sequence[Any], optimizers: Sequence[Any]) -> Any:
    """Builds the op that trains, and all effects that go with it.

    Args:
      world: with its losses.
      trained: all trained variables, tables first.
      optimizers: each trains a share of them.
    """
    program = world.program
    tables = len(program.tables)
    shares = [trained] if len(optimizers) == 1 else [trained[:tables], trained[tables:]]
    own = program.losses == "own" and len(optimizers) > 1 and len(world.losses) > 1
    together = tf.add_n(world.losses) if len(world.losses) > 1 else world.losses[0]
    losses = world.losses if own else [together]
    pairs = [
        _gradients(optimizer, losses[number % len(losses)], share, program.clipped)
        for number, (optimizer, share) in enumerate(zip(optimizers, shares, strict=True))
    ]
    waits = [*world.effects, *(world.metrics if program.ordered else [])]
    if own:
        # No loss is computed of what the other one has trained.
        waits += [*losses, *(gradient for own_pairs in pairs for gradient, _ in own_pairs)]
    with tf.control_dependencies(_operations(waits)):
        updates = [
            optimizer.apply_gradients(own_pairs)
            for optimizer, own_pairs in zip(optimizers, pairs, strict=True)
            if own_pairs
        ]
    return tf.group(*updates, *world.effects, name="train")


def _gradients(optimizer: Any, loss: tf.Tensor, share: Sequence[Any], clipped: bool) -> Pairs:
    if not share:
        return []
    found = [pair for pair in optimizer.compute_gradients(loss, list(share)) if pair[0] is not None]
    return (
        [(tf.clip_by_norm(gradient, 1.0), each) for gradient, each in found] if clipped else found
    )


def _operations(waits: Sequence[Any]) -> list[Any]:
    """Operations to wait for; of slices those of their values."""
    return [each.values if isinstance(each, tf.IndexedSlices) else each for each in waits]

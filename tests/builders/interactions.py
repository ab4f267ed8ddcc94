"""Graphs and functions whose vectors interact, and whether they train as they did once fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

import workbench as wb
from tests.builders.batch_norms import layer, matrix
from tests.builders.fused_graphs import require_trains_alike
from tests.builders.fused_parts import interactions_of


def vectors_of(rows: int, count: int, dim: int, *, known: bool = False) -> tf.Tensor:
    """Vectors that depend on a variable each."""
    x = matrix(rows, 6, known=known)
    return tf.stack([tf.tanh(layer(x, dim, f"l{i}")) for i in range(count)], axis=1)


def require_alike(graph: tf.Graph, fetches: Any, train_op: Any, *kinds: str, steps: int = 3) -> Any:
    """Trains with and without the plan, which has interactions of these kinds; returns it."""
    plan = wb.plan_fusion(graph)
    assert [each.kind for each in interactions_of(plan)] == [
        f"{kind} interaction" for kind in kinds
    ], plan.describe()
    require_trains_alike(graph, plan, fetches, train_op, rtol=1e-4, atol=1e-5, steps=steps)
    return plan


def require_alike_in_a_function(interact: Callable[[tf.Tensor], tf.Tensor]) -> None:
    """An interaction of four vectors in a function, with its gradient by a tape."""
    with context.eager_mode():
        weights = [tf.Variable(np.random.default_rng(i).normal(size=[6, 8])) for i in range(4)]

        @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float64)])
        def step(x: tf.Tensor) -> Any:
            with tf.GradientTape() as tape:
                vectors = tf.stack([tf.cast(x @ each, tf.float32) for each in weights], axis=1)
                loss = tf.reduce_sum(tf.sin(interact(vectors)))
            return loss, tape.gradient(loss, weights)

        stock = step.get_concrete_function()
        plan = wb.plan_fusion(stock)
        assert [each.gradients for each in interactions_of(plan)] == [1], plan.describe()
        x = tf.constant(np.random.default_rng(9).normal(size=[11, 6]))
        fused = wb.fuse_function(stock)(x)
        for one, other in zip(tf.nest.flatten(fused), tf.nest.flatten(stock(x)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

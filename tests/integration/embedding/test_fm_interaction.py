"""workbench.ops.fm_interaction: what stock sums and squares give, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.python.eager import context

from tests.builders.examples import few
from workbench.errors import OptionError, UnsupportedError
from workbench.ops import fm_interaction


@few(20, 300)
@given(
    rows=st.integers(0, 9),
    count=st.integers(1, 20),
    dim=st.integers(1, 40),
    keepdims=st.booleans(),
    listed=st.booleans(),
    compiled=st.booleans(),
)
def test_sums_and_gradients_are_stock_ones(
    rows: int, count: int, dim: int, keepdims: bool, listed: bool, compiled: bool
) -> None:
    def ours(x: tf.Tensor) -> tf.Tensor:
        vectors = tf.unstack(x, axis=1) if listed else x
        return fm_interaction(vectors, keepdims=keepdims)

    def stock(x: tf.Tensor) -> tf.Tensor:
        total = tf.reduce_sum(x, 1, keepdims=keepdims)
        return 0.5 * (total**2 - tf.reduce_sum(x**2, 1, keepdims=keepdims))

    with context.eager_mode():
        drawn = np.random.default_rng(rows).normal(size=[rows, count, dim]).astype(np.float32)
        x, found = tf.constant(drawn), []
        for each in (tf.function(ours) if compiled else ours, stock):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = each(x)
                # Of large numbers a sine makes much of what is rounded otherwise.
                loss = tf.reduce_sum(tf.sin(y / count))
            found.append([y, tape.gradient(loss, x)])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_two_vectors_are_multiplied() -> None:
    with context.eager_mode():
        found = fm_interaction(tf.constant([[[1.0, 2.0], [3.0, 5.0]]]))
        assert found.numpy().tolist() == [[3.0, 10.0]]


def test_how_many_vectors_need_not_be_known() -> None:
    x = tf.compat.v1.placeholder(tf.float32, [None, None, 4])
    assert fm_interaction(x).shape.as_list() == [None, 4]


@pytest.mark.parametrize("shape", [[2, 3], [2, 3, 4, 5]])
def test_other_shapes_are_named(shape: list[int]) -> None:
    with context.eager_mode(), pytest.raises(OptionError, match="expected .examples, vectors, dim"):
        fm_interaction(tf.zeros(shape))


def test_other_dtypes_are_named() -> None:
    with context.eager_mode(), pytest.raises(UnsupportedError, match="float64"):
        fm_interaction(tf.zeros([2, 3, 4], tf.float64))

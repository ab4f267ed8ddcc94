"""workbench.ops.dot_interaction: what TensorFlow's products give, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.python.eager import context

from tests.builders.examples import few
from workbench.errors import OptionError, UnsupportedError
from workbench.ops import dot_interaction


def stock(x: tf.Tensor, *, itself: bool) -> tf.Tensor:
    count = x.shape[1]
    places = [r * count + c for r in range(count) for c in range(r + itself)]
    flat = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, count * count])
    return tf.gather(flat, tf.constant(places, tf.int32), axis=1)


@few(20, 300)
@given(
    rows=st.integers(0, 9),
    # TensorFlow has no gradient of no pairs.
    count=st.integers(2, 20),
    dim=st.integers(1, 40),
    itself=st.booleans(),
    listed=st.booleans(),
    compiled=st.booleans(),
)
def test_products_and_gradients_are_stock_ones(
    rows: int, count: int, dim: int, itself: bool, listed: bool, compiled: bool
) -> None:
    def ours(x: tf.Tensor) -> tf.Tensor:
        vectors = tf.unstack(x, axis=1) if listed else x
        return dot_interaction(vectors, self_interaction=itself)

    with context.eager_mode():
        drawn = np.random.default_rng(rows).normal(size=[rows, count, dim]).astype(np.float32)
        x, found = tf.constant(drawn), []
        for each in (tf.function(ours) if compiled else ours, lambda x: stock(x, itself=itself)):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = each(x)
                loss = tf.reduce_sum(tf.sin(y))
            found.append([y, tape.gradient(loss, x)])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [[2, 3], [2, 0, 4], [2, 3, 4, 5]])
def test_other_shapes_are_named(shape: list[int]) -> None:
    with context.eager_mode(), pytest.raises(OptionError, match="expected .examples, vectors, dim"):
        dot_interaction(tf.zeros(shape))


def test_an_unknown_number_of_vectors_is_named() -> None:
    x = tf.compat.v1.placeholder(tf.float32, [None, None, 4])
    with pytest.raises(OptionError, match="with a known number of vectors"):
        dot_interaction(x)


def test_one_vector_has_no_pair_but_itself() -> None:
    with context.eager_mode():
        assert dot_interaction(tf.ones([2, 1, 3])).shape == [2, 0]
        assert (
            dot_interaction(tf.ones([2, 1, 3]), self_interaction=True).numpy().tolist() == [[3]] * 2
        )


def test_numbers_of_numpy_are_one_tensor() -> None:
    with context.eager_mode():
        drawn = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        np.testing.assert_array_equal(dot_interaction(drawn), dot_interaction(tf.constant(drawn)))


def test_other_dtypes_are_named() -> None:
    with context.eager_mode(), pytest.raises(UnsupportedError, match="float64"):
        dot_interaction(tf.zeros([2, 3, 4], tf.float64))

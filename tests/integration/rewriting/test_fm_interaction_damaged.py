"""The ops of factorization machines are handed anything: an error or a result, never a crash."""

from __future__ import annotations

import os

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.python.eager import context

from workbench import _native

# More of them under AddressSanitizer: make native-fuzz.
FUZZED = settings(max_examples=int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "100")), deadline=None)
SHAPES = st.lists(st.sampled_from((0, 1, 2, 3, 5, 8, 17)), max_size=4)


@FUZZED
@given(x_shape=SHAPES, given_shape=SHAPES, keeps=st.booleans(), likely=st.booleans())
def test_anything(x_shape: list[int], given_shape: list[int], keeps: bool, likely: bool) -> None:
    fits = len(x_shape) == 3
    if likely and fits:
        given_shape = [x_shape[0], *([1] * keeps), x_shape[2]]
    random = np.random.default_rng(len(given_shape))
    x, given_ = (random.normal(size=each).astype(np.float32) for each in (x_shape, given_shape))
    library = _native.library()
    with context.eager_mode():
        try:
            y = library.workbench_fm_interaction(x, keep_dims=keeps).numpy()
        except tf.errors.InvalidArgumentError:
            assert not fits
        else:
            expected = x.sum(1, keepdims=keeps) ** 2 - (x**2).sum(1, keepdims=keeps)
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
        try:
            made = library.workbench_fm_interaction_grad(given_, x).numpy()
        except tf.errors.InvalidArgumentError:
            pass
        else:
            assert fits and made.shape == x.shape
            flat = given_.reshape(x_shape[0], 1, x_shape[2])
            expected = 2 * flat * (x.sum(1, keepdims=True) - x)
            np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("x_shape", "given_shape", "said"),
    [
        ([2, 5], [2, 5], "'x' has shape"),
        ([2, 3, 5], [2, 4], "'gradient' has shape"),
        ([2, 3, 5], [2, 3, 5], "'gradient' has shape"),
    ],
)
def test_says_what_does_not_fit(x_shape: list[int], given_shape: list[int], said: str) -> None:
    with context.eager_mode(), pytest.raises(tf.errors.InvalidArgumentError, match=said):
        _native.library().workbench_fm_interaction_grad(
            np.zeros(given_shape, np.float32), np.zeros(x_shape, np.float32)
        )

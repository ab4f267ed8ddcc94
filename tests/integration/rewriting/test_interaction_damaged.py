"""The ops of dot interactions are handed anything: an error or a result, never a crash."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.python.eager import context

from workbench import _native

# More of them under AddressSanitizer: make native-fuzz.
FUZZED = settings(max_examples=int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "100")), deadline=None)
SIZES = (0, 1, 2, 3, 4, 5, 16, 17, 33)


def multiplied(x: Any, vectors: int, pairs: list[int]) -> Any:
    return _native.library().workbench_dot_interaction(x, vectors=vectors, pairs=pairs)


def gradient_of(given_: Any, x: Any, vectors: int, pairs: list[int]) -> Any:
    make = _native.library().workbench_dot_interaction_grad
    return make(given_, x, vectors=vectors, pairs=pairs)


@FUZZED
@given(
    x_shape=st.lists(st.sampled_from(SIZES), min_size=2, max_size=4),
    vectors=st.integers(-1, 20),
    pairs=st.lists(st.integers(-3, 450), max_size=12),
    given_shape=st.lists(st.sampled_from(SIZES), max_size=3),
    likely=st.booleans(),
)
def test_anything(
    x_shape: list[int], vectors: int, pairs: list[int], given_shape: list[int], likely: bool
) -> None:
    if likely and len(x_shape) == 3 and x_shape[1]:
        vectors = x_shape[1]
        pairs = [abs(each) % vectors**2 for each in pairs]
        given_shape = [x_shape[0], len(pairs)]
    random = np.random.default_rng(len(pairs))
    x, given_ = (random.normal(size=each).astype(np.float32) for each in (x_shape, given_shape))
    fits = len(x_shape) == 3 and x_shape[1] == vectors and vectors >= 1
    fits = fits and all(0 <= each < vectors**2 for each in pairs)
    with context.eager_mode():
        try:
            y = multiplied(x, vectors, pairs).numpy()
        except tf.errors.InvalidArgumentError:
            assert not fits
        else:
            assert fits
            products = (x @ x.transpose(0, 2, 1)).reshape(len(x), vectors**2)
            np.testing.assert_allclose(y, products[:, pairs], rtol=1e-4, atol=1e-4)
        try:
            made = gradient_of(given_, x, vectors, pairs).numpy()
        except tf.errors.InvalidArgumentError:
            assert not (fits and given_shape == [x_shape[0], len(pairs)])
        else:
            assert fits and made.shape == x.shape


@pytest.mark.parametrize(
    ("vectors", "pairs", "said"),
    [
        (3, [9], "pair 9 is none of 3 vectors"),
        (2, [-1], "pair -1 is none"),
        (4, [0], "'x' has shape"),
    ],
)
def test_says_what_does_not_fit(vectors: int, pairs: list[int], said: str) -> None:
    with context.eager_mode(), pytest.raises(tf.errors.InvalidArgumentError, match=said):
        x = np.zeros([2, 3 if vectors != 2 else 2, 5], np.float32)
        multiplied(x, vectors, pairs)


def test_a_gradient_of_another_shape() -> None:
    with (
        context.eager_mode(),
        pytest.raises(tf.errors.InvalidArgumentError, match="'gradient' has shape"),
    ):
        gradient_of(np.zeros([2, 2], np.float32), np.zeros([2, 3, 4], np.float32), 3, [1, 2, 3])


@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_what_is_no_number_stays_in_its_example(strange: float) -> None:
    x = np.ones([3, 4, 6], np.float32)
    x[1, 2, 3] = strange
    pairs = [4, 8, 9, 12, 13, 14]
    with context.eager_mode():
        y = multiplied(x, 4, pairs).numpy()
        made = gradient_of(np.ones_like(y), x, 4, pairs).numpy()
    # The third vector is in the second, third and last pair.
    assert (~np.isfinite(y[1])).tolist() == [False, True, True, False, False, True]
    assert np.isfinite(y[[0, 2]]).all() and np.isfinite(made[[0, 2]]).all()

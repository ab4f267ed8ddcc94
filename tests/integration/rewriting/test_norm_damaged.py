"""The ops of batch normalization are handed anything: an error or a result, never a crash."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tensorflow.python.eager import context

from workbench import _native

v1 = tf.compat.v1
# More of them under AddressSanitizer: make native-fuzz.
FUZZED = settings(max_examples=int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "100")), deadline=None)
SIZES = (0, 1, 2, 15, 16, 17, 63, 64, 65, 130)
EPSILON = 1e-3


def normalized(x: Any, gamma: Any, beta: Any, epsilon: float = EPSILON) -> list[np.ndarray]:
    """By the op."""
    found = _native.library().workbench_batch_norm(x, gamma, beta, epsilon=epsilon)
    return [each.numpy() for each in found]


def gradients(given_: Any, x: Any, gamma: Any, moments: Any, of_relu: bool = False) -> Any:
    """By the op, of x, gamma, beta and a bias."""
    made = _native.library().workbench_batch_norm_grad
    found = made(given_, x, gamma, *moments, epsilon=EPSILON, of_relu=of_relu)
    return [each.numpy() for each in found]


def stock(given_: Any, x: Any, gamma: Any, beta: Any, epsilon: float = EPSILON) -> Any:
    """The same by TensorFlow."""
    inputs = [tf.constant(each) for each in (x, gamma, beta)]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        moments = tf.nn.moments(inputs[0], axes=[0])
        y = tf.nn.batch_normalization(inputs[0], *moments, inputs[2], inputs[1], epsilon)
    made = tape.gradient(y, inputs, output_gradients=tf.constant(given_))
    return [each.numpy() for each in (y, *moments)], [each.numpy() for each in made]


def stock_of_relu(given_: Any, z: Any, gamma: Any, beta: Any) -> Any:
    """By TensorFlow the result of a ReLU, and the gradients through it: of z, gamma, beta, bias."""
    inputs = [tf.constant(each) for each in (z, gamma, beta, np.zeros_like(gamma))]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        before = tf.nn.bias_add(inputs[0], inputs[3])
        x = tf.nn.relu(before)
        moments = tf.nn.moments(x, axes=[0])
        y = tf.nn.batch_normalization(x, *moments, inputs[2], inputs[1], EPSILON)
    wanted = [before, *inputs[1:]]
    made = tape.gradient(y, wanted, output_gradients=tf.constant(given_))
    return x.numpy(), [each.numpy() for each in made]


@st.composite
def shapes(draw: Any, expected: tuple[int, ...]) -> tuple[int, ...]:
    """Mostly the expected one; else of another rank or size."""
    if draw(st.integers(0, 4)):
        return expected
    return tuple(draw(st.lists(st.sampled_from(SIZES[:6]), max_size=3)))


def drawn(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.normal(size=shape).astype(np.float32)


class TestDamaged:
    @FUZZED
    @given(
        data=st.data(),
        rows=st.sampled_from(SIZES),
        columns=st.sampled_from(SIZES),
        of_relu=st.booleans(),
    )
    def test_ranks_and_sizes(self, data: Any, rows: int, columns: int, of_relu: bool) -> None:
        matrix, vector = (rows, columns), (columns,)
        random = np.random.default_rng(rows + columns)
        expected = [matrix, matrix, vector, vector, vector, vector]
        found = [data.draw(shapes(each)) for each in expected]
        given_, x, gamma, beta, mean, variance = (drawn(random, each) for each in found)
        own = found[1] if len(found[1]) == 2 else None
        fits = own is not None and found[2] == own[1:]
        with context.eager_mode():
            try:
                y, *moments = normalized(x, gamma, beta)
                assert fits and found[3] == own[1:]
                assert y.shape == own and {each.shape for each in moments} == {own[1:]}
            except tf.errors.InvalidArgumentError:
                assert not (fits and found[3] == own[1:])
            try:
                made = gradients(given_, x, gamma, (mean, np.square(variance)), of_relu)
                assert fits and found[0] == own and found[4] == found[5] == own[1:]
                of_bias = own[1:] if of_relu else (0,)
                assert [each.shape for each in made] == [own, own[1:], own[1:], of_bias]
            except tf.errors.InvalidArgumentError:
                assert not (fits and found[0] == own and found[4] == found[5] == own[1:])

    @pytest.mark.parametrize(
        ("sizes", "said"),
        [
            (([3, 4], [4], [5]), "'beta' has shape"),
            (([3, 4], [3], [4]), "'gamma' has shape"),
            (([12], [4], [4]), "expected a matrix"),
        ],
    )
    def test_say_what_does_not_fit(self, sizes: Any, said: str) -> None:
        x, gamma, beta = (v1.placeholder_with_default(tf.zeros(size), shape=None) for size in sizes)
        outputs = _native.library().workbench_batch_norm(x, gamma, beta, epsilon=1e-3)
        with v1.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=said):
            session.run(outputs)

    @pytest.mark.parametrize(
        ("wrong", "size", "said"),
        [
            (0, [4, 3], "'gradient' has shape"),
            (1, [3], "expected a matrix"),
            (2, [5], "'gamma' has shape"),
            (3, [1, 4], "'mean' has shape"),
            (4, [3], "'variance' has shape"),
        ],
    )
    def test_of_gradients_as_well(self, wrong: int, size: Any, said: str) -> None:
        sizes = [[3, 4], [3, 4], [4], [4], [4]]
        sizes[wrong] = size
        given_ = [v1.placeholder_with_default(tf.zeros(each), shape=None) for each in sizes]
        outputs = _native.library().workbench_batch_norm_grad(*given_, epsilon=1e-3)
        with v1.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=said):
            session.run(outputs)


def drawn_inputs(rows: int, columns: int, strange: Any, constant: bool = False) -> Any:
    """The gradient of the result, x, gamma and beta, with strange numbers in them.

    With `constant`, the first column of x is one number, but for these.
    """
    random = np.random.default_rng(rows * columns)
    shaped = [(rows, columns), (rows, columns), (columns,), (columns,)]
    inputs = [drawn(random, shape) for shape in shaped]
    if constant:
        inputs[1][:, 0] = 0.3
    for number, at, value in strange:
        if inputs[number].size:
            inputs[number].flat[at % inputs[number].size] = value
    return inputs


def require_close(one: np.ndarray, other: np.ndarray, *made_of: np.ndarray) -> None:
    """As digits are of the largest of what they were made of, too: it may cancel out."""
    finite = np.isfinite(other)
    np.testing.assert_array_equal(np.isfinite(one), finite)
    size = max(np.abs(each[np.isfinite(each)]).max(initial=1.0) for each in (other, *made_of))
    np.testing.assert_allclose(one[finite] / size, other[finite] / size, rtol=2e-3, atol=1e-4)


# Which input, where in it, and what.
STRANGE = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 10**6),
        st.sampled_from((np.nan, np.inf, -np.inf, 3e2, 1e-30, 1e-40, 0.0)),
    ),
    max_size=3,
)


class TestNumbers:
    @FUZZED
    @given(
        rows=st.sampled_from(SIZES),
        columns=st.sampled_from(SIZES[1:]),
        strange=STRANGE,
        constant=st.booleans(),
    )
    @example(rows=1, columns=1, strange=[(1, 0, 300.0), (2, 0, 300.0)], constant=False)
    def test_are_stock_ones(self, rows: int, columns: int, strange: Any, constant: bool) -> None:
        given_, *own = drawn_inputs(rows, columns, strange, constant)
        with context.eager_mode():
            # Stock's in float32 loses digits where a large x meets a large gamma.
            expected, of_stock = stock(*(each.astype(np.float64) for each in (given_, *own)))
            found = normalized(*own)
            made = gradients(given_, *own[:2], found[1:])[:3]
        for one, other in zip(found, expected, strict=True):
            require_close(one, other)
        for one, other in zip(made, of_stock, strict=True):
            require_close(one, other, given_)
        # Only an infinite gamma is infinity in the one and NaN in the other.
        for one, other in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_array_equal(np.isnan(one), np.isnan(other))

    @FUZZED
    @given(rows=st.sampled_from(SIZES), columns=st.sampled_from(SIZES[1:]), strange=STRANGE)
    def test_of_relus_are_stock_ones(self, rows: int, columns: int, strange: Any) -> None:
        given_, z, gamma, beta = drawn_inputs(rows, columns, strange)
        # Whole numbers are often exactly zero, of either sign.
        z = np.round(z)
        with context.eager_mode():
            x, expected = stock_of_relu(given_, z, gamma, beta)
            _, *moments = normalized(x, gamma, beta)
            made = gradients(given_, x, gamma, moments, of_relu=True)
            of_x, *_ = gradients(given_, x, gamma, moments)
        for one, other in zip(made, expected, strict=True):
            require_close(one, other, given_)
        # What is no number stays one where the ReLU is off, as a product with zero does.
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(made[0], of_x * (x > 0))

    def test_whose_squares_overflow_are_beta(self) -> None:
        x = np.array([[1e30], [0.0], [-1e30]], np.float32)
        gamma, beta = np.ones(1, np.float32), np.full(1, 3, np.float32)
        with context.eager_mode():
            found, expected = normalized(x, gamma, beta), stock(x, x, gamma, beta)[0]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        assert np.isinf(found[2]).all() and (found[0] == 3).all()

    def test_without_variance_or_epsilon_are_none(self) -> None:
        x, ones = np.zeros([3, 2], np.float32), np.ones(2, np.float32)
        with context.eager_mode():
            found, expected = normalized(x, ones, ones, 0.0), stock(x, x, ones, ones, 0.0)[0]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        assert np.isnan(found[0]).all()

    @pytest.mark.parametrize("offset", [0.0, 1e2, 1e4, -1e5])
    def test_are_nearer_to_doubles_than_stock_ones(self, offset: float) -> None:
        random = np.random.default_rng(3)
        x = (random.normal(size=[3000, 70]) + offset).astype(np.float32)
        gamma, beta = drawn(random, (70,)), drawn(random, (70,))
        with context.eager_mode():
            found = normalized(x, gamma, beta)
            expected, _ = stock(np.zeros_like(x), x, gamma, beta)
        wide = x.astype(np.float64)
        mean, variance = wide.mean(axis=0), wide.var(axis=0)
        y = (wide - mean) / np.sqrt(variance + np.float32(EPSILON)) * gamma + beta
        for exact, one, other in zip((y, mean, variance), found, expected, strict=True):
            ours, theirs = (np.abs(each - exact).max() for each in (one, other))
            assert ours <= max(1.5 * theirs, 2e-6)
        assert np.abs(found[0] - y).max() < 1e-5

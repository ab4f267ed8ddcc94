"""Batch normalizations of functions and Keras models, each done by one op."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.fused_parts import relus_of

FORWARD, GRADIENT = "WorkbenchBatchNorm", "WorkbenchBatchNormGrad"


def test_of_a_function_with_a_tape() -> None:
    gamma, beta = (tf.Variable(tf.ones([5]) * 0.5) for _ in range(2))
    kernel = tf.Variable(np.random.default_rng(1).normal(size=[4, 5]).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def step(x: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            below = tf.nn.relu(x @ kernel)
            mean, variance = tf.nn.moments(below, axes=[0])
            normed = tf.nn.batch_normalization(below, mean, variance, beta, gamma, 1e-3)
            loss = tf.reduce_mean(tf.square(normed - 0.3) + tf.sin(normed))
        return [loss, *tape.gradient(loss, [gamma, beta, kernel])]

    concrete = step.get_concrete_function()
    fused = wb.fuse_function(concrete)
    x = tf.constant(np.random.default_rng(2).normal(size=[60, 4]), tf.float32)
    found, expected = fused(x), concrete(x)
    ops = [op.type for op in fused.graph.get_operations()]
    assert ops.count(FORWARD) == ops.count(GRADIENT) == 1 and "ReluGrad" not in ops
    for ours, stock in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, stock, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("returns_it", [False, True])
def test_of_a_relu_whose_gradient_is_returned(returns_it: bool) -> None:
    """Then something else than the gradient of the ReLU's input needs it."""
    matrix, vector = tf.TensorSpec([None, 5]), tf.TensorSpec([5])

    # Without a variable a result waits for nothing.
    @tf.function(input_signature=[matrix, vector])
    def step(x: tf.Tensor, bias: tf.Tensor) -> list[tf.Tensor]:
        gamma, beta = (tf.constant(np.full(5, each, np.float32)) for each in (0.5, 0.1))
        with tf.GradientTape() as tape:
            tape.watch(bias)
            below = tf.nn.relu(tf.nn.bias_add(x, bias))
            moments = tf.nn.moments(below, axes=[0])
            normed = tf.nn.batch_normalization(below, *moments, beta, gamma, 1e-3)
            loss = tf.reduce_mean(tf.square(normed - 0.3) + tf.sin(normed))
        return tape.gradient(loss, [bias, *[below] * returns_it])

    concrete = step.get_concrete_function()
    fused = wb.fuse_function(concrete)
    ops = [op.type for op in fused.graph.get_operations()]
    assert ops.count(GRADIENT) == 1 and "RsqrtGrad" not in ops
    assert ops.count("ReluGrad") == ops.count("BiasAddGrad") == returns_it
    drawn = np.random.default_rng(2).integers(-2, 3, [60, 5]).astype(np.float32)
    given = tf.constant(drawn), tf.zeros([5])
    for ours, stock in zip(fused(*given), concrete(*given), strict=True):
        np.testing.assert_allclose(ours, stock, rtol=1e-4, atol=1e-5)


def test_of_a_keras_model() -> None:
    def model() -> keras.Model:
        keras.utils.set_random_seed(1)
        layers = [
            keras.Input((6,)),
            keras.layers.Dense(8, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1),
        ]
        made = keras.Sequential(layers)
        made.compile(keras.optimizers.SGD(0.05), "mse")
        return made

    drawn = np.random.default_rng(1)
    x, y = drawn.normal(size=[96, 6]), drawn.normal(size=[96, 1])
    results = []
    for fuses in (False, True):
        each = model()
        fusion = wb.fuse_model(each) if fuses else None
        each.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False)
        results.append([each.predict(x, verbose=0), *each.get_weights()])
    assert fusion is not None and len(fusion.plan.of("batch normalization")) == 1
    assert "1 batch normalization in one op\n  " in fusion.describe()
    assert relus_of(fusion.plan.of("batch normalization")[0]) == 1
    for ours, stock in zip(*results, strict=True):
        np.testing.assert_allclose(ours, stock, rtol=1e-4, atol=1e-5)

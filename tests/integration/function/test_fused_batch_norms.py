"""Batch normalizations of functions and Keras models, each done by one op."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

import workbench as wb

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
    assert ops.count(FORWARD) == ops.count(GRADIENT) == 1
    for ours, stock in zip(found, expected, strict=True):
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
    assert fusion is not None and len(fusion.plan.norms) == 1
    assert "1 batch normalization in one op\n  " in fusion.describe()
    for ours, stock in zip(*results, strict=True):
        np.testing.assert_allclose(ours, stock, rtol=1e-4, atol=1e-5)

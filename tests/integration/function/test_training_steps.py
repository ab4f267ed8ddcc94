"""The step of a FunctionProgram as it is called, fused and not."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.experiments.worker.steps.function_step import training_step

ROWS, DIM, BATCH = 50, 4, 8


def make(nested):
    table = tf.Variable(tf.ones([ROWS, DIM]))

    @tf.function
    def train_step(features, label):
        ids = features["ids"].values if nested == "ragged" else features["ids"]
        with tf.GradientTape() as tape:
            error = tf.nn.embedding_lookup(table, ids + 1) - features["more"][0]
            loss = tf.reduce_mean(tf.square(error)) + tf.reduce_mean(label)
        gradient = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(gradient.values, gradient.indices))
        return loss

    ids = tf.reshape(tf.range(2 * BATCH, dtype=tf.int64), [2, BATCH])
    if nested == "ragged":
        ids = tf.RaggedTensor.from_tensor(ids)[:, None]
    features = {"ids": ids, "more": (tf.ones([2, 1]), tf.zeros([2, 1]))}
    return train_step, tf.data.Dataset.from_tensor_slices((features, tf.ones([2])))


@pytest.mark.parametrize("nested", ["dense", "ragged"])
def test_a_fused_step_takes_its_batch_in_the_structure_that_it_has(nested, monkeypatch):
    def flat(*arguments):
        raise AssertionError("TensorFlow wrote the whole batch into words before it came here")

    losses = []
    for fuses in (False, True):
        program = wb.FunctionProgram(name="nested", make=lambda: make(nested))
        step = training_step(program, Optimizations())
        function = step.concrete()
        if fuses:
            assert step.fused(function) is not function
            monkeypatch.setattr(ConcreteFunction, "_call_with_flat_signature", flat)
        losses.append([step.call(element).numpy() for element in step.dataset])
    np.testing.assert_allclose(*losses, rtol=1e-6)


def make_of_keras():
    keras = tf.keras
    inputs = keras.Input((4,))
    x = keras.layers.Dense(3, activation="relu")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(x))
    model.compile(optimizer=keras.optimizers.Adagrad(0.05), loss="mse")
    return model, tf.data.Dataset.from_tensors((tf.ones([8, 4]), tf.ones([8, 1]))).repeat()


def test_each_build_of_a_keras_model_names_its_ops_alike():
    program = wb.FunctionProgram(name="keras", make=make_of_keras)
    names = []
    for _ in range(2):
        step = training_step(program, Optimizations())
        ops = step.concrete().graph.get_operations()
        names.append([op.name for op in ops if op.type == "MatMul"])
    assert names[0] == names[1] and names[0]

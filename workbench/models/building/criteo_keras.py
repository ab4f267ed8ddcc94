"""Keras 3 parts of models on a Criteo click log: batches of lines, their columns, one lookup.

A step reads lines, as those of the graph models do: parsing and hashing are part of it, so that a
smart stage of the step may run them ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from workbench.models.building.criteo_features import BUCKETS, click_loss, log_numbers
from workbench.models.building.graph_model import Batch
from workbench.models.building.model_options import ModelOptions
from workbench.models.data.criteo import CATEGORIES, CRITEO
from workbench.models.data.dataset import parse_lines, parse_rows, row_dataset


def batches(options: ModelOptions) -> tf.data.Dataset:
    """Full batches of rows, string [batch], once through the data; the next one is read ahead."""
    rows = row_dataset(options.data)
    return rows.batch(options.batch_size, drop_remainder=True).prefetch(1)


def train_step_of(
    options: ModelOptions, model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> Any:
    """A `tf.function` of a batch of rows that trains a model of a parsed batch and returns its
    loss, a scalar."""

    @tf.function
    def step(rows: tf.Tensor) -> tf.Tensor:
        batch = _parsed(options, rows)
        with tf.GradientTape() as tape:
            loss = click_loss(batch, model(batch, training=True))
        weights = model.trainable_variables
        gradients = [_each_row_once(g) for g in tape.gradient(loss, weights)]
        optimizer.apply(gradients, weights)
        return loss

    # Weights are made outside the function, which may run ahead of itself in a stage.
    first = next(iter(batches(options)))
    model(_parsed(options, first))
    optimizer.build(model.trainable_variables)
    return step


def _parsed(options: ModelOptions, rows: tf.Tensor) -> Batch:
    if options.data.layout is None:
        return parse_lines(rows, CRITEO)
    return parse_rows(rows, options.data)


def _each_row_once(gradient: Any) -> Any:
    """A gradient that names each row of a table once.

    Keras's Adagrad would square each of several gradients of a row by itself, and add them up in
    no certain order.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


class Columns(keras.layers.Layer):
    """A parsed batch → the logarithms of its numbers, float32 [batch, 13], and the vectors of its
    categories, float32 [batch, 26, dimension], zeros where a field is empty.

    All columns share one table, each in rows of its own, so that one lookup serves them all.
    """

    def __init__(self, dimension: int, *, seed: int) -> None:
        super().__init__()
        # As each column's table of its own would be drawn.
        scale = (2.0 / (BUCKETS + dimension)) ** 0.5
        self._table = keras.layers.Embedding(
            len(CATEGORIES) * BUCKETS,
            dimension,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=scale, seed=seed),
        )

    def call(self, batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        texts = tf.stack([batch[name] for name in CATEGORIES], axis=1)
        ids = tf.strings.to_hash_bucket_fast(texts, BUCKETS)
        first = tf.range(len(CATEGORIES), dtype=tf.int64) * BUCKETS
        present = tf.cast(tf.not_equal(texts, ""), tf.float32)
        return log_numbers(batch), self._table(ids + first) * present[:, :, tf.newaxis]


def stack_of(units: tuple[int, ...], seeds: Callable[[], int]) -> keras.Sequential:
    """Dense layers, each with ReLU and batch normalization."""
    layers: list[Any] = []
    for width in units:
        layers += [dense_of(width, seeds, activation="relu"), keras.layers.BatchNormalization()]
    return keras.Sequential(layers)


def dense_of(units: int, seeds: Callable[[], int], activation: str | None = None) -> Any:
    """A dense layer with weights from the next seed."""
    initializer = keras.initializers.GlorotNormal(seed=seeds())
    return keras.layers.Dense(units, activation=activation, kernel_initializer=initializer)

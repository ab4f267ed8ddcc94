"""DeepFM on a Criteo click log as a `tf.function` of Keras 3 layers, sizes as in `deepfm`.

It trains other weights than the graph does: Keras draws and updates them its own way, and Adam
trains the table as well. The weight of an id is the last number of its vector, so that one lookup
brings both.
"""

from __future__ import annotations

import itertools
from typing import Any

import keras
import tensorflow as tf

from workbench.models.building.criteo_features import total
from workbench.models.building.criteo_keras import (
    Columns,
    batches,
    dense_of,
    stack_of,
    train_step_of,
)
from workbench.models.building.graph_model import Batch
from workbench.models.data.criteo import CATEGORIES
from workbench.models.zoo.deepfm import DEEP, DIMENSION, LAST, pairwise
from workbench.models.zoo.options import DeepFmOptions


def train_step(options: DeepFmOptions) -> tuple[Any, tf.data.Dataset]:
    """The training step and its data; the weights come from the seed.

    Returns:
      A `tf.function` of a batch of rows that returns the loss, and a dataset of such batches, which
      ends: both as `workbench.smart_stage` takes them.
    """
    optimizer = keras.optimizers.Adam(options.learning_rate)
    return train_step_of(options, DeepFm(options.seed), optimizer), batches(options)


class DeepFm(keras.Model):
    """A parsed batch → logits of a click, float32 [batch, 1]."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        seeds = itertools.count(1000 * seed).__next__
        self._columns = Columns(DIMENSION + 1, seed=seeds())
        self._linear = dense_of(1, seeds)
        self._deep = stack_of(DEEP, seeds)
        self._last = stack_of(LAST, seeds)
        self._logit = dense_of(1, seeds)

    def call(self, batch: Batch, training: bool = False) -> tf.Tensor:
        numbers, looked = self._columns(batch)
        vectors, weights = looked[:, :, :DIMENSION], looked[:, :, DIMENSION]
        flat = tf.reshape(vectors, [-1, len(CATEGORIES) * DIMENSION])
        deep = self._deep(tf.concat([numbers, flat], axis=1), training=training)
        linear = total([weights, self._linear(numbers)])
        together = tf.concat([linear, pairwise(vectors), deep], axis=1)
        return self._logit(self._last(together, training=training))

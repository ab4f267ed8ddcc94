"""DLRM on a Criteo click log as a `tf.function` of Keras 3 layers, sizes as in `dlrm`.

It trains other weights than the graph does: Keras draws and updates them its own way.
"""

from __future__ import annotations

import itertools
from typing import Any

import keras
import tensorflow as tf

from workbench.models.building.criteo_keras import (
    Columns,
    batches,
    dense_of,
    stack_of,
    train_step_of,
)
from workbench.models.building.graph_model import Batch
from workbench.models.zoo.dlrm import BOTTOM, DIMENSION, TOP, pairs
from workbench.models.zoo.options import DlrmOptions


def train_step(options: DlrmOptions) -> tuple[Any, tf.data.Dataset]:
    """The training step and its data; the weights come from the seed.

    Returns:
      A `tf.function` of a batch of rows that returns the loss, and a dataset of such batches, which
      ends: both as `workbench.smart_stage` takes them.
    """
    optimizer = keras.optimizers.Adagrad(options.learning_rate)
    return train_step_of(options, Dlrm(options.seed), optimizer), batches(options)


class Dlrm(keras.Model):
    """A parsed batch → logits of a click, float32 [batch, 1]."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        seeds = itertools.count(1000 * seed).__next__
        self._columns = Columns(DIMENSION, seed=seeds())
        self._bottom = stack_of(BOTTOM, seeds)
        self._top = stack_of(TOP, seeds)
        self._logit = dense_of(1, seeds)

    def call(self, batch: Batch, training: bool = False) -> tf.Tensor:
        numbers, vectors = self._columns(batch)
        bottom = self._bottom(numbers, training=training)
        together = tf.concat([bottom[:, tf.newaxis], vectors], axis=1)
        crossed = tf.concat([bottom, pairs(together)], axis=1)
        return self._logit(self._top(crossed, training=training))

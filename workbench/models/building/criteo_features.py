"""What the graphs of models on Criteo's format share: parsing a batch, its numbers, a loss."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from workbench.models.building.graph_model import Batch
from workbench.models.building.layers import looked_up
from workbench.models.data.criteo import CATEGORIES, CRITEO, NUMBERS
from workbench.models.data.dataset import parse_lines

v1 = tf.compat.v1

# Rows of each column's table, as in DeepRec's modelzoo.
BUCKETS = 10_000


def parse(lines: tf.Tensor) -> Batch:
    """The 40 columns of a batch of lines, by name: label and numbers float32, else string."""
    return parse_lines(lines, CRITEO)


def log_numbers(batch: Batch) -> tf.Tensor:
    """The logarithms of 1 + I1..I13, float32 [batch, 13]: counts reach from -3 to millions."""
    numbers = tf.stack([batch[name] for name in NUMBERS], axis=1)
    return tf.math.log1p(tf.maximum(numbers, 0.0))


def id_weights(batch: Batch, scope: str) -> list[tf.Tensor]:
    """A weight, 0 at first, for the id of each category: of each float32 [batch, 1]."""
    with v1.variable_scope(scope, initializer=v1.zeros_initializer()):
        return [
            looked_up(batch[name], name, buckets=BUCKETS, dimension=1, combiner="sum")
            for name in CATEGORIES
        ]


def click_loss(batch: Batch, logits: tf.Tensor) -> tf.Tensor:
    """Mean cross entropy of logits [batch, 1], scalar."""
    label = tf.expand_dims(batch["label"], 1)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))


def total(terms: Sequence[tf.Tensor]) -> tf.Tensor:
    """The sum of all columns of terms [batch, n], float32 [batch, 1].

    TensorFlow fuses an addition with the layer before it where it knows their shapes, and rounds
    otherwise then; a sum rounds the same behind every stage.
    """
    return tf.reduce_sum(tf.concat(terms, axis=1), axis=1, keepdims=True)

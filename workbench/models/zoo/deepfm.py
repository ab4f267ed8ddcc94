"""The graph of DeepFM on a Criteo click log: hash, look up, train.

Sizes follow DeepRec's modelzoo (26 tables of 16, deep 1024-256-32, then 128-64 over all three
parts). There the linear part sums the wide input itself, without weights, and the loss is the mean
squared error of the chance; here the linear part has a weight for each id and number, and the loss
is the cross entropy, as the model was published. Adagrad trains the tables, Adam the rest;
`updates` says why.
"""

from __future__ import annotations

import tensorflow as tf

from workbench.models.building.criteo_features import (
    BUCKETS,
    click_loss,
    id_weights,
    log_numbers,
    parse,
    total,
)
from workbench.models.building.graph_model import Batch, GraphModel, Trained
from workbench.models.building.layers import dense, looked_up, normal
from workbench.models.building.optimizers import minimize
from workbench.models.data.criteo import CATEGORIES

DIMENSION = 16
DEEP = (1024, 256, 32)
LAST = (128, 64)


def _logits(batch: Batch) -> tf.Tensor:
    numbers = log_numbers(batch)
    looked = [
        looked_up(batch[name], name, buckets=BUCKETS, dimension=DIMENSION) for name in CATEGORIES
    ]
    vectors = tf.stack(looked, axis=1)
    linear = total([*id_weights(batch, "linear"), dense(numbers, 1, "linear", activation=None)])
    deep = tf.concat([numbers, tf.reshape(vectors, [-1, len(CATEGORIES) * DIMENSION])], axis=1)
    for i, units in enumerate(DEEP):
        deep = normal(dense(deep, units, f"deep_{i}"), f"deep_{i}")
    last = tf.concat([linear, pairwise(vectors), deep], axis=1)
    for i, units in enumerate(LAST):
        last = normal(dense(last, units, f"last_{i}"), f"last_{i}")
    return dense(last, 1, "logit", activation=None)


def pairwise(vectors: tf.Tensor) -> tf.Tensor:
    """Sum over all pairs of the products of their vectors: [batch, n, d] to [batch, d]."""
    squared_sum = tf.square(tf.reduce_sum(vectors, axis=1))
    return 0.5 * (squared_sum - tf.reduce_sum(tf.square(vectors), axis=1))


def _trained(batch: Batch) -> Trained:
    logits = _logits(batch)
    return Trained(click_loss(batch, logits), batch["label"], logits)


MODEL = GraphModel(
    name="deepfm",
    parse=parse,
    probability=lambda batch: tf.sigmoid(_logits(batch))[:, 0],
    trained=_trained,
    minimize=minimize,
)

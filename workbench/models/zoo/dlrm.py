"""The graph of DLRM on a Criteo click log: hash, look up, train.

Sizes and order follow DeepRec's modelzoo (batch 512, 26 tables of 16, bottom 512-256-64-16, dot
interaction, top 512-256). There each layer of the top network reads the interaction itself, so that
only the last one feeds the logit; here they are stacked, as the model was published. Its optimizer
is Adagrad.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.experiments.cluster.synchronous import synchronous
from workbench.models.building.criteo_features import BUCKETS, click_loss, log_numbers, parse
from workbench.models.building.graph_model import Batch, GraphModel, Trained
from workbench.models.building.layers import dense, looked_up, normal
from workbench.models.data.criteo import CATEGORIES
from workbench.models.zoo.options import DlrmOptions
from workbench.ops.embedding_variable.optimizers import AdagradOptimizer

v1 = tf.compat.v1

DIMENSION = 16
BOTTOM = (512, 256, 64, 16)
TOP = (512, 256)


def _logits(batch: Batch) -> tf.Tensor:
    bottom = log_numbers(batch)
    for i, units in enumerate(BOTTOM):
        bottom = normal(dense(bottom, units, f"bottom_{i}"), f"bottom_{i}")
    looked = [
        looked_up(batch[name], name, buckets=BUCKETS, dimension=DIMENSION) for name in CATEGORIES
    ]
    top = tf.concat([bottom, pairs(tf.stack([bottom, *looked], axis=1))], axis=1)
    for i, units in enumerate(TOP):
        top = normal(dense(top, units, f"top_{i}"), f"top_{i}")
    return dense(top, 1, "logit", activation=None)


def pairs(vectors: tf.Tensor) -> tf.Tensor:
    """Dot products of all pairs of [batch, n, d], float32 [batch, n (n - 1) / 2]."""
    count = vectors.shape[1]
    gram = tf.reshape(tf.matmul(vectors, vectors, transpose_b=True), [-1, count * count])
    below = [row * count + column for row in range(count) for column in range(row)]
    return tf.gather(gram, below, axis=1)


def _minimize(loss: tf.Tensor, options: DlrmOptions) -> Any:
    step = v1.train.get_or_create_global_step()
    optimizer = synchronous(AdagradOptimizer(options.learning_rate))
    return optimizer.minimize(loss, global_step=step)


def _trained(batch: Batch) -> Trained:
    logits = _logits(batch)
    return Trained(click_loss(batch, logits), batch["label"], logits)


MODEL = GraphModel(
    name="dlrm",
    parse=parse,
    probability=lambda batch: tf.sigmoid(_logits(batch))[:, 0],
    trained=_trained,
    minimize=_minimize,
)

build, build_epoch, train = MODEL.build, MODEL.build_epoch, MODEL.train
build_input, build_compute, next_lines = MODEL.build_input, MODEL.build_compute, MODEL.lines

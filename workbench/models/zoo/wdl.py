"""The graph of Wide & Deep on a Criteo click log: hash, look up, train.

Sizes follow DeepRec's modelzoo: tables of 128 for the columns with most values and of 64 for the
others, deep 1024-512-256, wide one weight for each id. FTRL trains the wide part and Adam the deep
one, but for its tables, which Adagrad trains; `updates` says why.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.models.building.criteo_features import BUCKETS, click_loss, id_weights, parse, total
from workbench.models.building.graph_model import Batch, GraphModel, Trained
from workbench.models.building.layers import dense, looked_up
from workbench.models.building.optimizers import applied
from workbench.models.data.criteo import CATEGORIES, NUMBERS
from workbench.models.zoo.options import WdlOptions
from workbench.ops.embedding_variable.optimizers import (
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
)

v1 = tf.compat.v1

_WIDER = frozenset(("C3", "C4", "C10", "C12", "C16", "C21", "C24", "C26"))
_DIMENSION, _WIDER_DIMENSION = 64, 128
_DEEP = (1024, 512, 256)
# Least value of I1..I13 and the distance from it to the largest one, in the public log.
_LEAST = (0.0, -3.0, *[0.0] * 11)
_RANGES = (1539, 22069, 65535, 561, 2655388, 233523, 26297, 5106, 24376, 9, 181, 1807, 6879)


def _logits(batch: Batch) -> tf.Tensor:
    return total([_wide(batch), _deep(batch)])


def _wide(batch: Batch) -> tf.Tensor:
    """A weight for each id and a bias, summed: float32 [batch, 1]."""
    weights = total(id_weights(batch, "wide"))
    with v1.variable_scope("wide"):
        return weights + v1.get_variable("bias", [1], initializer=v1.zeros_initializer())


def _deep(batch: Batch) -> tf.Tensor:
    with v1.variable_scope("deep"):
        numbers = tf.stack([batch[name] for name in NUMBERS], axis=1)
        looked = [
            looked_up(
                batch[name],
                name,
                buckets=BUCKETS,
                dimension=_WIDER_DIMENSION if name in _WIDER else _DIMENSION,
            )
            for name in CATEGORIES
        ]
        scaled = (numbers - _LEAST) / tf.constant(_RANGES, tf.float32)
        hidden = tf.concat([scaled, *looked], axis=1)
        for i, units in enumerate(_DEEP):
            hidden = dense(hidden, units, f"hidden_{i}")
        return dense(hidden, 1, "logit", activation=None)


def _minimize(loss: tf.Tensor, options: WdlOptions) -> Any:
    """FTRL for the wide part, Adagrad for the tables of the deep one, Adam for its layers."""
    adam = AdamOptimizer(options.learning_rate)
    wide, tables, layers = [], [], []
    for gradient, weight in adam.compute_gradients(loss, v1.trainable_variables("wdl/")):
        if weight.op.name.startswith("wdl/wide/"):
            wide.append((gradient, weight))
        elif isinstance(gradient, tf.IndexedSlices):
            tables.append((gradient, weight))
        else:
            layers.append((gradient, weight))
    return applied(
        [
            (FtrlOptimizer(options.wide_learning_rate), wide),
            (AdagradOptimizer(options.table_learning_rate), tables),
            (adam, layers),
        ]
    )


def _trained(batch: Batch) -> Trained:
    logits = _logits(batch)
    return Trained(click_loss(batch, logits), batch["label"], logits)


MODEL = GraphModel(
    name="wdl",
    parse=parse,
    probability=lambda batch: tf.sigmoid(_logits(batch))[:, 0],
    trained=_trained,
    minimize=_minimize,
)

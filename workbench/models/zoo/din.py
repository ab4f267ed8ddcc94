"""The graph of DIN on a Taobao log: split, hash, look up, attend to the history, train.

Sizes and order follow DeepRec's modelzoo (tables of 18, histories of 50, attention 80-40, top
200-80, gradients clipped at 5). What differs:
- Ids are hashed, not looked up in vocabulary files.
- Batch normalization uses the moments of the batch; the script forgets to say that it trains, which
  leaves them at 0 and 1.
- The last layer follows the one of 80, without a linear one of 2 between them.
- Tables are trained by Adagrad and not clipped, the rest by Adam; `updates` says why.
"""

from __future__ import annotations

import functools

import tensorflow as tf

from workbench.models.building.graph_model import Batch, GraphModel, Trained
from workbench.models.building.optimizers import minimize
from workbench.models.building.sequence_layers import attention
from workbench.models.building.taobao_features import (
    click_loss,
    looked_up_clicks,
    parse,
    top_logits,
)
from workbench.models.data.taobao import SEQUENCE_TABLE

_CLIP_NORM = 5.0


def _logits(batch: Batch) -> tf.Tensor:
    clicks = looked_up_clicks(batch)
    weights = attention(clicks.item, clicks.history, clicks.present, "attention")
    interest = tf.reduce_sum(weights[:, :, None] * clicks.history, axis=1)
    return top_logits(clicks, interest)


def _trained(batch: Batch) -> Trained:
    label, logits = batch["CLICKED"], _logits(batch)
    return Trained(click_loss(label, logits), label, logits)


MODEL = GraphModel(
    name="din",
    parse=lambda lines: parse(lines, SEQUENCE_TABLE),
    probability=lambda batch: tf.sigmoid(_logits(batch)),
    trained=_trained,
    minimize=functools.partial(minimize, clip_norm=_CLIP_NORM),
)

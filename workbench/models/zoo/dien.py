"""The graph of DIEN on a Taobao log: split, hash, look up, two recurrences over the history, train.

Sizes and order follow DeepRec's modelzoo (tables of 18, histories of 50, states of 36, attention
80-40, auxiliary network 100-50, top 200-80, gradients clipped at 5). What differs:
- The update gate of the second recurrence is multiplied by the attention, as published; the
  script multiplies what is kept by 1 - attention, so that a click without attention still counts.
- The auxiliary network sees clicks and negatives in one batch and gives one logit; its loss is the
  mean over the next clicks there are. The script normalizes each by itself, has a softmax over 2,
  and counts absent clicks as zeros.
- Ids are hashed, batch normalization uses the moments of the batch, the last layer follows the one
  of 80, tables are trained by Adagrad and not clipped: as in `din_graph`.
"""

from __future__ import annotations

import functools

import tensorflow as tf

from workbench.models.building.graph_model import Batch, GraphModel, Trained
from workbench.models.building.layers import dense, normal
from workbench.models.building.optimizers import minimize
from workbench.models.building.sequence_layers import attention, attentional_gru, gru
from workbench.models.building.taobao_features import (
    Clicks,
    click_loss,
    looked_up_clicks,
    parse,
    top_logits,
)
from workbench.models.data.taobao import SEQUENCE_NEGATIVE_TABLE

v1 = tf.compat.v1

_STATE = 36
_AUXILIARY = (100, 50)
_CLIP_NORM = 5.0


def _probability(batch: Batch) -> tf.Tensor:
    clicks = looked_up_clicks(batch)
    return tf.sigmoid(_logits(clicks, _interests(clicks)))


def _trained(batch: Batch) -> Trained:
    clicks = looked_up_clicks(batch, negatives=True)
    interests = _interests(clicks)
    logits = _logits(clicks, interests)
    loss = click_loss(batch["CLICKED"], logits) + _auxiliary_loss(clicks, interests)
    return Trained(loss, batch["CLICKED"], logits)


def _interests(clicks: Clicks) -> tf.Tensor:
    """What the user was interested in behind each click, float32 [batch, 50, 36]."""
    return gru(clicks.history, clicks.present, _STATE, "extraction")


def _logits(clicks: Clicks, interests: tf.Tensor) -> tf.Tensor:
    weights = attention(clicks.item, interests, clicks.present, "attention")
    evolved = attentional_gru(interests, weights, _STATE, "evolution")
    return top_logits(clicks, evolved[:, -1])


def _auxiliary_loss(clicks: Clicks, interests: tf.Tensor) -> tf.Tensor:
    """How badly interests tell the next click from what was not clicked instead, scalar."""
    before = interests[:, :-1]
    pairs = tf.concat(
        [
            tf.concat([before, clicks.history[:, 1:]], axis=2),
            tf.concat([before, clicks.negatives[:, 1:]], axis=2),
        ],
        axis=0,
    )
    with v1.variable_scope("auxiliary"):
        found = normal(tf.reshape(pairs, [-1, pairs.shape[2]]), "pairs")
        for i, units in enumerate(_AUXILIARY):
            found = dense(found, units, f"layer_{i}", activation=tf.sigmoid)
        logits = dense(found, 1, "logit", activation=None)
    logits = tf.reshape(logits, [2, -1, pairs.shape[1]])
    clicked = tf.stack([tf.ones_like(logits[0]), tf.zeros_like(logits[1])])
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits)
    there = tf.cast(clicks.present, losses.dtype)[:, 1:]
    # A batch in which each history has one click has no next one.
    return tf.math.divide_no_nan(tf.reduce_sum(losses * there), tf.reduce_sum(there))


MODEL = GraphModel(
    name="dien",
    parse=lambda lines: parse(lines, SEQUENCE_NEGATIVE_TABLE),
    probability=_probability,
    trained=_trained,
    minimize=functools.partial(minimize, clip_norm=_CLIP_NORM),
)

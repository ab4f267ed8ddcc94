"""The graph of DSSM on a Taobao log: split tags, hash, look up, two towers, train.

Sizes and order follow DeepRec's modelzoo (17 tables of 16, towers 256-128-64 with batch
normalization and 32, cosine of the two). There the loss is a categorical cross entropy over the
batch, as if just one of its rows could be clicked; here each row has a cross entropy of its own.
Tables are trained by Adagrad, the rest by Adam; `updates` says why.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from workbench.models.building.graph_model import Batch, GraphModel, Trained
from workbench.models.building.layers import dense, looked_up, normal
from workbench.models.building.optimizers import minimize
from workbench.models.building.taobao_features import click_loss, parse
from workbench.models.data.taobao import DSSM_ITEM, DSSM_TABLE, DSSM_TAGS, DSSM_USER

v1 = tf.compat.v1

_BUCKETS = {
    "user_id": 100_000,
    "cms_segid": 100,
    "cms_group_id": 100,
    "age_level": 10,
    "pvalue_level": 10,
    "shopping_level": 10,
    "occupation": 10,
    "new_user_class_level": 10,
    "tag_category_list": 100_000,
    "tag_brand_list": 100_000,
    "adgroup_id": 100_000,
    "cate_id": 10_000,
    "campaign_id": 100_000,
    "customer": 100_000,
    "brand": 100_000,
    "price": 50,
    "pid": 10,
}
_DIMENSION = 16
_TOWER = (256, 128, 64)
_VECTOR = 32


def _logits(batch: Batch) -> tf.Tensor:
    user, item = _tower(batch, DSSM_USER, "user"), _tower(batch, DSSM_ITEM, "item")
    alike = tf.reduce_sum(user * item, axis=1)
    slope = v1.get_variable("slope", [], initializer=v1.ones_initializer())
    bias = v1.get_variable("bias", [], initializer=v1.zeros_initializer())
    # The more alike, the likelier is a click: so the slope may not fall below 0.
    return alike * tf.abs(slope) + bias


def _tower(batch: Batch, names: Sequence[str], tower: str) -> tf.Tensor:
    """One side's vector of length 1, float32 [batch, 32]."""
    vector = tf.concat([_looked_up(batch[name], name) for name in names], axis=1)
    for i, units in enumerate(_TOWER):
        layer = f"{tower}_{i}"
        vector = tf.nn.relu(normal(dense(vector, units, layer, activation=None), layer))
    return tf.math.l2_normalize(dense(vector, _VECTOR, f"{tower}_out", activation=None), axis=1)


def _looked_up(values: tf.Tensor, name: str) -> tf.Tensor:
    if name in DSSM_TAGS:
        tags = tf.strings.split(values, "|")
        # An empty field is split into one empty tag.
        values = tf.ragged.boolean_mask(tags, tf.not_equal(tags, "")).to_sparse()
    return looked_up(values, name, buckets=_BUCKETS[name], dimension=_DIMENSION)


def _trained(batch: Batch) -> Trained:
    label, logits = batch["clk"], _logits(batch)
    return Trained(click_loss(label, logits), label, logits)


MODEL = GraphModel(
    name="dssm",
    parse=lambda lines: parse(lines, DSSM_TABLE),
    probability=lambda batch: tf.sigmoid(_logits(batch)),
    trained=_trained,
    minimize=minimize,
)

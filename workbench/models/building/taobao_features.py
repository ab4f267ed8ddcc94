"""What the graphs of models on Taobao's formats share: parsing, vectors of clicks, top, loss."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from workbench.models.building.graph_model import Batch
from workbench.models.building.layers import dense, looked_up, normal
from workbench.models.building.sequence_layers import split_history
from workbench.models.data.table_format import TableFormat

# Rows of each table.
_USERS, _ITEMS, _CATEGORIES = 100_000, 100_000, 10_000
_DIMENSION = 18
_TOP = (200, 80)


def parse(lines: tf.Tensor, layout: TableFormat) -> Batch:
    """The first columns of a batch of lines, by name: labels float32, all else string.

    Columns behind those of the format are left off.
    """
    defaults = [tf.constant([0.0] if column.kind == "label" else [""]) for column in layout.columns]
    separator = layout.separator.decode()
    fields = tf.io.decode_csv(
        lines,
        defaults,
        field_delim=separator,
        use_quote_delim=False,
        select_cols=list(range(len(defaults))),
    )
    return {column.name: field for column, field in zip(layout.columns, fields, strict=True)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clicks:
    """Vectors of a user, of the candidate, and of what the user has clicked, float32.

    Attributes:
      user: [batch, 18].
      item: of the candidate, its own and its category's, [batch, 36].
      history: of each click, [batch, 50, 36], zeros behind the last.
      present: which clicks there are, bool [batch, 50].
      negatives: of what the user has not clicked, like `history`; of length 0 unless asked for.
    """

    user: tf.Tensor
    item: tf.Tensor
    history: tf.Tensor
    present: tf.Tensor
    negatives: tf.Tensor


def looked_up_clicks(batch: Batch, *, negatives: bool = False) -> Clicks:
    """Looks up user, candidate and history; candidate, history and negatives share their tables.

    Each table is looked up once for all that share it, so that it has one gradient.
    """
    user = looked_up(batch["UID"], "UID", buckets=_USERS, dimension=_DIMENSION)
    histories = ["HISTORY", "NOCLK_HISTORY"] if negatives else ["HISTORY"]
    vectors = []
    for name, buckets in (("ITEM", _ITEMS), ("CATEGORY", _CATEGORIES)):
        clicks = [split_history(batch[f"{history}_{name}"]) for history in histories]
        texts = tf.concat([batch[name][:, None], *clicks], axis=1)
        vectors.append(looked_up(texts, name, buckets=buckets, dimension=_DIMENSION))
        if name == "ITEM":
            present = tf.not_equal(clicks[0], "")
    found = tf.concat(vectors, axis=2)
    length = present.shape[1]
    return Clicks(
        user=user,
        item=found[:, 0],
        history=found[:, 1 : 1 + length],
        present=present,
        negatives=found[:, 1 + length :],
    )


def top_logits(clicks: Clicks, interest: tf.Tensor) -> tf.Tensor:
    """Logits [batch] from user, candidate, the sum of the history and the interest [batch, 36]."""
    total = tf.reduce_sum(clicks.history, axis=1)
    top = tf.concat([clicks.user, clicks.item, total, clicks.item * total, interest], axis=1)
    top = normal(top, "top")
    for i, units in enumerate(_TOP):
        top = dense(top, units, f"top_{i}")
    return dense(top, 1, "logit", activation=None)[:, 0]


def click_loss(label: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Mean cross entropy of logits [batch], scalar."""
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))

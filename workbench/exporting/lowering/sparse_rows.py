"""Rows of ids in stock ops: which ids stay, in which row each is, and how rows combine vectors.

Vectors of a row are added in the order of its ids, as Workbench's kernels add them, so that
results are the same to the bit. Weights and `max_norm` multiply, and may differ in the last bit.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True, kw_only=True)
class SparseRows:
    """Ids that stay, and the row of a batch in which each one is.

    Attributes:
      ids: [n].
      owners: int64 [n], the row of each id.
      examples: int64 scalar, the number of rows.
      weights: float32 [n], None without weights.
      sources: int32 [n], the place of each id in the input; -1 of one that was filled in.
    """

    ids: tf.Tensor
    owners: tf.Tensor
    examples: tf.Tensor
    weights: tf.Tensor | None
    sources: tf.Tensor

    def taken(self, places: tf.Tensor) -> SparseRows:
        """Those ids alone, or in another order."""
        return dataclasses.replace(
            self,
            ids=tf.gather(self.ids, places),
            owners=tf.gather(self.owners, places),
            weights=None if self.weights is None else tf.gather(self.weights, places),
            sources=tf.gather(self.sources, places),
        )

    def in_order(self) -> SparseRows:
        """The same ids in the order of their rows."""
        return self.taken(tf.argsort(self.owners, stable=True))

    def counts(self) -> tf.Tensor:
        """int32 [examples], the number of ids of each row."""
        ones = tf.ones_like(self.owners, tf.int32)
        return tf.math.unsorted_segment_sum(ones, self.owners, self.examples)

    def splits(self) -> tf.Tensor:
        """int32 [examples + 1], where each row of `in_order` begins and ends."""
        return tf.concat([[0], tf.cumsum(self.counts())], 0)


def sparse_rows(
    ids: tf.Tensor, owners: tf.Tensor, examples: tf.Tensor, weights: tf.Tensor | None
) -> SparseRows:
    """All ids of a batch."""
    return SparseRows(
        ids=ids,
        owners=owners,
        examples=tf.cast(examples, tf.int64),
        weights=weights,
        sources=tf.range(tf.size(ids)),
    )


def owners_of(indices: tf.Tensor, dense_shape: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The row of each entry of a SparseTensor, and the number of rows, int64."""
    sizes = dense_shape[:-1]
    steps = tf.math.cumprod(sizes, exclusive=True, reverse=True)
    return tf.reduce_sum(indices[:, :-1] * steps, axis=1), tf.reduce_prod(sizes)


def kept(
    rows: SparseRows, *, prune: bool, prune_weights: bool, default_id: int | None
) -> SparseRows:
    """Without the ids that are dropped, and with one in each row that has none left.

    Args:
      rows: all ids.
      prune: drop ids below 0.
      prune_weights: drop ids whose weight is not above 0.
      default_id: the id of a row without ids; None leaves such a row empty.
    """
    stays = []
    if prune:
        stays.append(rows.ids >= 0)
    if prune_weights and rows.weights is not None:
        stays.append(rows.weights > 0)
    if stays:
        rows = rows.taken(tf.reshape(tf.where(tf.reduce_all(tf.stack(stays), 0)), [-1]))
    return rows if default_id is None else _filled(rows, default_id)


def _filled(rows: SparseRows, default_id: int) -> SparseRows:
    empty = tf.reshape(tf.where(tf.equal(rows.counts(), 0)), [-1])
    filler = tf.ones_like(empty)
    weights = rows.weights
    if weights is not None:
        weights = tf.concat([weights, tf.cast(filler, weights.dtype)], 0)
    default = tf.fill(tf.shape(empty), tf.constant(default_id, rows.ids.dtype))
    return dataclasses.replace(
        rows,
        ids=tf.concat([rows.ids, default], 0),
        owners=tf.concat([rows.owners, empty], 0),
        weights=weights,
        sources=tf.concat([rows.sources, tf.cast(-filler, tf.int32)], 0),
    )


def combined(
    vectors: tf.Tensor, rows: SparseRows, combiner: str, max_norm: float, dtype: Any
) -> tf.Tensor:
    """The combined vectors of each row, [examples, dim].

    Args:
      vectors: of each id, [n, dim].
      rows: the ids.
      combiner: "sum", "mean" or "sqrtn".
      max_norm: shorten longer vectors to it; below 0 none.
      dtype: of the result; sums are float32.
    """
    vectors = tf.cast(vectors, tf.float32)
    if max_norm >= 0:
        length = tf.sqrt(tf.reduce_sum(tf.square(vectors), 1, keepdims=True))
        vectors *= max_norm / tf.where(length <= max_norm, max_norm, length)
    if rows.weights is not None:
        vectors *= rows.weights[:, tf.newaxis]
    sums = tf.math.unsorted_segment_sum(vectors, rows.owners, rows.examples)
    if combiner == "sum":
        return tf.cast(sums, dtype)
    total = tf.cast(rows.counts(), tf.float32)
    if rows.weights is not None:
        parts = rows.weights if combiner == "mean" else tf.square(rows.weights)
        total = tf.math.unsorted_segment_sum(parts, rows.owners, rows.examples)
    divisor = tf.sqrt(total) if combiner == "sqrtn" else total
    return tf.cast(tf.math.divide_no_nan(sums, divisor[:, tf.newaxis]), dtype)


def like_rows(vectors: tf.Tensor, leading: tf.Tensor) -> tf.Tensor:
    """Combined vectors in the shape of the rows, `leading`, and then dim."""
    width = tf.shape(vectors, out_type=tf.int64)[1:]
    return tf.reshape(vectors, tf.concat([tf.cast(leading, tf.int64), width], 0))

"""The ops of V1 and V2 lookups in stock ops."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.exporting.lowering.call import Call
from workbench.exporting.lowering.sparse_rows import (
    SparseRows,
    combined,
    kept,
    like_rows,
    owners_of,
    sparse_rows,
)

# How an EmbeddingVariable spreads its keys.
_OF_KEYS = 1000


def pre_look_up(call: Call) -> list[Any]:
    """WorkbenchPreLookUp."""
    rows = _kept(call)
    parts, permutation = _shared_out(call, rows.ids)
    return [*parts, permutation, *_described(rows)]


def prune_and_fill(call: Call) -> list[Any]:
    """WorkbenchPruneInvalidAndFillEmptyRows."""
    rows = _kept(call)
    return [rows.ids, *_described(rows)]


def unique_with_counts(call: Call) -> list[Any]:
    """WorkbenchUniqueWithCounts."""
    return list(tf.unique_with_counts(call["values"]))


def partition(call: Call) -> list[Any]:
    """WorkbenchPartitionWithPermutation."""
    parts, permutation = _shared_out(call, call["values"], whole=True)
    return [*parts, permutation]


def id_columns(call: Call) -> list[Any]:
    """WorkbenchIdColumns."""
    counted = []
    for ids, column, width, rows in zip(
        call["ids"], call["columns"], call["widths"], call["table_rows"], strict=True
    ):
        part = ids if column < 0 else ids[:, column : column + max(width, 1)]
        part = tf.squeeze(part, 1) if column >= 0 and not width else part
        part = tf.cast(part, call["Tid"])
        counted.append(tf.where(part < 0, part + tf.constant(rows, part.dtype), part))
    return counted


def post_look_up(call: Call) -> list[Any]:
    """WorkbenchPostLookUp and WorkbenchPostLookUpV2."""
    shards = call["shards"]
    vectors = shards[0]
    if len(shards) > 1:
        sizes = tf.stack([tf.shape(shard)[0] for shard in shards])
        starts = tf.cumsum(sizes, exclusive=True)
        place = tf.gather(starts, call["permutation"][:, 0]) + call["permutation"][:, 1]
        vectors = tf.gather(tf.concat(shards, 0), place)
    if "unique_index" in call.inputs:
        vectors = tf.gather(vectors, call["unique_index"])
    weights = call["weights"] if call["use_weights"] else None
    return [_combined(call, vectors, weights, call["max_norm"])]


def local_look_up(call: Call) -> list[Any]:
    """WorkbenchLocalLookUp and WorkbenchResourceLocalLookUp."""
    places = call["values"]
    if call["use_index"]:
        places = tf.gather(places, call["unique_index"])
    vectors = read_rows(call["table"], places, call["T"])
    return [_combined(call, vectors, None, -1.0)]


def read_rows(table: tf.Tensor, places: tf.Tensor, dtype: Any) -> tf.Tensor:
    """Rows of a table, which is a tensor or the handle of a variable."""
    if table.dtype == tf.resource:
        return tf.raw_ops.ResourceGather(resource=table, indices=places, dtype=dtype)
    return tf.gather(table, places)


def _kept(call: Call) -> SparseRows:
    owners, examples = owners_of(call["indices"], call["dense_shape"])
    weights = call["weights"] if call["use_weights"] else None
    return kept(
        sparse_rows(call["ids"], owners, examples, weights),
        prune=call["prune_invalid_id"],
        prune_weights=call["prune_invalid_weight"],
        default_id=call["default_id"] if call["fill_empty_row"] else None,
    ).in_order()


def _described(rows: SparseRows) -> list[Any]:
    """Row splits, weights and sources; the last two are empty without weights."""
    if rows.weights is None:
        return [rows.splits(), tf.zeros([0], tf.float32), tf.zeros([0], tf.int32)]
    return [rows.splits(), rows.weights, rows.sources]


def _shared_out(call: Call, ids: tf.Tensor, *, whole: bool = False) -> tuple[list[Any], tf.Tensor]:
    """The rows to read of each shard, and shard and place of each id.

    One shard has all ids in order and no permutation, unless the `whole` one is wanted.
    """
    count = call["num_partitions"]
    if count == 1 and not whole:
        return [ids], tf.zeros([0, 2], tf.int32)
    shard, row = _placed(call["partition_strategy"], ids, call["table_rows"], count)
    shard = tf.cast(shard, tf.int32)
    parts = tf.dynamic_partition(row, shard, count)
    positions = tf.dynamic_partition(tf.range(tf.size(ids)), shard, count)
    inside = tf.dynamic_stitch(positions, [tf.range(tf.size(part)) for part in parts])
    return parts, tf.stack([shard, inside], axis=1)


def _placed(
    strategy: str, ids: tf.Tensor, table_rows: tf.Tensor, count: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """The shard of each id and the row in it; an id of no shard has one that does not exist."""
    shards = tf.constant(count, ids.dtype)
    if strategy == "mod_key":
        return tf.math.floormod(tf.math.floormod(ids, _OF_KEYS), shards), ids
    if strategy == "mod":
        return tf.math.floormod(ids, shards), tf.math.floordiv(ids, shards)
    ends = tf.cumsum(table_rows)
    shard = tf.searchsorted(ends, tf.cast(ids, tf.int64), side="right")
    starts = tf.concat([[0], ends], 0)
    return shard, ids - tf.cast(tf.gather(starts, shard), ids.dtype)


def _combined(
    call: Call, vectors: tf.Tensor, weights: tf.Tensor | None, max_norm: float
) -> tf.Tensor:
    splits = call["row_splits"]
    examples = tf.size(splits, out_type=tf.int64) - 1
    owners = tf.repeat(tf.range(examples), splits[1:] - splits[:-1])
    # The vectors stand for the ids.
    rows = sparse_rows(owners, owners, examples, weights)
    result = combined(vectors, rows, call["combiner"], max_norm, call["T"])
    return like_rows(result, call["dense_shape"][:-1])

"""Grouped lookups in stock ops: of each feature a gather and the sums of its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from workbench.errors import UnsupportedError
from workbench.exporting.lowering.call import Call
from workbench.exporting.lowering.keyed_rows import read_keys
from workbench.exporting.lowering.lookups import read_rows
from workbench.exporting.lowering.sparse_rows import (
    SparseRows,
    combined,
    kept,
    like_rows,
    owners_of,
    sparse_rows,
)

_Read = Callable[[tf.Tensor], tf.Tensor]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Feature:
    """The ids of a feature.

    Attributes:
      rows: all of them.
      leading: int64, the shape of the rows.
      one_each: whether each row has exactly one.
    """

    rows: SparseRows
    leading: tf.Tensor
    one_each: bool


def grouped_look_up(call: Call) -> list[Any]:
    """WorkbenchGroupedLookUp and WorkbenchResourceGroupedLookUp."""
    readers = [_reader(table, call["T"]) for table in call["tables"]]
    return _looked_up(call, readers)


def embedding_grouped_look_up(call: Call) -> list[Any]:
    """WorkbenchEmbeddingGroupedLookUp; where rows were found is for an update, and stays empty."""
    readers = [
        _key_reader(table, matrix, of)
        for table, matrix, of in zip(call["tables"], call["matrix"], call.keyed, strict=True)
    ]
    nowhere = [tf.zeros([0], tf.int64)] * call["F"]
    return [*_looked_up(call, readers), *nowhere, *[tf.zeros([], tf.int64)] * call["N"]]


def _reader(table: tf.Tensor, dtype: Any) -> _Read:
    return lambda ids: read_rows(table, ids, dtype)


def _key_reader(table: tf.Tensor, matrix: tf.Tensor, of: Any) -> _Read:
    return lambda ids: read_keys(table, matrix, tf.cast(ids, tf.int64), of)


def _looked_up(call: Call, readers: list[_Read]) -> list[Any]:
    table_of = call["table_of"]
    vectors = [_vectors(call, f, readers[table_of[f]]) for f in range(call["F"])]
    return [tf.concat(vectors, -1)] if call["concatenated"] else vectors


def _vectors(call: Call, number: int, read: _Read) -> tf.Tensor:
    """The combined vectors of a feature."""
    feature = _feature(call, number)
    prune, fills = call["prune_invalid_ids"][number], call["fill_empty_rows"][number]
    combiner = call["combiners"][number]
    max_norm = call["max_norms"][number] if call["max_norms"] else -1.0
    weighted = feature.rows.weights is not None
    if feature.one_each and not prune and not weighted and max_norm < 0:
        return like_rows(read(feature.rows.ids), feature.leading)
    rows = kept(
        feature.rows,
        prune=prune,
        prune_weights=prune and combiner != "sum",
        default_id=call["default_ids"][number] if fills else None,
    )
    vectors = combined(read(rows.ids), rows, combiner, max_norm, call["T"])
    return like_rows(vectors, feature.leading)


def _feature(call: Call, number: int) -> _Feature:
    ids, rows = call["ids"][number], call["rows"][number]
    weights = None
    if number in call["weights_of"]:
        weights = tf.reshape(call["weights"][call["weights_of"].index(number)], [-1])
    flat = tf.reshape(ids, [-1])
    if rows.shape.rank is None:
        raise UnsupportedError(
            f"feature {call['features'][number]!r}: it is not known whether its ids are dense, "
            "ragged or sparse; export the model from the program that builds it"
        )
    if rows.shape.rank == 0:
        count = tf.size(flat, out_type=tf.int64)
        leading, owners = tf.shape(ids, out_type=tf.int64), tf.range(count)
    elif rows.shape.rank == 1:
        count = tf.size(rows, out_type=tf.int64) - 1
        leading, owners = count[tf.newaxis], tf.repeat(tf.range(count), rows[1:] - rows[:-1])
    elif call["ends_with_ids"] and call["ends_with_ids"][number]:
        owners = rows[:, 0]
        count = tf.reduce_max(tf.concat([owners + 1, tf.zeros([1], tf.int64)], 0))
        leading = count[tf.newaxis]
    else:
        shape = call["dense_shapes"][number]
        leading, (owners, count) = shape[:-1], owners_of(rows, shape)
    return _Feature(
        rows=sparse_rows(flat, owners, count, weights),
        leading=leading,
        one_each=rows.shape.rank == 0,
    )

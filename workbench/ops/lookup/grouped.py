"""Grouped embedding lookups: all features of a model in one op, straight from their tables.

One op forward and one backward, for any number of features: ids are read as they come,
sparse, ragged or dense, and rows are summed where they lie; nothing is gathered, sorted or
made unique on the way. The gradient of each table has each row once, in ascending order.

EmbeddingVariables have an op of their own (`grouped_keys`). What no op takes is looked up beside
them: by V2, which sends each id once, what is placed on another device, features that share a
table there together; by V1 the rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops

from workbench import _native
from workbench.errors import OptionError
from workbench.kept_apart import kept_apart
from workbench.ops.lookup import gradients  # noqa: F401 (registers them)
from workbench.ops.lookup.fused import fused_safe_embedding_lookup_sparse, look_up_together
from workbench.ops.lookup.grouped_keys import fits_keys, look_up_keys
from workbench.ops.lookup.request import Lookup, checked_lookup
from workbench.ops.lookup.tables import is_resource, table_of, value_of


def grouped_embedding_lookup(
    tables: Any,
    ids: Sequence[Any],
    weights: Sequence[Any] | None = None,
    combiners: str | Sequence[str | None] | None = "mean",
    max_norm: float | Sequence[float | None] | None = None,
    default_id: int | Sequence[int | None] | None = None,
    *,
    prune: bool = True,
    partition_strategy: str = "div",
    concatenate: bool = False,
    names: Sequence[str | None] | None = None,
    name: str | None = None,
) -> Any:
    """Looks up the embeddings of many features at once.

    Each is what `tf.compat.v1.nn.safe_embedding_lookup_sparse` computes of it, gradients included.

    Args:
      tables: of each feature its table, as `embedding_weights` of
        `fused_safe_embedding_lookup_sparse`; features may have the same one.
      ids: of each feature int32 or int64 ids, a SparseTensor [d_0, …, d_n] with n at least 1, or a
        RaggedTensor of rank 2. Ids are combined along the last dimension; those in order of their
        rows take less time. Of a tensor [d_0, …, d_(n-1)] each id is a row of its own.
      weights: of each feature the weights of its ids, one each, which have gradients, or None;
        None weighs all 1.
      combiners: "mean" (also None), "sum" or "sqrtn"; one for all or a list.
      max_norm: shorten longer embeddings to this l2 norm; one for all or a list.
      default_id: the id that a row without ids gets; None makes it 0. One for all or a list.
      prune: drop ids below 0 and, unless combiner is "sum", ids whose weight is not above 0; False
        makes an id below 0 an error.
      partition_strategy: "div" or "mod", of tables that have several shards.
      concatenate: one tensor with the features beside each other instead of one each.
      names: of the features in messages; None takes the tables'.
      name: of the ops.

    Returns:
      Of each feature [d_0, …, d_(n-1), dim], of its table's dtype. With `concatenate`
      [rows, sum of dims] of features that all have as many rows; ids then are of rank 2. Running it
      fails with INVALID_ARGUMENT, naming feature, row, id and size, where an id is beyond a table.

    Raises:
      ValueError: a table is missing.
      OptionError: a value outside its range, or lists of different lengths.
      UnsupportedError: another dtype.
    """
    count = len(ids)
    if not count:
        raise OptionError("ids is empty; expected those of at least one feature")
    tables = _for_each("tables", list(tables) if _is_list(tables) else tables, count)
    weights = _for_each("weights", weights, count)
    combiners = _for_each("combiners", combiners, count)
    norms = _for_each("max_norm", max_norm, count)
    defaults = _for_each("default_id", default_id, count)
    named = _for_each("names", names, count)
    with tf.name_scope(name or "grouped_embedding_lookup") as scope:
        lookups = [
            checked_lookup(
                table_of(tables[i], partition_strategy),
                ids[i],
                weights[i],
                name=named[i],
                combiner=combiners[i],
                max_norm=norms[i],
                default_id=defaults[i],
                prune=prune,
                blocknums=None,
                as_given=True,
            )
            for i in range(count)
        ]
        together = [i for i, lookup in enumerate(lookups) if _fits(lookup)]
        as_one = concatenate and len(together) == count and _alike(lookups)
        if as_one:
            (vectors,) = _looked_up(lookups, concatenated=True, name=scope)
            return vectors
        vectors = [None] * count
        groups = _groups(lookups, together)
        for group in groups:
            # The whole of a lookup has its name.
            op_name = scope if len(groups) == 1 and len(together) == count else None
            results = _looked_up([lookups[i] for i in group], concatenated=False, name=op_name)
            for i, vector in zip(group, results, strict=True):
                vectors[i] = vector
        rest = sorted(set(range(count)) - set(together))
        travelling = [i for i in rest if lookups[i].table.is_elsewhere(lookups[i].id_values)]
        for group in _by_table(lookups, travelling):
            results = _sent([lookups[i] for i in group], named[group[0]])
            for i, vector in zip(group, results, strict=True):
                vectors[i] = vector
        for i in sorted(set(rest) - set(travelling)):
            vectors[i] = fused_safe_embedding_lookup_sparse(
                tables[i],
                _sparse(ids[i]),
                weights[i],
                combiner=combiners[i],
                default_id=defaults[i],
                name=named[i],
                partition_strategy=partition_strategy,
                max_norm=norms[i],
                prune=prune,
                fusion_version="v1",
            )
        return tf.concat(vectors, -1) if concatenate else vectors


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _for_each(what: str, given: Any, count: int) -> list[Any]:
    """One value for each feature."""
    if not _is_list(given):
        return [given] * count
    if len(given) != count:
        raise OptionError(f"{what} has {len(given)} values for {count} features; expected one each")
    return list(given)


def _sparse(ids: Any) -> Any:
    """Ids as a SparseTensor; dense ones as those of rows that have one each."""
    if isinstance(ids, tf.RaggedTensor):
        return ids.to_sparse()
    if not isinstance(ids, (tf.Tensor, np.ndarray)):
        return ids
    dense = tf.convert_to_tensor(ids)[..., tf.newaxis]
    # Not from_dense, which takes ids of 0 for missing ones.
    shape = tf.shape(dense, out_type=tf.int64)
    places = tf.where(tf.ones_like(dense, tf.bool))
    return tf.SparseTensor(places, tf.reshape(dense, [-1]), shape)


def _by_table(lookups: Sequence[Lookup], positions: Sequence[int]) -> list[list[int]]:
    """Positions of the features of each table."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for i in positions:
        groups.setdefault(tuple(map(id, lookups[i].table.shards)), []).append(i)
    return list(groups.values())


def _sent(lookups: Sequence[Lookup], name: str | None) -> list[tf.Tensor]:
    """The vectors of features that share a table on another device: each of their ids goes once."""
    with tf.name_scope(name or "fused_embedding_lookup") as scope:
        sparse = [dataclasses.replace(each, ids=_sparse(each.ids)) for each in lookups]
        # The whole of a lookup has its name.
        return look_up_together(sparse, [scope] if len(sparse) == 1 else [None] * len(sparse))


def _fits(lookup: Lookup) -> bool:
    """Whether an op can take a feature."""
    (first, *_) = lookup.table.shards
    if lookup.table.has_keys:
        return fits_keys(lookup)
    local = lookup.table.is_local(lookup.id_values)
    return local and bool(tf.compat.dimension_value(first.shape[1]))


def _kind(lookup: Lookup) -> Any:
    """What the features of one op have in common."""
    (shard,) = lookup.table.shards
    if lookup.table.has_keys:
        return "keys", shard.trainable, bool(shard.option.steps_to_live)
    return shard.dtype.base_dtype, is_resource(shard)


def _alike(lookups: Sequence[Lookup]) -> bool:
    return len(set(map(_kind, lookups))) == 1


def _groups(lookups: Sequence[Lookup], together: Sequence[int]) -> list[list[int]]:
    """Positions of the features of each op."""
    groups: dict[Any, list[int]] = {}
    for i in together:
        groups.setdefault(_kind(lookups[i]), []).append(i)
    return list(groups.values())


def _looked_up(
    lookups: Sequence[Lookup], *, concatenated: bool, name: str | None
) -> list[tf.Tensor]:
    """The outputs of one op."""
    shards = {_table_key(lookup): lookup.table.shards[0] for lookup in lookups}
    numbers = {key: number for number, key in enumerate(shards)}
    wide = len({lookup.ids.dtype for lookup in lookups}) > 1
    values, rows, shapes = zip(*(_ids_of(lookup, wide=wide) for lookup in lookups), strict=True)
    weighted = [i for i, lookup in enumerate(lookups) if lookup.weights is not None]
    arguments = {
        "ids": list(values),
        "rows": list(rows),
        "dense_shapes": list(shapes),
        "weights": [lookups[i].weights for i in weighted],
        "weights_of": weighted,
        "M": 1 if concatenated else len(lookups),
        "table_of": [numbers[_table_key(lookup)] for lookup in lookups],
        "combiners": [lookup.combiner for lookup in lookups],
        "prune_invalid_ids": [lookup.prune for lookup in lookups],
        "fill_empty_rows": [lookup.default_id is not None for lookup in lookups],
        "default_ids": [lookup.default_id or 0 for lookup in lookups],
        "max_norms": [-1.0 if lookup.max_norm is None else lookup.max_norm for lookup in lookups],
        "dims": [int(shard.shape[1]) for shard in shards.values()],
        "features": [lookup.feature for lookup in lookups],
        "concatenated": concatenated,
        "name": name,
    }
    library = _native.library()
    if lookups[0].table.has_keys:
        return kept_apart(look_up_keys(list(shards.values()), arguments))
    if not is_resource(next(iter(shards.values()))):
        values_of = [value_of(shard) for shard in shards.values()]
        return kept_apart(library.workbench_grouped_look_up(tables=values_of, **arguments))
    for shard in shards.values():
        # A gradient tape watches variables, not handles.
        resource_variable_ops.variable_accessed(shard)
    handles = [shard.handle for shard in shards.values()]
    dtype, _ = _kind(lookups[0])
    made = library.workbench_resource_grouped_look_up(tables=handles, T=dtype, **arguments)
    return kept_apart(made)


def _table_key(lookup: Lookup) -> tuple[int, float | None]:
    """What tells tables of an op apart; the gradients of one are shortened alike.

    By identity: a variable is no key of a dict.
    """
    return id(lookup.table.shards[0]), lookup.max_norm


def _ids_of(lookup: Lookup, *, wide: bool) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Ids, rows and dense shape of a feature, as the op takes them."""
    ids = lookup.ids
    values = tf.cast(lookup.id_values, tf.int64) if wide else lookup.id_values
    if isinstance(ids, tf.Tensor):
        return values, tf.zeros([], tf.int64), tf.zeros([0], tf.int64)
    if isinstance(ids, tf.RaggedTensor):
        return values, tf.cast(ids.row_splits, tf.int64), tf.zeros([0], tf.int64)
    return values, ids.indices, ids.dense_shape

"""Fused embedding lookups: what tf.nn.safe_embedding_lookup_sparse computes, in a few ops.

V1 is pre-lookup, a gather for each shard of the table, post-lookup. V2 looks each id of a batch up
once: prune and fill, unique, partition (with more than one shard), gather, post-lookup. V1 does
less work where ids seldom repeat within a batch, V2 where they do, or where rows travel. Where the
table is one variable on the device of the ids, and neither weights nor `max_norm` are given, one op
takes the place of gather and post-lookup and combines the rows where they lie.

Values and gradients are those of stock TensorFlow, gradients of weights and through `max_norm`
included, with these differences: a row without ids needs no row of the table, so that none gets a
gradient of zeros; sums of float16 and bfloat16 are float32; ids may come in any order of rows.
Second derivatives are refused. The ops run on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from workbench import _native
from workbench.errors import OptionError
from workbench.ops.lookup import gradients  # noqa: F401 (registers them)
from workbench.ops.lookup.request import Lookup, checked_lookup
from workbench.ops.lookup.tables import table_of

_VERSIONS = ("v1", "v2")


def fused_safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str | None = "div",
    max_norm: float | None = None,
    prune: bool = True,
    blocknums: Any = None,
    fusion_version: str = "v2",
) -> tf.Tensor:
    """Looks up embeddings, with invalid ids dropped and empty rows filled.

    As `tf.compat.v1.nn.safe_embedding_lookup_sparse`, which defines its values and gradients.

    Args:
      embedding_weights: the table, float32, float16 or bfloat16 [rows, dim]: a variable, a tensor,
        a PartitionedVariable, a list of shards, or an EmbeddingVariable.
      sparse_ids: SparseTensor, int32 or int64 [d_0, …, d_n] with n at least 1, or RaggedTensor of
        rank 2. Ids are combined along the last dimension.
      sparse_weights: weights of the ids: a SparseTensor or RaggedTensor like `sparse_ids`, or a
        tensor of its values; None weighs all 1.
      combiner: "mean" (also None), "sum" or "sqrtn". With weights w, mean divides by Σ w and sqrtn
        by √(Σ w²).
      default_id: the id that a row without ids gets; None makes such a row 0.
      name: of the ops, and of the feature in messages; None takes the table's.
      partition_strategy: which shard has which id, "div" (also None) or "mod".
      max_norm: shorten longer embeddings to this l2 norm before combining; None doesn't.
      prune: drop ids below 0 and, unless combiner is "sum", ids whose weight is not above 0;
        False makes an id below 0 an error.
      blocknums: of DeepRec's DynamicEmbeddingVariable; only None.
      fusion_version: "v1" or "v2".

    Returns:
      [d_0, …, d_(n-1), dim], of the table's dtype. Running it fails with INVALID_ARGUMENT, naming
      feature, row, id and size, where an id is beyond the table.

    Raises:
      ValueError: no table is given.
      OptionError: a value outside its range, or shapes that do not fit.
      UnsupportedError: blocknums, or another dtype.
    """
    if fusion_version not in _VERSIONS:
        raise OptionError(f"fusion_version is {fusion_version!r}; expected 'v1' or 'v2'")
    look_up = (
        fused_embedding_lookup_sparse
        if fusion_version == "v1"
        else fused_embedding_lookup_sparse_v2
    )
    return look_up(
        embedding_weights,
        sparse_ids,
        sparse_weights,
        partition_strategy,
        name,
        combiner,
        max_norm,
        default_id,
        prune,
        True,
        blocknums,
    )


def fused_embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sparse_weights: Any = None,
    partition_strategy: str | None = None,
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
    default_id: int | None = None,
    prune_invalid_ids: bool = False,
    fill_empty_row: bool = True,
    blocknums: Any = None,
) -> tf.Tensor:
    """Looks up embeddings, V1: pre-lookup, a gather for each shard, post-lookup.

    Args:
      params: the table, as `embedding_weights` of `fused_safe_embedding_lookup_sparse`.
      sp_ids, sparse_weights, partition_strategy, name, combiner, max_norm, blocknums: as there.
      default_id: the id that a row without ids gets; None makes such a row 0.
      prune_invalid_ids: as `prune` there.
      fill_empty_row: False ignores `default_id`.

    Returns:
      As there; a row for each row of `sp_ids`, also for empty ones at the end.

    Raises:
      As there.
    """
    return _fused(
        _through_pre_look_up,
        params,
        sp_ids,
        sparse_weights,
        partition_strategy=partition_strategy,
        name=name,
        combiner=combiner,
        max_norm=max_norm,
        default_id=default_id if fill_empty_row else None,
        prune=prune_invalid_ids,
        blocknums=blocknums,
    )


def fused_embedding_lookup_sparse_v2(
    params: Any,
    sp_ids: Any,
    sparse_weights: Any = None,
    partition_strategy: str | None = None,
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
    default_id: int | None = None,
    prune: bool = False,
    fill_empty_row: bool = True,
    blocknums: Any = None,
) -> tf.Tensor:
    """Looks up embeddings, V2: each id of the batch is read from the table once.

    Args:
      params, sp_ids, sparse_weights, partition_strategy, name, combiner, max_norm, default_id,
        fill_empty_row, blocknums: as in `fused_embedding_lookup_sparse`.
      prune: as `prune_invalid_ids` there.

    Returns:
      As there.

    Raises:
      As there.
    """
    return _fused(
        _through_unique,
        params,
        sp_ids,
        sparse_weights,
        partition_strategy=partition_strategy,
        name=name,
        combiner=combiner,
        max_norm=max_norm,
        default_id=default_id if fill_empty_row else None,
        prune=prune,
        blocknums=blocknums,
    )


def _fused(
    look_up: Callable[[Lookup, str], tf.Tensor],
    params: Any,
    ids: Any,
    weights: Any,
    *,
    partition_strategy: str | None,
    name: str | None,
    combiner: str | None,
    max_norm: float | None,
    default_id: int | None,
    prune: bool,
    blocknums: Any,
) -> tf.Tensor:
    """Checks the request and builds it in a name scope, whose name `look_up` gives the last op."""
    with tf.name_scope(name or "fused_embedding_lookup") as scope:
        lookup = checked_lookup(
            table_of(params, partition_strategy),
            ids,
            weights,
            name=name,
            combiner=combiner,
            max_norm=max_norm,
            default_id=default_id,
            prune=prune,
            blocknums=blocknums,
        )
        return look_up(lookup, scope)


def _through_pre_look_up(lookup: Lookup, scope: str) -> tf.Tensor:
    """V1."""
    table = lookup.table
    ids = _native.library().workbench_pre_look_up(
        **lookup.sparse_arguments,
        table_rows=table.rows(),
        num_partitions=len(table.shards),
        partition_strategy=table.strategy,
        in_table_order=not lookup.is_local,
    )
    if lookup.is_local:
        (values,) = ids.partitioned_values
        return lookup.look_up_here(values, None, ids.row_splits, scope)
    return _native.library().workbench_post_look_up(
        shards=[table.read(part, rows) for part, rows in enumerate(ids.partitioned_values)],
        partitioned_values=ids.partitioned_values,
        permutation=ids.permutation,
        row_splits=ids.row_splits,
        weights=ids.kept_weights,
        **lookup.combining_arguments,
        name=scope,
    )


def _through_unique(lookup: Lookup, scope: str) -> tf.Tensor:
    """V2."""
    if not lookup.is_local:
        return look_up_together([lookup], [scope])[0]
    ids = _pruned(lookup)
    unique = _native.library().workbench_unique_with_counts(values=ids.values)
    return lookup.look_up_here(unique.unique_values, unique.unique_index, ids.row_splits, scope)


def look_up_together(lookups: Sequence[Lookup], scopes: Sequence[str | None]) -> list[tf.Tensor]:
    """V2 of features that share a table: an id that several of them have is read once.

    Args:
      lookups: of one table, with sparse ids.
      scopes: names of the last ops.
    """
    kept = [_pruned(each) for each in lookups]
    if len(kept) == 1:
        unique = _native.library().workbench_unique_with_counts(values=kept[0].values)
        places = [unique.unique_index]
    else:
        values = tf.concat([tf.cast(each.values, tf.int64) for each in kept], 0)
        unique = _native.library().workbench_unique_with_counts(values=values)
        places = tf.split(unique.unique_index, [tf.size(each.values) for each in kept])
    table = lookups[0].table
    parts, permutation = _partitioned(lookups[0], unique)
    shards = [table.read(part, *rows) for part, rows in enumerate(parts)]
    return [
        _native.library().workbench_post_look_up_v2(
            shards=shards,
            partitioned_values=[rows for rows, _ in parts],
            unique_index=index,
            permutation=permutation,
            row_splits=ids.row_splits,
            weights=ids.kept_weights,
            **lookup.combining_arguments,
            name=scope,
        )
        for lookup, ids, index, scope in zip(lookups, kept, places, scopes, strict=True)
    ]


def _pruned(lookup: Lookup) -> Any:
    """The ids that stay, those filled in among them."""
    return _native.library().workbench_prune_invalid_and_fill_empty_rows(
        **lookup.sparse_arguments, table_rows=lookup.table.total_rows()
    )


def _partitioned(lookup: Lookup, unique: Any) -> tuple[list[Any], tf.Tensor]:
    """Rows of each shard and how often each came, and which of them each unique id has."""
    table = lookup.table
    if len(table.shards) == 1:
        return [(unique.unique_values, unique.unique_counts)], tf.zeros([0, 2], tf.int32)
    parts = _native.library().workbench_partition_with_permutation(
        values=unique.unique_values,
        table_rows=table.rows(),
        num_partitions=len(table.shards),
        partition_strategy=table.strategy,
        feature=lookup.feature,
    )
    counts: list[Any] = [None] * len(table.shards)
    if table.counts_ids:
        counts = tf.dynamic_partition(
            unique.unique_counts, parts.permutation[:, 0], len(table.shards)
        )
    return list(zip(parts.partitioned_values, counts, strict=True)), parts.permutation

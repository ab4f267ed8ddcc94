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

import dataclasses
from typing import Any

import tensorflow as tf

from workbench import _native
from workbench.errors import OptionError, UnsupportedError
from workbench.ops import gradients  # noqa: F401 (registers them)
from workbench.ops.tables import Table, table_of

_COMBINERS = ("mean", "sum", "sqrtn")
_VERSIONS = ("v1", "v2")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class _Lookup:
    """A checked request: one feature's ids and one table."""

    table: Table
    ids: tf.SparseTensor
    weights: tf.Tensor | None
    combiner: str
    max_norm: float | None
    default_id: int | None
    prune: bool
    feature: str

    @property
    def sparse_arguments(self) -> dict[str, Any]:
        """What the ops that prune and fill are told."""
        weighted = self.weights is not None
        return {
            "ids": self.ids.values,
            "indices": self.ids.indices,
            "dense_shape": self.ids.dense_shape,
            "weights": self.weights if weighted else tf.constant([], tf.float32),
            "use_weights": weighted,
            "prune_invalid_id": self.prune,
            "prune_invalid_weight": self.prune and weighted and self.combiner != "sum",
            "fill_empty_row": self.default_id is not None,
            "default_id": self.default_id or 0,
            "feature": self.feature,
        }

    @property
    def is_local(self) -> bool:
        """Whether rows can be combined where they lie, instead of being gathered first."""
        plain = self.weights is None and self.max_norm is None
        return plain and self.table.is_local(self.ids.values)

    def look_up_here(
        self, values: tf.Tensor, index: tf.Tensor | None, row_splits: tf.Tensor, name: str
    ) -> tf.Tensor:
        """The combined rows of a local table; `index` says which of `values` each id is."""
        return self.table.look_up_here(
            dense_shape=self.ids.dense_shape,
            values=tf.cast(values, tf.int64),
            unique_index=tf.constant([], tf.int32) if index is None else index,
            row_splits=row_splits,
            combiner=self.combiner,
            use_index=index is not None,
            name=name,
        )

    @property
    def combining_arguments(self) -> dict[str, Any]:
        """What the ops that combine are told."""
        return {
            "dense_shape": self.ids.dense_shape,
            "combiner": self.combiner,
            "use_weights": self.weights is not None,
            "max_norm": -1.0 if self.max_norm is None else self.max_norm,
        }


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
    with tf.name_scope(name or "fused_embedding_lookup") as scope:
        lookup = _checked(
            table_of(params, partition_strategy),
            sp_ids,
            sparse_weights,
            name=name,
            combiner=combiner,
            max_norm=max_norm,
            default_id=default_id if fill_empty_row else None,
            prune=prune_invalid_ids,
            blocknums=blocknums,
        )
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
    with tf.name_scope(name or "fused_embedding_lookup") as scope:
        lookup = _checked(
            table_of(params, partition_strategy),
            sp_ids,
            sparse_weights,
            name=name,
            combiner=combiner,
            max_norm=max_norm,
            default_id=default_id if fill_empty_row else None,
            prune=prune,
            blocknums=blocknums,
        )
        table = lookup.table
        ids = _native.library().workbench_prune_invalid_and_fill_empty_rows(
            **lookup.sparse_arguments, table_rows=table.total_rows()
        )
        unique = _native.library().workbench_unique_with_counts(values=ids.values)
        if lookup.is_local:
            return lookup.look_up_here(
                unique.unique_values, unique.unique_index, ids.row_splits, scope
            )
        parts, permutation = _partitioned(lookup, unique)
        return _native.library().workbench_post_look_up_v2(
            shards=[table.read(part, *rows) for part, rows in enumerate(parts)],
            partitioned_values=[rows for rows, _ in parts],
            unique_index=unique.unique_index,
            permutation=permutation,
            row_splits=ids.row_splits,
            weights=ids.kept_weights,
            **lookup.combining_arguments,
            name=scope,
        )


def _partitioned(lookup: _Lookup, unique: Any) -> tuple[list[Any], tf.Tensor]:
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


def _checked(
    table: Table,
    ids: Any,
    weights: Any,
    *,
    name: str | None,
    combiner: str | None,
    max_norm: float | None,
    default_id: int | None,
    prune: bool,
    blocknums: Any,
) -> _Lookup:
    if blocknums is not None:
        raise UnsupportedError(
            f"blocknums is {blocknums!r}: DynamicEmbeddingVariable has no implementation here; "
            "leave blocknums out, or use the stock lookup with a table of the full dimension"
        )
    if combiner not in (None, *_COMBINERS):
        raise OptionError(f"combiner is {combiner!r}; expected one of {', '.join(_COMBINERS)}")
    if default_id is not None and (isinstance(default_id, bool) or not isinstance(default_id, int)):
        raise OptionError(f"default_id is {default_id!r}; expected an integer id or None")
    if max_norm is not None and not float(max_norm) >= 0:
        raise OptionError(f"max_norm is {max_norm!r}; expected a length of at least 0, or None")
    return _Lookup(
        table=table,
        ids=_sparse(ids),
        weights=_weight_values(weights),
        combiner=combiner or "mean",
        max_norm=None if max_norm is None else float(max_norm),
        default_id=default_id,
        prune=bool(prune),
        feature=name or table.name,
    )


def _sparse(ids: Any) -> tf.SparseTensor:
    """The SparseTensor that is given, possibly as a RaggedTensor.

    Raises:
      OptionError: something else, or ids that are no integers.
    """
    if isinstance(ids, tf.RaggedTensor):
        ids = ids.to_sparse()
    if isinstance(ids, tf.compat.v1.SparseTensorValue):
        ids = tf.SparseTensor.from_value(ids)
    if not isinstance(ids, tf.SparseTensor):
        raise OptionError(
            f"ids are {ids!r} of type {type(ids).__name__}; expected a SparseTensor of rank 2 "
            "or more, or a RaggedTensor"
        )
    if ids.dtype not in (tf.int32, tf.int64):
        raise OptionError(f"ids have dtype {ids.dtype.name}; expected int32 or int64")
    return ids


def _weight_values(weights: Any) -> tf.Tensor | None:
    """The weights' values as float32 [n]."""
    if weights is None:
        return None
    if isinstance(weights, (tf.SparseTensor, tf.compat.v1.SparseTensorValue)):
        values = weights.values
    elif isinstance(weights, tf.RaggedTensor):
        values = weights.flat_values
    else:
        values = tf.convert_to_tensor(weights)
    return tf.cast(values, tf.float32)

"""Lookups without fusion: TensorFlow's own, and the same ones over an EmbeddingVariable.

An EmbeddingVariable is read once for the distinct keys of the batch; TensorFlow's lookup then
runs over the rows that were read, with each key's place among them as its id. So combiners,
weights, `max_norm` and their gradients are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def embedding_variable(params: Any) -> Any:
    """The EmbeddingVariable that `params` is, or holds as a list's only item; else None."""
    if isinstance(params, (list, tuple)) and len(params) == 1:
        (params,) = params
    return params if getattr(params, "is_embedding_variable", False) else None


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
    allow_fast_lookup: bool = False,
) -> tf.Tensor:
    """`tf.compat.v1.nn.safe_embedding_lookup_sparse` that also takes an EmbeddingVariable.

    Args: as in TensorFlow. Of an EmbeddingVariable no row is made for an id below 0, nor for one
      that its weight removes; the row of `default_id` is made whether a row is empty or not.

    Returns:
      float32 [d_0, ..., d_n-1, dim] for ids of shape [d_0, ..., d_n].
    """
    variable = embedding_variable(embedding_weights)
    if variable is not None:
        with _keys_scope(name):
            sparse_ids, sparse_weights = _valid(sparse_ids, sparse_weights, combiner)
            rows, sparse_ids = _rows(variable, sparse_ids, default_id)
            embedding_weights = _at_least_one(rows)
        default_id, partition_strategy = None if default_id is None else 0, "div"
    return tf.compat.v1.nn.safe_embedding_lookup_sparse(
        embedding_weights,
        sparse_ids,
        sparse_weights,
        combiner=combiner,
        default_id=default_id,
        name=name,
        partition_strategy=partition_strategy,
        max_norm=max_norm,
        allow_fast_lookup=allow_fast_lookup,
    )


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
    allow_fast_lookup: bool = False,
) -> tf.Tensor:
    """`tf.compat.v1.nn.embedding_lookup_sparse` that also takes an EmbeddingVariable.

    Args: as in TensorFlow. Every id is a key of an EmbeddingVariable, also one below 0.

    Returns:
      float32 [rows, dim] up to the last row that holds an id.
    """
    variable = embedding_variable(params)
    if variable is not None:
        with _keys_scope(name):
            params, sp_ids = _rows(variable, _sparse(sp_ids), None)
            sp_weights, partition_strategy = _sparse(sp_weights), "div"
    return tf.compat.v1.nn.embedding_lookup_sparse(
        params,
        sp_ids,
        sp_weights,
        partition_strategy=partition_strategy,
        name=name,
        combiner=combiner,
        max_norm=max_norm,
        allow_fast_lookup=allow_fast_lookup,
    )


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> tf.Tensor:
    """`tf.compat.v1.nn.embedding_lookup` that also takes an EmbeddingVariable.

    Args: as in TensorFlow. Every id is a key of an EmbeddingVariable, also one below 0.

    Returns:
      float32, the shape of `ids` and then dim.
    """
    variable = embedding_variable(params)
    if variable is not None:
        ids = tf.convert_to_tensor(ids)
        with _keys_scope(name):
            keys, places, counts = tf.unique_with_counts(tf.reshape(ids, [-1]))
            params = variable.sparse_read(tf.cast(keys, tf.int64), counts=counts)
            ids, partition_strategy = tf.reshape(places, tf.shape(ids)), "div"
    return tf.compat.v1.nn.embedding_lookup(
        params,
        ids,
        partition_strategy=partition_strategy,
        name=name,
        validate_indices=validate_indices,
        max_norm=max_norm,
    )


def _keys_scope(name: str | None) -> Any:
    """Name scope of what comes before TensorFlow's lookup."""
    return tf.name_scope(f"{name or 'embedding_lookup'}_keys")


def _valid(ids: Any, weights: Any, combiner: str) -> tuple[Any, Any]:
    """Without the ids and weights that TensorFlow's safe lookup drops."""
    ids, weights = _sparse(ids), _sparse(weights)
    keep = ids.values >= 0
    if weights is not None:
        if combiner != "sum":
            keep = tf.logical_and(keep, weights.values > 0)
        # As in TensorFlow, the weights stand in the order of the ids; their indices do not count.
        weights = tf.sparse.retain(_like(ids, weights.values), keep)
    return tf.sparse.retain(ids, keep), weights


def _rows(variable: Any, ids: Any, default_id: int | None) -> tuple[tf.Tensor, Any]:
    """The rows [n, dim] of the distinct keys, the default's first; the ids as places in them."""
    keys, places, counts = tf.unique_with_counts(tf.cast(ids.values, tf.int64), tf.int64)
    counts = tf.cast(counts, tf.int32)
    if default_id is not None:
        keys = tf.concat([tf.constant([default_id], tf.int64), keys], 0)
        counts = tf.concat([tf.constant([1], tf.int32), counts], 0)
        places += 1
    return variable.sparse_read(keys, counts=counts), _like(ids, places)


def _at_least_one(rows: tf.Tensor) -> tf.Tensor:
    """The same rows, or one of zeros: TensorFlow reads row 0 for a row of ids that is empty.

    A batch may have no valid id at all. Padding by nothing copies nothing.
    """
    missing = tf.cast(tf.equal(tf.shape(rows)[0], 0), tf.int32)
    return tf.pad(rows, [[0, missing], [0, 0]])


def _like(ids: Any, values: tf.Tensor) -> tf.SparseTensor:
    return tf.SparseTensor(ids.indices, values, ids.dense_shape)


def _sparse(ids: Any) -> Any:
    return ids.to_sparse() if isinstance(ids, tf.RaggedTensor) else ids

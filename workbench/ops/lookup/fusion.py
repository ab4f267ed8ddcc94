"""Which lookups are fused: the choice made while a model is built, and the lookups that obey it.

`fused_embeddings` sets the choice for what is built inside it; a column or call that says
`do_fusion` itself is not touched by it. The choice ends with the building: a graph runs as built.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Literal, get_args

import tensorflow as tf

from workbench.errors import OptionError
from workbench.ignored import warn_ignored
from workbench.ops.lookup import fused, stock
from workbench.ops.lookup.grouped import grouped_embedding_lookup
from workbench.ops.lookup.tables import TABLE_DTYPES, unfused_dtype

FusionVersion = Literal["v1", "v2", "grouped"]
_VERSIONS = get_args(FusionVersion)

# Kept per context, so that a graph built in another thread has a choice of its own.
_chosen: ContextVar[FusionVersion | None] = ContextVar("workbench_fusion", default=None)


@contextlib.contextmanager
def fused_embeddings(version: str | None) -> Iterator[None]:
    """Fuses every embedding column and sparse lookup that the workbench builds inside.

    It counts when a lookup is built, not when its column is made or the graph runs. Contexts
    nest, the innermost counts; threads started inside do not inherit it.

    A lookup in a table of another dtype than float32, float16 and bfloat16 stays stock; the first
    one logs a warning.

    Args:
      version: "v1", "v2" or "grouped", which ops take the place of stock ones; None builds stock
        lookups inside.

    Raises:
      OptionError: another version.
    """
    if version is None:
        checked = None
    else:
        checked = _check("fused_embeddings(version)", version, "or None for stock lookups")
    token = _chosen.set(checked)
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen_fusion(do_fusion: FusionVersion | bool | None = None) -> FusionVersion | None:
    """The version a lookup is to be built with; None means the stock one.

    Args:
      do_fusion: what the column or call says. None leaves it to the innermost
        `fused_embeddings`, False means stock in any case, True means "v2" as in older DeepRecs.

    Raises:
      OptionError: none of these.
    """
    if do_fusion is None:
        return _chosen.get()
    if do_fusion is False:
        return None
    if do_fusion is True:
        return "v2"
    return _check("do_fusion", do_fusion, "True (= 'v2'), False (= stock) or None (= the context)")


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
    do_fusion: FusionVersion | bool | None = None,
    *,
    allow_fast_lookup: bool = False,
) -> tf.Tensor:
    """`tf.compat.v1.nn.safe_embedding_lookup_sparse`, fused where that is chosen.

    Args:
      embedding_weights: as in TensorFlow, or an EmbeddingVariable.
      sparse_ids, sparse_weights, combiner, default_id, name, partition_strategy, max_norm,
        allow_fast_lookup: as in TensorFlow. The last one has no effect where fused, and warns.
      do_fusion: see `chosen_fusion`.

    Returns:
      [d_0, ..., d_n-1, dim], of the table's dtype, for ids of shape [d_0, ..., d_n].

    Raises:
      OptionError: another do_fusion, or what a fused lookup does not take; see
        `fused_safe_embedding_lookup_sparse`. ValueError: as TensorFlow's.
    """
    version = _chosen_for(embedding_weights, do_fusion)
    _warn_of_fast_lookup("safe_embedding_lookup_sparse", allow_fast_lookup, version)
    if version == "grouped":
        (embeddings,) = grouped_embedding_lookup(
            [embedding_weights],
            [sparse_ids],
            [sparse_weights],
            combiner,
            max_norm,
            default_id,
            partition_strategy=partition_strategy,
            names=[name],
            name=name,
        )
        return embeddings
    if version is None:
        return stock.safe_embedding_lookup_sparse(
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
    return fused.fused_safe_embedding_lookup_sparse(
        embedding_weights,
        sparse_ids,
        sparse_weights=sparse_weights,
        combiner=combiner,
        default_id=default_id,
        name=name,
        partition_strategy=partition_strategy,
        max_norm=max_norm,
        fusion_version=version,
    )


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
    do_fusion: FusionVersion | bool | None = None,
    *,
    allow_fast_lookup: bool = False,
) -> tf.Tensor:
    """`tf.compat.v1.nn.embedding_lookup_sparse`, fused where that is chosen.

    Args:
      params: as in TensorFlow, or an EmbeddingVariable.
      sp_ids, sp_weights, partition_strategy, name, combiner, max_norm, allow_fast_lookup: as in
        TensorFlow. The last one has no effect where fused, and warns.
      do_fusion: see `chosen_fusion`.

    Returns:
      [rows, dim], of the table's dtype. The fused one has a row for each row of
      `sp_ids.dense_shape`, zeros where it holds no id; the stock one ends with the last row that
      holds an id.

    Raises:
      OptionError: another do_fusion, or what a fused lookup does not take; see
        `fused_embedding_lookup_sparse`. ValueError: as TensorFlow's.
    """
    version = _chosen_for(params, do_fusion)
    _warn_of_fast_lookup("embedding_lookup_sparse", allow_fast_lookup, version)
    if version == "grouped":
        (embeddings,) = grouped_embedding_lookup(
            [params],
            [sp_ids],
            [sp_weights],
            combiner,
            max_norm,
            prune=False,
            partition_strategy=partition_strategy,
            names=[name],
            name=name,
        )
        return embeddings
    if version is None:
        return stock.embedding_lookup_sparse(
            params,
            sp_ids,
            sp_weights,
            partition_strategy=partition_strategy,
            name=name,
            combiner=combiner,
            max_norm=max_norm,
            allow_fast_lookup=allow_fast_lookup,
        )
    lookup = {
        "v1": fused.fused_embedding_lookup_sparse,
        "v2": fused.fused_embedding_lookup_sparse_v2,
    }[version]
    return lookup(
        params,
        sp_ids,
        sparse_weights=sp_weights,
        partition_strategy=partition_strategy,
        name=name,
        combiner=combiner,
        max_norm=max_norm,
        fill_empty_row=False,
    )


def _chosen_for(params: Any, do_fusion: FusionVersion | bool | None) -> FusionVersion | None:
    """The version for a table: where the context chooses it, other dtypes stay TensorFlow's."""
    version = chosen_fusion(do_fusion)
    if version is None or do_fusion is not None:
        return version
    dtype = unfused_dtype(params)
    if dtype is None:
        return version
    warn_ignored(
        f"fused_embeddings(version) for tables of {dtype.name}",
        version,
        "TensorFlow's own ops look them up; fused lookups take "
        + ", ".join(each.name for each in TABLE_DTYPES),
    )
    return None


def _check(what: str, version: Any, otherwise: str) -> FusionVersion:
    if isinstance(version, str) and version in _VERSIONS:
        return version  # type: ignore[return-value]
    raise OptionError(
        f"{what} is {version!r}; expected {', '.join(map(repr, _VERSIONS))}, {otherwise}"
    )


def _warn_of_fast_lookup(function: str, wished: bool, version: FusionVersion | None) -> None:
    if wished and version is not None:
        warn_ignored(
            f"{function}(allow_fast_lookup)", wished, f"the fused lookup {version!r} is another one"
        )

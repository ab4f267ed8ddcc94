"""Lookup: one feature's ids and one table, checked, and what the native ops are told of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.errors import OptionError, UnsupportedError
from workbench.ops.lookup.tables import Table

_COMBINERS = ("mean", "sum", "sqrtn")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Lookup:
    """A checked request.

    Attributes:
      table: what is looked up in.
      ids: int32 or int64 [d_0, …, d_n]; ragged or dense only where `checked_lookup` keeps them so.
      weights: float32, one for each id, or None.
      combiner: "mean", "sum" or "sqrtn".
      max_norm: longest l2 norm, or None.
      default_id: id of a row without ids; None makes it 0.
      prune: whether invalid ids and weights are dropped.
      feature: name in messages.
    """

    table: Table
    ids: Any
    weights: tf.Tensor | None
    combiner: str
    max_norm: float | None
    default_id: int | None
    prune: bool
    feature: str

    @property
    def id_values(self) -> tf.Tensor:
        """The ids alone."""
        return self.ids if isinstance(self.ids, tf.Tensor) else self.ids.values

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
        return plain and self.table.is_local(self.id_values)

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


def checked_lookup(
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
    as_given: bool = False,
) -> Lookup:
    """The lookup that the arguments of `fused_embedding_lookup_sparse` ask for.

    With `as_given` ids of a RaggedTensor of rank 2 are not made a SparseTensor, and those of a
    tensor are allowed, each of which is a row of its own.

    Raises:
      OptionError: a value outside its range, or another number of weights than of ids.
      UnsupportedError: blocknums.
    """
    if blocknums is not None:
        raise UnsupportedError(
            f"blocknums is {blocknums!r}: DynamicEmbeddingVariable has no implementation here; "
            "leave blocknums out, or use the stock lookup with a table of the full dimension"
        )
    if combiner not in (None, *_COMBINERS):
        raise OptionError(f"combiner is {combiner!r}; expected one of {', '.join(_COMBINERS)}")
    if default_id is not None and type(default_id) is not int:
        raise OptionError(f"default_id is {default_id!r}; expected an integer id or None")
    if max_norm is not None and not float(max_norm) >= 0:
        raise OptionError(f"max_norm is {max_norm!r}; expected a length of at least 0, or None")
    checked_ids = _checked_ids(ids, as_given)
    return Lookup(
        table=table,
        ids=checked_ids,
        weights=_weight_values(weights, checked_ids, name or table.name),
        combiner=combiner or "mean",
        max_norm=None if max_norm is None else float(max_norm),
        default_id=default_id,
        prune=bool(prune),
        feature=name or table.name,
    )


def _checked_ids(ids: Any, as_given: bool) -> Any:
    """The SparseTensor that is given, possibly as a RaggedTensor; a tensor where it may be one.

    Raises:
      OptionError: something else, or ids that are no integers.
    """
    if as_given and isinstance(ids, (tf.Tensor, np.ndarray)):
        ids = tf.convert_to_tensor(ids)
        if not ids.shape.rank:
            raise OptionError(f"dense ids have shape {ids.shape}; expected at least one dimension")
        return _of_integers(ids)
    if isinstance(ids, tf.RaggedTensor) and not (as_given and ids.shape.rank == 2):
        ids = ids.to_sparse()
    if isinstance(ids, tf.compat.v1.SparseTensorValue):
        ids = tf.SparseTensor.from_value(ids)
    if not isinstance(ids, (tf.SparseTensor, tf.RaggedTensor)):
        raise OptionError(
            f"ids are {ids!r} of type {type(ids).__name__}; expected a SparseTensor of rank 2 "
            "or more, or a RaggedTensor"
        )
    return _of_integers(ids)


def _of_integers(ids: Any) -> Any:
    if ids.dtype not in (tf.int32, tf.int64):
        raise OptionError(f"ids have dtype {ids.dtype.name}; expected int32 or int64")
    return ids


def _weight_values(weights: Any, ids: Any, feature: str) -> tf.Tensor | None:
    """The weights' values as float32 [n].

    Raises:
      OptionError: as far as shapes are known, there is not one weight for each id.
    """
    if weights is None:
        return None
    if isinstance(weights, (tf.SparseTensor, tf.compat.v1.SparseTensorValue)):
        values = tf.convert_to_tensor(weights.values)
    elif isinstance(weights, tf.RaggedTensor):
        values = weights.flat_values
    else:
        values = tf.convert_to_tensor(weights)
    id_values = ids if isinstance(ids, tf.Tensor) else ids.values
    count, of_ids = values.shape.num_elements(), id_values.shape.num_elements()
    if count is not None and of_ids is not None and count != of_ids:
        raise OptionError(
            f"feature {feature!r}: {count} weights for {of_ids} ids; expected one each "
            f"(Dimensions {of_ids} and {count} are not compatible)"
        )
    return tf.cast(values, tf.float32)

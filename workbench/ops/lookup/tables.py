"""Tables: the embedding table of a lookup, whole or in shards, and how its rows are read."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import resource_variable_ops

from workbench import _native
from workbench.errors import OptionError, UnsupportedError

# What the fused ops take.
TABLE_DTYPES = (tf.float32, tf.float16, tf.bfloat16)
_STRATEGIES = ("div", "mod")
# How an EmbeddingVariable spreads its keys.
_BY_KEY = "mod_key"
# Rows that a table of unknown size has: any key may be asked for.
_ANY = -1


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """An embedding table of one or more shards.

    Attributes:
      shards: variables or tensors, each [rows, dim], or one or more EmbeddingVariables.
      strategy: "div", "mod", or "mod_key" of EmbeddingVariables; which shard has which id.
      name: of the table, for messages.
    """

    shards: tuple[Any, ...]
    strategy: str
    name: str

    @property
    def counts_ids(self) -> bool:
        """Whether `read` asks how often each id came."""
        return self.strategy == _BY_KEY

    def rows(self) -> tf.Tensor:
        """Rows of each shard, int64 [shards]; -1 where any key may be asked for."""
        known = [_static_rows(shard) for shard in self.shards]
        if None not in known:
            return tf.constant(known, tf.int64)
        return tf.stack(
            [
                _dynamic_rows(shard) if rows is None else tf.constant(rows, tf.int64)
                for shard, rows in zip(self.shards, known, strict=True)
            ]
        )

    def total_rows(self) -> tf.Tensor:
        """Rows of all shards, int64 scalar; -1 where any key may be asked for."""
        known = [_static_rows(shard) for shard in self.shards]
        if _ANY in known:
            return tf.constant(_ANY, tf.int64)
        if None not in known:
            return tf.constant(sum(rows or 0 for rows in known), tf.int64)
        return tf.reduce_sum(self.rows())

    def is_local(self, ids: tf.Tensor) -> bool:
        """Whether the table is one variable or tensor on the device of the ids, as far as said."""
        (first, *others) = self.shards
        return not others and not _is_keyed(first) and not self.is_elsewhere(ids)

    @property
    def has_keys(self) -> bool:
        """Whether it is one EmbeddingVariable, of this graph, whose lookups count no keys."""
        (first, *others) = self.shards
        if others or not _is_keyed(first):
            return False
        return not first.option.filter_freq and first.graph is tf.compat.v1.get_default_graph()

    def is_elsewhere(self, ids: tf.Tensor) -> bool:
        """Whether any shard is on another device than the ids, as far as said."""
        return not all(
            shard.device == ids.device or (not ids.device and _is_here(shard.device))
            for shard in self.shards
        )

    def look_up_here(self, **ids: Any) -> tf.Tensor:
        """Combines rows of a local table where they lie; `ids` are the op's other inputs."""
        (shard,) = self.shards
        library = _native.library()
        if is_resource(shard):
            # A gradient tape watches variables, not handles.
            resource_variable_ops.variable_accessed(shard)
            return library.workbench_resource_local_look_up(
                table=shard.handle, T=shard.dtype.base_dtype, **ids
            )
        return library.workbench_local_look_up(table=value_of(shard), **ids)

    def read(self, part: int, ids: tf.Tensor, counts: tf.Tensor | None = None) -> tf.Tensor:
        """Reads rows of one shard, on its device.

        Args:
          part: which shard.
          ids: int32 or int64 [n], rows of that shard, or keys.
          counts: int32 [n], how often each id came; only an EmbeddingVariable asks for it.

        Returns:
          [n, dim]. Its gradient are IndexedSlices; the table is never read or copied as a whole.
        """
        shard = self.shards[part]
        if _is_keyed(shard):
            return shard.sparse_read(ids, counts=counts)
        with ops.colocate_with(shard), _plain_gradient():
            if is_resource(shard):
                return shard.sparse_read(ids)
            # Without GatherV2's axis, and without a read: each would be a node for each feature.
            return tf.raw_ops.Gather(params=value_of(shard), indices=ids)


def table_of(params: Any, partition_strategy: str | None) -> Table:
    """The table that `params` are.

    Args:
      params: a variable or tensor [rows, dim], a PartitionedVariable, a list of these in the order
        of their partitions, or an EmbeddingVariable.
      partition_strategy: "div" or "mod"; None means "div".

    Raises:
      ValueError: nothing is given.
      OptionError: an unknown strategy, a wrong rank or dtype, or shards that differ.
    """
    if partition_strategy not in (None, *_STRATEGIES):
        raise OptionError(
            f"partition_strategy is {partition_strategy!r}; expected 'div' or 'mod', or None for "
            "'div'"
        )
    shards = [_shard(each) for each in _listed(params)]
    if not shards:
        raise ValueError(f"Missing embedding_weights {params!r}.")
    name = str(getattr(shards[0], "name", "") or "").split(":")[0]
    keyed = [_is_keyed(shard) for shard in shards]
    if any(keyed) != all(keyed):
        raise OptionError(
            f"table {name!r} mixes EmbeddingVariables and others; expected shards of one kind"
        )
    _require_alike(shards, name)
    strategy = _BY_KEY if all(keyed) else partition_strategy or "div"
    return Table(shards=tuple(shards), strategy=strategy, name=name)


def unfused_dtype(params: Any) -> tf.DType | None:
    """The dtype of a shard that no fused op takes; None where all can be taken.

    Args:
      params: a table, given as in `table_of`.

    Raises:
      ValueError: nothing is given.
    """
    known = (getattr(shard, "dtype", None) for shard in _listed(params))
    dtypes = (tf.as_dtype(dtype).base_dtype for dtype in known if dtype is not None)
    return next((dtype for dtype in dtypes if dtype not in TABLE_DTYPES), None)


def _plain_gradient() -> contextlib.AbstractContextManager[Any]:
    """Gives gathers the gradient that `gradients` registers: no node but the slices themselves."""
    if tf.executing_eagerly():
        return contextlib.nullcontext()
    return tf.compat.v1.get_default_graph().gradient_override_map(
        {"Gather": "WorkbenchGather", "ResourceGather": "WorkbenchGather"}
    )


def value_of(shard: Any) -> tf.Tensor:
    """A tensor, or a variable without a handle, as the input of an op; nothing is read."""
    return shard._ref() if isinstance(shard, tf.compat.v1.Variable) else shard


def _listed(params: Any) -> Sequence[Any]:
    if params is None:
        raise ValueError(f"Missing embedding_weights {params!r}.")
    if isinstance(params, (list, tuple)):
        return [shard for each in params for shard in _listed(each)]
    if hasattr(params, "partitions"):
        return list(params.partitions)
    # TensorFlow's PartitionedVariable is iterable; so are tensors, by rows.
    if isinstance(params, tf.compat.v1.Variable) or tf.is_tensor(params) or _is_keyed(params):
        return [params]
    if hasattr(params, "_variable_list"):
        return list(params)
    return [params]


def _shard(given: Any) -> Any:
    if _is_keyed(given) or isinstance(given, tf.Variable):
        return given
    return tf.convert_to_tensor(given)


def _is_here(device: str) -> bool:
    """Whether a device is this process's CPU, on which ops of a function end up with its tables."""
    spec = tf.DeviceSpec.from_string(device)
    return spec.job == "localhost" and spec.device_type == "CPU"


def _is_keyed(shard: Any) -> bool:
    return bool(getattr(shard, "is_embedding_variable", False))


def is_resource(shard: Any) -> bool:
    """Whether a shard is a variable behind a handle."""
    return hasattr(shard, "sparse_read") and hasattr(shard, "handle")


def _require_alike(shards: Sequence[Any], name: str) -> None:
    for shard in shards:
        if shard.shape.rank != 2:
            raise OptionError(
                f"table {name!r} has a shard of shape {shard.shape}; expected [rows, dim]"
            )
    dims = {tf.compat.dimension_value(shard.shape[1]) for shard in shards}
    dtypes = {shard.dtype.base_dtype for shard in shards}
    if len(dims) > 1 or len(dtypes) > 1:
        raise OptionError(
            f"table {name!r} has shards of dims {sorted(dims, key=str)} and dtypes "
            f"{sorted(dtype.name for dtype in dtypes)}; expected one of each"
        )
    (dtype,) = dtypes
    if dtype not in TABLE_DTYPES:
        raise UnsupportedError(
            f"table {name!r} has dtype {dtype.name}; a fused lookup takes "
            f"{', '.join(each.name for each in TABLE_DTYPES)}; use the stock lookup for others"
        )


def _static_rows(shard: Any) -> int | None:
    return _ANY if _is_keyed(shard) else tf.compat.dimension_value(shard.shape[0])


def _dynamic_rows(shard: Any) -> tf.Tensor:
    with ops.colocate_with(shard):
        if is_resource(shard):
            # The shape alone: reading the value could copy the table.
            return tf.raw_ops.VariableShape(input=shard.handle, out_type=tf.int64)[0]
        return tf.shape(shard, out_type=tf.int64)[0]

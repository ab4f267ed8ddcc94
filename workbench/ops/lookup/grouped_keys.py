"""Grouped lookups in EmbeddingVariables: rows are found by key once, and combined where they lie.

The lookup says which rows it found, so that an update need not find them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from workbench import _native
from workbench.ops.lookup.request import Lookup


def fits_keys(lookup: Lookup) -> bool:
    """Whether the op can take a feature of a table that has keys.

    It takes none with weights or `max_norm`, whose gradients need the rows once more; no keys below
    0, which are keys only where they are not pruned; and no table on another device.
    """
    plain = lookup.weights is None and lookup.max_norm is None
    positive = lookup.prune and (lookup.default_id or 0) >= 0
    return plain and positive and _is_beside(lookup.table.shards[0], lookup.id_values)


def look_up_keys(tables: Sequence[Any], arguments: Mapping[str, Any]) -> list[tf.Tensor]:
    """The vectors of one op.

    Args:
      tables: EmbeddingVariables, all trainable or none, all with eviction or none.
      arguments: of WorkbenchGroupedLookUp, but for the tables.
    """
    beside = tf.compat.v1.get_default_graph().colocate_with
    with beside(tables[0].handle.op, ignore_existing=True):
        outputs = _native.library().workbench_embedding_grouped_look_up(
            tables=[each.handle for each in tables],
            default_rows=[each.default_rows.value() for each in tables],
            step=tables[0].step(),
            read_only=not tables[0].trainable,
            T=tf.float32,
            **arguments,
        )
    return list(outputs.vectors)


def _is_beside(table: Any, ids: tf.Tensor) -> bool:
    """Whether a table is on the device of the ids, as far as said; without a job it is here."""
    there, here = (tf.DeviceSpec.from_string(each) for each in (table.device, ids.device or ""))
    if here.job is None and here.device_type in (None, "CPU"):
        return there.job in (None, "localhost") and there.device_type in (None, "CPU")
    return table.device == ids.device

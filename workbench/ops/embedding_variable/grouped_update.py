"""Updates of EmbeddingVariables whose rows a grouped lookup found: no key is searched again."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from workbench import _native
from workbench.ops.embedding_variable.slots import Slot
from workbench.ops.embedding_variable.table import EmbeddingVariable
from workbench.ops.optimizer.row_updates import grouped_gradient, of_one_table

_LOOKUP = "WorkbenchEmbeddingGroupedLookUp"


def apply_where_found(
    table: EmbeddingVariable,
    gradient: tf.IndexedSlices,
    rule: str,
    scalars: Sequence[tf.Tensor],
    slots: Sequence[Slot],
) -> tf.Operation | None:
    """The op that changes rows by the gradient of a grouped lookup, which is not even made.

    Args:
      table: whose rows they are.
      gradient: of all that reads the table.
      rule, scalars: of WorkbenchEmbeddingGroupedApply.
      slots: the optimizer's.

    Returns:
      None if the gradient is not that of one grouped lookup, or was changed since.
    """
    made_by = grouped_gradient(gradient.values, gradient.indices)
    if made_by is None:
        return None
    lookup = _lookup_of(made_by)
    if lookup is None:
        return None
    number, table_of = gradient.indices.value_index, made_by.get_attr("table_of")
    features = [feature for feature, each in enumerate(table_of) if each == number]
    found = lookup.outputs[lookup.get_attr("M") :]
    return _native.library().workbench_embedding_grouped_apply(
        tables=[table.handle],
        scalars=scalars,
        found_rows=[found[feature] for feature in features],
        generations=[found[len(table_of) + number]],
        rule=rule,
        slot_names=[slot.name for slot in slots],
        slot_initials=[slot.initial for slot in slots],
        **of_one_table(made_by, number),
    )


def _lookup_of(gradient: tf.Operation) -> tf.Operation | None:
    """The lookup in EmbeddingVariables of which this is the gradient; it waits for that."""
    return next((each for each in gradient.control_inputs if each.type == _LOOKUP), None)

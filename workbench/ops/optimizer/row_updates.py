"""Sparse gradients → native updates of the rows that they name, each row once.

The gradient of a grouped lookup is not even made: the update takes the lookup's ids and changes
each row as soon as its gradient is summed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from workbench import _native

_GROUPED = "WorkbenchGroupedLookUpGrad"
# Ops whose gradients have each row of a table once.
_EACH_ROW_ONCE = (_GROUPED, "WorkbenchLocalLookUpGrad")
# Attributes that have a value for each feature.
_OF_FEATURES = (
    *("combiners", "prune_invalid_ids", "fill_empty_rows"),
    *("default_ids", "features"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowUpdate:
    """How an optimizer changes rows of one table.

    Attributes:
      rule: attribute of op WorkbenchRowsApply, which says what slots and scalars are.
      slots: variables.
      scalars: numbers or tensors.
      use_locking: keep other updates out meanwhile.
    """

    rule: str
    slots: Sequence[Any] = ()
    scalars: Sequence[Any] = ()
    use_locking: bool = False

    def apply(self, table: Any, values: tf.Tensor, rows: tf.Tensor) -> Any:
        """The op that changes the rows.

        Args:
          table: a float32 variable [n, …].
          values: [m, …] gradients.
          rows: [m] what they are of; gradients of one row are summed first.
        """
        scalars = [tf.cast(each, tf.float32) for each in self.scalars]
        options = {"rule": self.rule, "use_locking": self.use_locking}
        library, is_resource = _native.library(), hasattr(table, "handle")
        held, *slots = (
            each.handle if is_resource else each._ref() for each in (table, *self.slots)
        )
        gradient = grouped_gradient(values, rows)
        if gradient is not None:
            apply = (
                library.workbench_resource_grouped_apply
                if is_resource
                else library.workbench_grouped_apply
            )
            given = of_one_table(gradient, rows.value_index)
            return apply(tables=[held], slots=slots, scalars=scalars, **given, **options)
        if not are_different(rows):
            values, rows = _each_once(values, rows)
        apply = (
            library.workbench_resource_rows_apply if is_resource else library.workbench_rows_apply
        )
        return apply(held, slots, scalars, values, tf.cast(rows, tf.int64), **options)


def can_update(table: Any, gradient: Any) -> bool:
    """Whether the native updates take a table, and a gradient of some of its rows."""
    return (
        isinstance(table, tf.Variable)
        # Its rows have an op of their own.
        and not getattr(table, "is_embedding_variable", False)
        and table.dtype.base_dtype == tf.float32
        and isinstance(gradient, tf.IndexedSlices)
        and gradient.dtype == tf.float32
    )


def are_different(rows: tf.Tensor) -> bool:
    """Whether rows are known to come once each: they are of a fused lookup's gradient."""
    made_by = _op_of(rows)
    return made_by is not None and made_by.type in _EACH_ROW_ONCE


def _op_of(tensor: tf.Tensor) -> tf.Operation | None:
    # Eager tensors know no op.
    return None if isinstance(tensor, tf.__internal__.EagerTensor) else tensor.op


def _each_once(values: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    different, places = tf.unique(rows)
    return tf.math.unsorted_segment_sum(values, places, tf.size(different)), different


def grouped_gradient(values: tf.Tensor, rows: tf.Tensor) -> tf.Operation | None:
    """The gradient of a grouped lookup that made both, untouched since."""
    values = _ungated(values)
    made_by = _op_of(values)
    if made_by is None or made_by.type != _GROUPED:
        return None
    tables = made_by.get_attr("N")
    both = _op_of(rows) is made_by and values.value_index == rows.value_index + tables
    return made_by if both else None


def _ungated(values: tf.Tensor) -> tf.Tensor:
    """What `gate_gradients` only made wait: a lookup's gradient does not read the table."""
    made_by = _op_of(values)
    while made_by is not None and made_by.type == "Identity":
        (values,) = made_by.inputs
        made_by = values.op
    return values


def of_one_table(gradient: tf.Operation, table: int) -> dict[str, Any]:
    """Inputs and attributes of a grouped lookup's gradient, of one of its tables."""
    count, outputs = gradient.get_attr("F"), gradient.get_attr("M")
    table_of, dims = gradient.get_attr("table_of"), gradient.get_attr("dims")
    concatenated = gradient.get_attr("concatenated")
    begins, width = [], 0
    for each in table_of:
        begins.append(width)
        width += dims[each]
    features = [feature for feature in range(count) if table_of[feature] == table]
    gradients, ids = list(gradient.inputs[:outputs]), list(gradient.inputs[outputs:])
    parts = (ids[:count], ids[count : 2 * count], ids[2 * count : 3 * count])
    weights = dict(zip(gradient.get_attr("weights_of"), ids[3 * count :], strict=True))
    weighted = [feature for feature in features if feature in weights]
    given = {
        name: [part[feature] for feature in features]
        for name, part in zip(("ids", "rows", "dense_shapes"), parts, strict=True)
    }
    attributes = {
        name: [gradient.get_attr(name)[feature] for feature in features] for name in _OF_FEATURES
    }
    return {
        **given,
        **attributes,
        "weights": [weights[feature] for feature in weighted],
        "weights_of": [features.index(feature) for feature in weighted],
        "gradients": gradients if concatenated else [gradients[feature] for feature in features],
        "columns": [begins[feature] for feature in features],
        "table_of": [0] * len(features),
        "dims": [dims[table]],
        "concatenated": concatenated,
    }

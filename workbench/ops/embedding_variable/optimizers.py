"""Optimizers of `tf.compat.v1.train` that also train EmbeddingVariables.

Of everything else they are the stock ones, in one model too. Of an EmbeddingVariable they sum the
gradients of each key, in the order in which the keys come, and then change the key's row once; rows
of other keys stay as they are, and so do their slots. A key without a row is left out.

Gradients of fused lookups name each row of a table once; these optimizers don't search them for
duplicates again, as the stock ones do, and SGD and Adagrad update such rows of float32 natively, as
`fused_update` has it for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from workbench import _native
from workbench.ops.embedding_variable.grouped_update import apply_where_found
from workbench.ops.embedding_variable.slots import Slot
from workbench.ops.embedding_variable.table import EmbeddingVariable
from workbench.ops.optimizer import v1_rules
from workbench.ops.optimizer.row_updates import are_different, can_update


class _DifferentRows:
    """Applies gradients whose rows are known to be different as they are."""

    # How rows of float32 change natively; None: as TensorFlow changes them.
    _native_rule: Any = None

    def _apply_sparse_duplicate_indices(self, grad: tf.IndexedSlices, var: Any) -> Any:
        if not are_different(grad.indices):
            return super()._apply_sparse_duplicate_indices(grad, var)  # type: ignore[misc]
        if self._native_rule is not None and can_update(var, grad):
            return self._native_rule(var).apply(var, grad.values, grad.indices)
        return self._apply_sparse(grad, var)  # type: ignore[attr-defined]

    def _resource_apply_sparse_duplicate_indices(
        self, grad: tf.Tensor, handle: Any, indices: tf.Tensor
    ) -> Any:
        if not are_different(indices):
            return super()._resource_apply_sparse_duplicate_indices(  # type: ignore[misc]
                grad, handle, indices
            )
        if self._native_rule is not None and can_update(handle, tf.IndexedSlices(grad, indices)):
            return self._native_rule(handle).apply(handle, grad, indices)
        return self._resource_apply_sparse(grad, handle, indices)  # type: ignore[attr-defined]


class GradientDescentOptimizer(_DifferentRows, tf.compat.v1.train.GradientDescentOptimizer):
    """`tf.compat.v1.train.GradientDescentOptimizer` that also trains EmbeddingVariables.

    row −= learning_rate · g, where g is the sum of the key's gradients in the batch. Arguments as
    in TensorFlow; no slots.
    """

    _native_rule = v1_rules.gradient_descent

    def _apply_sparse_duplicate_indices(self, grad: tf.IndexedSlices, var: Any) -> Any:
        if not isinstance(var, EmbeddingVariable):
            return super()._apply_sparse_duplicate_indices(grad, var)
        return _applied("gradient_descent", var, grad, (self._learning_rate_tensor,))


class AdagradOptimizer(_DifferentRows, tf.compat.v1.train.AdagradOptimizer):
    """`tf.compat.v1.train.AdagradOptimizer` that also trains EmbeddingVariables.

    accumulator += g²; row −= learning_rate · g / √accumulator, where g is the sum of the key's
    gradients in the batch (Duchi et al., 2011). Arguments as in TensorFlow. Slot "accumulator",
    [rows, dim] float32, starts at `initial_accumulator_value`.
    """

    _native_rule = v1_rules.adagrad

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        tables, others = _split(var_list)
        for table in tables:
            table.slots.make(self, "accumulator", self._name, self._initial_accumulator_value)
        super()._create_slots(others)

    def get_slot(self, var: Any, name: str) -> Any:
        """As in TensorFlow; of an EmbeddingVariable a `Slot`."""
        return var.slots.find(self, name) if _is_table(var) else super().get_slot(var, name)

    def _apply_sparse_duplicate_indices(self, grad: tf.IndexedSlices, var: Any) -> Any:
        if not isinstance(var, EmbeddingVariable):
            return super()._apply_sparse_duplicate_indices(grad, var)
        slots = (self.get_slot(var, "accumulator"),)
        return _applied("adagrad", var, grad, (self._learning_rate_tensor,), slots)


class AdamOptimizer(_DifferentRows, tf.compat.v1.train.AdamOptimizer):
    """`tf.compat.v1.train.AdamOptimizer` that also trains EmbeddingVariables.

    TensorFlow's moves every row of a variable in every step, because the moments of a row without
    a gradient decay. Of an EmbeddingVariable only the batch's rows move, and only their moments
    decay, as DeepRec and "lazy Adam" have it. The powers of beta are the stock optimizer's.
    Arguments as in TensorFlow. Slots "m" and "v", [rows, dim] float32, start at 0 (Kingma and Ba,
    2015).
    """

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        tables, others = _split(var_list)
        first = min(var_list, key=lambda var: var.name)
        for name, beta in (("beta1_power", self._beta1), ("beta2_power", self._beta2)):
            self._create_non_slot_variable(initial_value=beta, name=name, colocate_with=first)
        for table in tables:
            table.slots.make(self, "m", self._name, 0.0)
            table.slots.make(self, "v", self._name, 0.0)
        if others:
            super()._create_slots(others)

    def get_slot(self, var: Any, name: str) -> Any:
        """As in TensorFlow; of an EmbeddingVariable a `Slot`."""
        return var.slots.find(self, name) if _is_table(var) else super().get_slot(var, name)

    def _apply_sparse_duplicate_indices(self, grad: tf.IndexedSlices, var: Any) -> Any:
        if not isinstance(var, EmbeddingVariable):
            return super()._apply_sparse_duplicate_indices(grad, var)
        powers = self._get_beta_accumulators()
        scalars = (*powers, self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        slots = (self.get_slot(var, "m"), self.get_slot(var, "v"))
        return _applied("adam", var, grad, scalars, slots)


class FtrlOptimizer(_DifferentRows, tf.compat.v1.train.FtrlOptimizer):
    """`tf.compat.v1.train.FtrlOptimizer` that also trains EmbeddingVariables.

    FTRL-proximal with both regularizations and shrinkage (McMahan et al., 2013), on the sum of the
    key's gradients in the batch. Arguments as in TensorFlow. Slots "accum", which starts at
    `initial_accumulator_value`, and "linear", which starts at 0; both [rows, dim] float32.
    """

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        tables, others = _split(var_list)
        for table in tables:
            accum, linear = self._accum_name or self._name, self._linear_name or self._name
            table.slots.make(self, "accum", accum, self._initial_accumulator_value)
            table.slots.make(self, "linear", linear, 0.0)
        super()._create_slots(others)

    def get_slot(self, var: Any, name: str) -> Any:
        """As in TensorFlow; of an EmbeddingVariable a `Slot`."""
        return var.slots.find(self, name) if _is_table(var) else super().get_slot(var, name)

    def _apply_sparse_duplicate_indices(self, grad: tf.IndexedSlices, var: Any) -> Any:
        if not isinstance(var, EmbeddingVariable):
            return super()._apply_sparse_duplicate_indices(grad, var)
        scalars = (
            self._learning_rate_tensor,
            self._l1_regularization_strength_tensor,
            self._adjusted_l2_regularization_strength_tensor,
            self._l2_shrinkage_regularization_strength_tensor,
            self._learning_rate_power_tensor,
        )
        slots = (self.get_slot(var, "accum"), self.get_slot(var, "linear"))
        return _applied("ftrl", var, grad, scalars, slots)


def _is_table(var: Any) -> bool:
    return isinstance(var, EmbeddingVariable)


def _split(variables: Sequence[Any]) -> tuple[list[EmbeddingVariable], list[Any]]:
    tables = [var for var in variables if _is_table(var)]
    return tables, [var for var in variables if not _is_table(var)]


def _applied(
    rule: str,
    table: EmbeddingVariable,
    gradient: tf.IndexedSlices,
    scalars: Sequence[Any],
    slots: Sequence[Slot] = (),
) -> tf.Operation:
    """The op that changes rows of a table: where a grouped lookup found them, if one did."""
    numbers = [tf.cast(each, tf.float32) for each in scalars]
    applied = apply_where_found(table, gradient, rule, numbers, slots)
    if applied is not None:
        return applied
    named: dict[str, Any] = {}
    if slots:
        named["slot_names"] = [slot.name for slot in slots]
        named["slot_initials"] = [slot.initial for slot in slots]
    apply = getattr(_native.library(), f"workbench_embedding_apply_{rule}")
    keys = tf.cast(gradient.indices, tf.int64)
    return apply(table.handle, *numbers, gradient.values, keys, **named)

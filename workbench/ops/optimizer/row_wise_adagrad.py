"""Row-wise Adagrad: one accumulated square a row, an eighth or less of a slot's memory.

accumulator += mean(g²) over the row; row −= learning_rate · g / (√accumulator + epsilon), where g
is the sum of the row's gradients (FBGEMM's "exact row-wise Adagrad"; Mudigere et al., 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from workbench.errors import OptionError
from workbench.keras_in_use import keras_in_use
from workbench.ops.optimizer import keras_rules, v1_rules
from workbench.ops.optimizer.row_updates import can_update

v1 = tf.compat.v1
keras = keras_in_use()
_Optimizer: Any = keras.optimizers.Optimizer


class RowWiseAdagrad(_Optimizer):
    """Adagrad of Keras with one accumulator for each row of a variable.

    Rows are those of the first dimension; a vector's values are its rows. A batch's gradients of a
    row are summed first. Sparse gradients of float32 change their rows natively, and a model with
    them is compiled with jit_compile=False.

    Args:
      learning_rate: a float, a schedule, or a callable.
      initial_accumulator_value: where accumulators start, at least 0.
      epsilon: beside the root.
      name: of the optimizer.
      **options: those of `tf.keras.optimizers.Optimizer`.
    """

    updates_rows_natively = True  # with `fused_update` or without

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.0,
        epsilon: float = 1e-8,
        name: str = "row_wise_adagrad",
        **options: Any,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **options)
        self.initial_accumulator_value = _checked(initial_accumulator_value)
        self.epsilon = epsilon

    def build(self, variables: Sequence[Any]) -> None:
        """Makes the accumulators [rows] of variables."""
        if self.built:
            return
        super().build(variables)
        start = keras.initializers.Constant(self.initial_accumulator_value)
        self._accumulators = [
            self.add_variable(
                shape=tuple(variable.shape)[:1],
                initializer=start,
                dtype=variable.dtype,
                name=f"{variable.name}_accumulator",
            )
            for variable in variables
        ]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """One step of a variable; gradient is a tensor or IndexedSlices."""
        if can_update(variable, gradient):
            update = keras_rules.row_wise_adagrad(self, variable, learning_rate)
            update.apply(variable, gradient.values, gradient.indices)
            return
        accumulator = self._accumulators[self._get_variable_index(variable)].value
        rate = tf.cast(learning_rate, variable.dtype)
        _change(variable, accumulator, tf.convert_to_tensor(gradient), rate, self.epsilon)

    def get_config(self) -> dict[str, Any]:
        """Arguments that make another one like it."""
        own = {
            "initial_accumulator_value": self.initial_accumulator_value,
            "epsilon": self.epsilon,
        }
        return {**super().get_config(), **own}


class RowWiseAdagradOptimizer(tf.compat.v1.train.Optimizer):
    """`RowWiseAdagrad` as an optimizer of `tf.compat.v1.train`.

    Slot "accumulator" is [rows].

    Args:
      learning_rate: a float or a tensor.
      initial_accumulator_value: where accumulators start, at least 0.
      epsilon: beside the root.
      use_locking: keep other updates out meanwhile.
      name: of the optimizer.
    """

    updates_rows_natively = True  # with `fused_update` or without

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.0,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "RowWiseAdagrad",
    ):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = _checked(initial_accumulator_value)
        self._epsilon = epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            dtype = variable.dtype.base_dtype
            start = v1.constant_initializer(self._initial_accumulator_value, dtype=dtype)
            self._get_or_make_slot_with_initializer(
                variable, start, variable.shape[:1], dtype, "accumulator", self._name
            )

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = tf.convert_to_tensor(rate, name="learning_rate")

    def _apply_dense(self, grad: tf.Tensor, var: Any) -> Any:
        return self._changed(grad, var)

    def _resource_apply_dense(self, grad: tf.Tensor, var: Any) -> Any:
        return self._changed(grad, var)

    def _apply_sparse_duplicate_indices(self, grad: tf.IndexedSlices, var: Any) -> Any:
        if not can_update(var, grad):
            return self._changed(tf.convert_to_tensor(grad), var)
        return v1_rules.row_wise_adagrad(self, var).apply(var, grad.values, grad.indices)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: tf.Tensor, handle: Any, indices: tf.Tensor
    ) -> Any:
        slices = tf.IndexedSlices(grad, indices, tf.shape(handle, out_type=indices.dtype))
        return self._apply_sparse_duplicate_indices(slices, handle)

    def _changed(self, gradient: tf.Tensor, variable: Any) -> Any:
        rate = tf.cast(self._learning_rate_tensor, variable.dtype.base_dtype)
        slot = self.get_slot(variable, "accumulator")
        return _change(variable, slot, gradient, rate, self._epsilon)


def _checked(initial_accumulator_value: float) -> float:
    if initial_accumulator_value < 0:
        raise OptionError(
            f"initial_accumulator_value is {initial_accumulator_value!r}; expected at least 0"
        )
    return initial_accumulator_value


def _change(
    variable: Any, accumulator: Any, gradient: tf.Tensor, rate: tf.Tensor, epsilon: float
) -> Any:
    columns = list(range(1, gradient.shape.rank))
    grown = accumulator.assign_add(tf.reduce_mean(tf.square(gradient), columns))
    by_row = tf.reshape(grown, tf.concat([tf.shape(grown), tf.ones([len(columns)], tf.int32)], 0))
    return variable.assign_sub(rate * gradient / (tf.sqrt(by_row) + epsilon))

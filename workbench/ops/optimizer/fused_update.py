"""`fused_update`: an optimizer whose sparse gradients are applied natively, to the batch's rows.

Dense gradients, and those of other dtypes than float32, stay the optimizer's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from workbench.errors import UnsupportedError
from workbench.keras_in_use import keras_in_use
from workbench.ops.optimizer import keras_rules, v1_rules
from workbench.ops.optimizer.row_updates import RowUpdate, can_update

v1 = tf.compat.v1
# An optimizer, a table and, of Keras, the learning rate → how its rows change.
_V1Rule = Callable[[Any, Any], RowUpdate]
_KerasRule = Callable[[Any, Any, Any], RowUpdate]


def fused_update(optimizer: Any) -> Any:
    """Lets an optimizer apply sparse gradients natively: each row of a batch once, in one pass.

    Gradients of a row are summed first, then row and slots change where they lie. Of a grouped
    lookup (`grouped_embedding_lookup`), in a graph or `tf.function`, that is one op from the
    lookup's gradient to the table, and no gradient of rows is made. Results are those of the
    optimizer, but for what it does to rows that a batch did not ask for: those stay, and so do
    their slots, where Adam lets the moments of every row decay, and Keras's Ftrl moves each.
    Keras's Adagrad squares several gradients of a row one by one; here it is their sum.

    Slots, `get_config` and what is saved are the optimizer's own: a checkpoint can be read with
    `fused_update` or without.

    Args:
      optimizer: of `tf.keras.optimizers`: SGD without momentum, Adagrad, Adam without amsgrad,
        Ftrl; or of `tf.compat.v1.train` or `workbench.ops`: GradientDescentOptimizer,
        AdagradOptimizer, AdamOptimizer, FtrlOptimizer. RowWiseAdagrad and RowWiseAdagradOptimizer
        of `workbench.ops` are fused as they are. A Keras model that trains with it is compiled with
        jit_compile=False.

    Returns:
      The same optimizer.

    Raises:
      UnsupportedError: another optimizer, or other options.
    """
    if getattr(optimizer, "updates_rows_natively", False):
        return optimizer
    for rules, fuse in ((_v1_rules, _fuse_v1), (_keras_rules, _fuse_keras)):
        rule = _find(optimizer, rules())
        if rule is not None:
            _check_options(optimizer)
            fuse(optimizer, rule)
            return optimizer
    known = [each.__name__ for each in (*_keras_rules(), *_v1_rules())]
    raise UnsupportedError(
        f"fused_update does not know {type(optimizer).__module__}.{type(optimizer).__name__}; "
        f"expected one of {', '.join(known)}"
    )


def _v1_rules() -> dict[type, _V1Rule]:
    return {
        v1.train.GradientDescentOptimizer: v1_rules.gradient_descent,
        v1.train.AdagradOptimizer: v1_rules.adagrad,
        v1.train.AdamOptimizer: v1_rules.adam,
        v1.train.FtrlOptimizer: v1_rules.ftrl,
    }


def _keras_rules() -> dict[type, _KerasRule]:
    keras = keras_in_use()
    return {
        keras.optimizers.SGD: keras_rules.sgd,
        keras.optimizers.Adagrad: keras_rules.adagrad,
        keras.optimizers.Adam: keras_rules.adam,
        keras.optimizers.Ftrl: keras_rules.ftrl,
    }


def _find(optimizer: Any, rules: Mapping[type, Any]) -> Any:
    """The rule of an optimizer's class; what subclasses of others change is not known."""
    for each in type(optimizer).__mro__:
        if each in rules:
            return rules[each]
        if not each.__module__.startswith("workbench."):
            break
    return None


def _check_options(optimizer: Any) -> None:
    for option in ("momentum", "amsgrad"):
        value = getattr(optimizer, option, None)
        if value:
            raise UnsupportedError(
                f"fused_update does not know {type(optimizer).__name__} with {option}={value}; "
                f"expected it without {option}"
            )


def _fuse_v1(optimizer: Any, rule: _V1Rule) -> None:
    # Instances, not classes: other optimizers of the class stay as they are.
    own = optimizer._apply_sparse_duplicate_indices
    own_of_resource = optimizer._resource_apply_sparse_duplicate_indices

    def apply(grad: tf.IndexedSlices, var: Any) -> Any:
        if not can_update(var, grad):
            return own(grad, var)
        return rule(optimizer, var).apply(var, grad.values, grad.indices)

    def apply_of_resource(grad: tf.Tensor, handle: Any, indices: tf.Tensor) -> Any:
        if not can_update(handle, tf.IndexedSlices(grad, indices)):
            return own_of_resource(grad, handle, indices)
        return rule(optimizer, handle).apply(handle, grad, indices)

    optimizer._apply_sparse_duplicate_indices = apply
    optimizer._resource_apply_sparse_duplicate_indices = apply_of_resource


def _fuse_keras(optimizer: Any, rule: _KerasRule) -> None:
    own = optimizer.update_step

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> Any:
        if not can_update(variable, gradient):
            return own(gradient, variable, learning_rate)
        update = rule(optimizer, variable, learning_rate)
        return update.apply(variable, gradient.values, gradient.indices)

    optimizer.update_step = update_step

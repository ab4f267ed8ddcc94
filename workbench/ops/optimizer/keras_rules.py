"""How optimizers of Keras 3 change rows of a table, in the terms of the native ops."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.ops.optimizer.row_updates import RowUpdate


def sgd(_optimizer: Any, _table: Any, learning_rate: Any) -> RowUpdate:
    """Of SGD without momentum."""
    return RowUpdate(rule="gradient_descent", scalars=(learning_rate,))


def adagrad(optimizer: Any, table: Any, learning_rate: Any) -> RowUpdate:
    """Of Adagrad, where a row has one gradient."""
    return RowUpdate(
        rule="adagrad",
        slots=_slots(optimizer, table, "_accumulators"),
        scalars=(learning_rate, optimizer.epsilon),
    )


def row_wise_adagrad(optimizer: Any, table: Any, learning_rate: Any) -> RowUpdate:
    """Of RowWiseAdagrad."""
    return RowUpdate(
        rule="row_wise_adagrad",
        slots=_slots(optimizer, table, "_accumulators"),
        scalars=(learning_rate, optimizer.epsilon),
    )


def adam(optimizer: Any, table: Any, learning_rate: Any) -> RowUpdate:
    """Of Adam without amsgrad, but that moments of other rows don't decay."""
    betas = (optimizer.beta_1, optimizer.beta_2)
    step = tf.cast(optimizer.iterations.value, tf.float32) + 1.0
    return RowUpdate(
        rule="adam",
        slots=_slots(optimizer, table, "_momentums", "_velocities"),
        scalars=(
            *(tf.pow(tf.cast(beta, tf.float32), step) for beta in betas),
            learning_rate,
            *betas,
            optimizer.epsilon,
            *(1.0 - beta for beta in betas),
        ),
    )


def ftrl(optimizer: Any, table: Any, learning_rate: Any) -> RowUpdate:
    """Of Ftrl, but that other rows stay."""
    rate = tf.cast(learning_rate, tf.float32)
    return RowUpdate(
        rule="ftrl",
        slots=_slots(optimizer, table, "_accumulators", "_linears"),
        scalars=(
            rate,
            optimizer.l1_regularization_strength,
            optimizer.l2_regularization_strength + optimizer.beta / (2.0 * rate),
            optimizer.l2_shrinkage_regularization_strength,
            optimizer.learning_rate_power,
        ),
    )


def _slots(optimizer: Any, table: Any, *names: str) -> list[Any]:
    index = optimizer._get_variable_index(table)
    return [getattr(optimizer, name)[index].value for name in names]

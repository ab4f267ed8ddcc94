"""How optimizers of `tf.compat.v1.train` change rows of a table, in the terms of the native ops."""

from __future__ import annotations

from typing import Any

from workbench.ops.optimizer.row_updates import RowUpdate


def gradient_descent(optimizer: Any, _table: Any) -> RowUpdate:
    """Of GradientDescentOptimizer."""
    return RowUpdate(
        rule="gradient_descent",
        scalars=(optimizer._learning_rate_tensor,),
        use_locking=optimizer._use_locking,
    )


def adagrad(optimizer: Any, table: Any) -> RowUpdate:
    """Of AdagradOptimizer, to the bit."""
    return RowUpdate(
        rule="adagrad",
        slots=(optimizer.get_slot(table, "accumulator"),),
        scalars=(optimizer._learning_rate_tensor, 0.0),
        use_locking=optimizer._use_locking,
    )


def row_wise_adagrad(optimizer: Any, table: Any) -> RowUpdate:
    """Of RowWiseAdagradOptimizer."""
    return RowUpdate(
        rule="row_wise_adagrad",
        slots=(optimizer.get_slot(table, "accumulator"),),
        scalars=(optimizer._learning_rate_tensor, optimizer._epsilon),
        use_locking=optimizer._use_locking,
    )


def adam(optimizer: Any, table: Any) -> RowUpdate:
    """Of AdamOptimizer, but that moments of other rows don't decay."""
    return RowUpdate(
        rule="adam",
        slots=[optimizer.get_slot(table, name) for name in ("m", "v")],
        scalars=(
            *optimizer._get_beta_accumulators(),
            *(optimizer._lr_t, optimizer._beta1_t, optimizer._beta2_t, optimizer._epsilon_t),
            *(1.0 - optimizer._beta1_t, 1.0 - optimizer._beta2_t),
        ),
        use_locking=optimizer._use_locking,
    )


def ftrl(optimizer: Any, table: Any) -> RowUpdate:
    """Of FtrlOptimizer."""
    return RowUpdate(
        rule="ftrl",
        slots=[optimizer.get_slot(table, name) for name in ("accum", "linear")],
        scalars=(
            optimizer._learning_rate_tensor,
            optimizer._l1_regularization_strength_tensor,
            optimizer._adjusted_l2_regularization_strength_tensor,
            optimizer._l2_shrinkage_regularization_strength_tensor,
            optimizer._learning_rate_power_tensor,
        ),
        use_locking=optimizer._use_locking,
    )

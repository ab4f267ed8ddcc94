"""`tf.contrib.layers.feature_column_ops`: the input layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from workbench.compat.absent import absent as _absent

__all__ = ["input_from_feature_columns"]
__getattr__ = _absent("tf.contrib.layers.feature_column_ops", __all__)


def input_from_feature_columns(
    columns_to_tensors: dict[str, Any],
    feature_columns: Any,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: dict[Any, tf.Tensor] | None = None,
) -> tf.Tensor:
    """`tf.compat.v1.feature_column.input_layer` by contrib's name.

    Unlike contrib, the columns stand in the order of their names, and a variable is called
    `input_from_feature_columns/input_layer/<column>/embedding_weights`.

    Args:
      columns_to_tensors: the features by name.
      feature_columns: dense columns.
      weight_collections: graph collections that the variables join.
      trainable: False keeps the variables out of TRAINABLE_VARIABLES.
      scope: variable scope of the layer; None makes one from "input_from_feature_columns".
      cols_to_outs: is filled with each column's part of the result.

    Returns:
      float32 [batch, sum of the columns' widths].
    """
    with tf.compat.v1.variable_scope(
        scope, default_name="input_from_feature_columns", values=columns_to_tensors.values()
    ):
        return tf.compat.v1.feature_column.input_layer(
            columns_to_tensors,
            feature_columns,
            weight_collections=weight_collections,
            trainable=trainable,
            cols_to_output_tensors=cols_to_outs,
        )

"""`tf.contrib.feature_column`: input layers of sequences, which stock TensorFlow has no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.feature_column import feature_column as fc_v1

from workbench.compat.absent import absent as _absent
from workbench.errors import OptionError
from workbench.ops.feature_column.columns import sequence_categorical_column_with_embedding

_stock = tf.compat.v1.feature_column
sequence_categorical_column_with_hash_bucket = _stock.sequence_categorical_column_with_hash_bucket
sequence_categorical_column_with_identity = _stock.sequence_categorical_column_with_identity
sequence_categorical_column_with_vocabulary_file = (
    _stock.sequence_categorical_column_with_vocabulary_file
)
sequence_categorical_column_with_vocabulary_list = (
    _stock.sequence_categorical_column_with_vocabulary_list
)

__all__ = [
    "sequence_categorical_column_with_embedding",
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_input_layer",
]
__getattr__ = _absent("tf.contrib.feature_column", __all__)


def sequence_input_layer(
    features: dict[str, Any],
    feature_columns: Any,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Input layer of sequences: their embeddings side by side, in the order of column names.

    Args:
      features: the parsed features by name.
      feature_columns: embedding or indicator columns over sequence columns.
      weight_collections: graph collections that the variables join besides GLOBAL_VARIABLES and
        MODEL_VARIABLES.
      trainable: False keeps the variables out of TRAINABLE_VARIABLES.
      scope: variable scope of the layer; None makes one from "sequence_input_layer".

    Returns:
      float32 [batch, longest sequence, sum of the columns' widths] and the sequences' lengths,
      int64 [batch]; running them fails where the columns' lengths differ.

    Raises:
      OptionError: a column that is no sequence column. ValueError: as from `input_layer`.
    """
    columns = fc_v1._normalize_feature_columns(feature_columns)
    for column in columns:
        if not isinstance(column, fc_v1._SequenceDenseColumn):
            raise OptionError(
                f"sequence_input_layer was given column {getattr(column, 'name', column)!r} of "
                f"type {type(column).__name__}; expected embedding_column or indicator_column "
                "over a sequence_categorical_column_with_*"
            )
    keys = tf.compat.v1.GraphKeys
    collections = list(
        dict.fromkeys([*(weight_collections or ()), keys.GLOBAL_VARIABLES, keys.MODEL_VARIABLES])
    )
    with tf.compat.v1.variable_scope(scope, default_name="sequence_input_layer"):
        builder = fc_v1._LazyBuilder(features)
        outputs, lengths = [], []
        for column in sorted(columns, key=lambda each: each.name):
            with tf.compat.v1.variable_scope(None, default_name=column._var_scope_name):
                dense, length = column._get_sequence_dense_tensor(
                    builder, weight_collections=collections, trainable=trainable
                )
                width = column._variable_shape.num_elements()
                outputs.append(tf.reshape(dense, [*tf.unstack(tf.shape(dense)[:2]), width]))
                lengths.append(length)
        checks = [
            tf.compat.v1.assert_equal(
                lengths[0], other, message="sequence_input_layer: lengths of the columns differ"
            )
            for other in lengths[1:]
        ]
        with tf.control_dependencies(checks):
            return tf.concat(outputs, -1), tf.identity(lengths[0], name="sequence_length")

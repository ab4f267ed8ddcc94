"""`tf.contrib.layers.feature_column` over TensorFlow's feature columns.

A `combiner` of a sparse column counts in contrib's linear models alone, which are not here, so
another than the default warns; `embedding_column` has its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2 as fc

from workbench.compat.absent import absent as _absent
from workbench.errors import OptionError, UnsupportedError
from workbench.ignored import warn_ignored
from workbench.ops.embedding_variable.variable import EmbeddingVariableOption
from workbench.ops.feature_column import columns
from workbench.ops.feature_column.key_column import key_column

__all__ = [
    "embedding_column",
    "real_valued_column",
    "sparse_column_with_embedding",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "weighted_sparse_column",
]
__getattr__ = _absent("tf.contrib.layers.feature_column", __all__)

_stock = tf.compat.v1.feature_column
# Contrib's defaults of what has no effect here.
_COMBINER, _PARTITIONS = "sum", 1000


class _Integerized(fc.IdentityCategoricalColumn):
    """Ids modulo the number of buckets, where TensorFlow's column refuses larger ones."""

    def _transform_input_tensor(self, input_tensor: tf.SparseTensor) -> tf.SparseTensor:
        if not input_tensor.dtype.is_integer:
            raise OptionError(
                f"sparse_column_with_integerized_feature({self.key!r}) was fed "
                f"{input_tensor.dtype.name} values; expected integers"
            )
        ids = tf.math.floormod(tf.cast(input_tensor.values, tf.int64), self.num_buckets)
        return tf.SparseTensor(input_tensor.indices, ids, input_tensor.dense_shape)


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    do_fusion: Any = None,
) -> Any:
    """An embedding of a sparse column, for `input_from_feature_columns`.

    Args:
      sparse_id_column: made by a function of this module.
      initializer: of the variable; None takes contrib's, a truncated normal of deviation
        1/sqrt(number of buckets), or 1/sqrt(dimension) where the embedding is an
        EmbeddingVariable.
      do_fusion: "v1", "v2" or "grouped" fuses the lookup; see
        `workbench.ops.feature_column.columns`.
      dimension, combiner, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable: as of
        `tf.feature_column.embedding_column`.
    """
    if initializer is None and key_column(sparse_id_column) is None:
        initializer = tf.compat.v1.truncated_normal_initializer(
            stddev=1 / math.sqrt(sparse_id_column.num_buckets)
        )
    return columns.embedding_column(
        sparse_id_column,
        dimension,
        combiner=combiner,
        initializer=initializer,
        ckpt_to_load_from=ckpt_to_load_from,
        tensor_name_in_ckpt=tensor_name_in_ckpt,
        max_norm=max_norm,
        trainable=trainable,
        do_fusion=do_fusion,
    )


def sparse_column_with_embedding(
    column_name: str,
    dtype: Any = tf.string,
    partition_num: int | None = None,
    steps_to_live: int | None = None,
    init_data_source: Any = None,
    ht_partition_num: int = _PARTITIONS,
    ev_option: EmbeddingVariableOption | None = None,
) -> Any:
    """`tf.feature_column.categorical_column_with_embedding` by contrib's name.

    Args:
      column_name: name of the feature.
      dtype, partition_num, ev_option: as there.
      steps_to_live, init_data_source: only None; rows are evicted by `ev_option`.
      ht_partition_num: has no effect, and another than the default warns; the table divides
        itself.

    Raises:
      UnsupportedError: steps_to_live or init_data_source is given.
    """
    if ht_partition_num != _PARTITIONS:
        warn_ignored(
            "sparse_column_with_embedding(ht_partition_num)",
            ht_partition_num,
            "the table divides itself",
        )
    for name, value in (("steps_to_live", steps_to_live), ("init_data_source", init_data_source)):
        if value is not None:
            raise UnsupportedError(
                f"sparse_column_with_embedding({column_name!r}, {name}={value!r}) is not "
                "supported; give EmbeddingVariableOption in ev_option"
            )
    return columns.categorical_column_with_embedding(column_name, dtype, partition_num, ev_option)


def sparse_column_with_hash_bucket(
    column_name: str,
    hash_bucket_size: int,
    combiner: str = _COMBINER,
    dtype: Any = tf.string,
    hash_keys: Any = None,
) -> Any:
    """`tf.feature_column.categorical_column_with_hash_bucket` by contrib's name.

    Raises:
      UnsupportedError: hash_keys is given.
    """
    _warn_of_combiner("sparse_column_with_hash_bucket", combiner)
    if hash_keys is not None:
        raise UnsupportedError(
            f"sparse_column_with_hash_bucket({column_name!r}, hash_keys={hash_keys!r}) is not "
            "supported; leave hash_keys away"
        )
    return _stock.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = _COMBINER, dtype: Any = tf.int64
) -> Any:
    """Integers as ids, modulo `bucket_size` as in contrib.

    Raises:
      OptionError: dtype is no integer type. ValueError: bucket_size below 1.
    """
    _warn_of_combiner("sparse_column_with_integerized_feature", combiner)
    if not tf.as_dtype(dtype).is_integer:
        raise OptionError(
            f"sparse_column_with_integerized_feature({column_name!r}): dtype is "
            f"{tf.as_dtype(dtype).name}; expected an integer type"
        )
    return _Integerized(*_stock.categorical_column_with_identity(column_name, bucket_size))


def weighted_sparse_column(
    sparse_id_column: Any, weight_column_name: str, dtype: Any = tf.float32
) -> Any:
    """`tf.feature_column.weighted_categorical_column` by contrib's name."""
    return _stock.weighted_categorical_column(sparse_id_column, weight_column_name, dtype)


def _warn_of_combiner(function: str, combiner: str) -> None:
    if combiner != _COMBINER:
        warn_ignored(
            f"{function}(combiner)",
            combiner,
            "it counts in contrib's linear models alone; embedding_column has its own",
        )


def real_valued_column(
    column_name: str,
    dimension: int | None = 1,
    default_value: Any = None,
    dtype: Any = tf.float32,
    normalizer: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> Any:
    """`tf.feature_column.numeric_column` of `dimension` values by contrib's name.

    Raises:
      UnsupportedError: dimension is None, contrib's columns of varying length.
    """
    if dimension is None:
        raise UnsupportedError(
            f"real_valued_column({column_name!r}, dimension=None) is not supported; give the "
            "number of values"
        )
    return _stock.numeric_column(column_name, (dimension,), default_value, dtype, normalizer)

"""A categorical feature whose values are the keys of an EmbeddingVariable."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.feature_column import feature_column as fc_v1
from tensorflow.python.feature_column import feature_column_v2 as fc

from workbench.errors import OptionError, UnsupportedError
from workbench.ops.embedding_variable import variable


class _Fields(NamedTuple):
    key: str
    dtype: Any
    partition_num: int | None
    ev_option: Any


class EmbeddingKeyColumn(fc.CategoricalColumn, fc_v1._CategoricalColumn, _Fields):
    """See `workbench.ops.feature_column.columns.categorical_column_with_embedding`."""

    @property
    def _is_v2_column(self) -> bool:
        return True

    @property
    def name(self) -> str:
        """The key, as of TensorFlow's categorical columns."""
        return self.key

    @property
    def parents(self) -> list[str]:
        """What the column is made from: the feature of this key."""
        return [self.key]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """How `tf.io.parse_example` reads the feature."""
        return {self.key: tf.io.VarLenFeature(self.dtype)}

    @property
    def _parse_example_spec(self) -> dict[str, Any]:
        return self.parse_example_spec

    @property
    def num_buckets(self) -> Any:
        """Raises UnsupportedError: an EmbeddingVariable has no fixed number of rows."""
        raise UnsupportedError(
            f"categorical_column_with_embedding({self.key!r}) has no fixed number of buckets, "
            "which indicator_column, linear_model, Keras layers and columns made by stock "
            "TensorFlow's functions ask for. Wrap it in embedding_column or "
            "shared_embedding_columns of workbench and use input_layer, or take "
            f"categorical_column_with_hash_bucket({self.key!r}, hash_bucket_size)"
        )

    @property
    def _num_buckets(self) -> Any:
        return self.num_buckets

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> tf.SparseTensor:
        """The feature's values as int64 keys."""
        return self._keys(transformation_cache.get(self.key, state_manager))

    def _transform_feature(self, inputs: Any) -> tf.SparseTensor:
        return self._keys(inputs.get(self.key))

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The keys, without weights."""
        return self.IdWeightPair(transformation_cache.get(self, state_manager), None)

    def _get_sparse_tensors(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        del weight_collections, trainable
        return self.IdWeightPair(inputs.get(self), None)

    def get_config(self) -> dict[str, Any]:
        """The column's fields by name."""
        return {**self._asdict(), "dtype": self.dtype.name}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None, columns_by_name: Any = None
    ) -> EmbeddingKeyColumn:
        """The column of `get_config`."""
        del custom_objects, columns_by_name
        return cls(**{**config, "dtype": tf.as_dtype(config["dtype"])})

    def variable(self, dimension: int, initializer: Any, trainable: bool, collections: Any) -> Any:
        """The EmbeddingVariable `embedding_weights` [None, dimension] of the current scope."""
        partitioner = None
        if self.partition_num is not None:
            partitioner = tf.compat.v1.fixed_size_partitioner(self.partition_num)
        return variable.get_embedding_variable(
            "embedding_weights",
            embedding_dim=dimension,
            initializer=initializer,
            trainable=trainable,
            collections=collections,
            partitioner=partitioner,
            ev_option=self.ev_option,
        )

    def _keys(self, tensor: Any) -> tf.SparseTensor:
        ids = fc._to_sparse_input_and_drop_ignore_values(tensor)
        if ids.dtype != tf.string and not ids.dtype.is_integer:
            expected = "strings or integers"
        elif ids.dtype.is_integer != self.dtype.is_integer:
            expected = f"values of its dtype {self.dtype.name}"
        else:
            to_keys = variable.string_keys if ids.dtype == tf.string else _int64
            return tf.SparseTensor(ids.indices, to_keys(ids.values), ids.dense_shape)
        raise OptionError(
            f"categorical_column_with_embedding({self.key!r}) was fed {ids.dtype.name} values; "
            f"expected {expected}"
        )


def key_column(column: Any) -> EmbeddingKeyColumn | None:
    """The EmbeddingKeyColumn inside weighted and sequence columns; None where there is none."""
    while isinstance(
        column,
        (
            fc.WeightedCategoricalColumn,
            fc.SequenceCategoricalColumn,
            fc_v1._WeightedCategoricalColumn,
            fc_v1._SequenceCategoricalColumn,
        ),
    ):
        column = column.categorical_column
    return column if isinstance(column, EmbeddingKeyColumn) else None


def _int64(values: tf.Tensor) -> tf.Tensor:
    return tf.cast(values, tf.int64)

"""TensorFlow's embedding columns, with fused lookups and EmbeddingVariables.

Everything but the variable and the lookup is TensorFlow's: names, checks, parsing, transforms.
Where neither is asked for, the lookup is TensorFlow's too, and the graph the very same.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.feature_column import feature_column as fc_v1
from tensorflow.python.feature_column import feature_column_v2 as fc
from tensorflow.python.ops.variables import PartitionedVariable

from workbench.errors import OptionError, UnsupportedError
from workbench.ops.feature_column.key_column import key_column
from workbench.ops.lookup.fusion import (
    chosen_fusion,
    embedding_lookup_sparse,
    safe_embedding_lookup_sparse,
)


class EmbeddingColumn(fc.EmbeddingColumn):
    """`feature_column_v2.EmbeddingColumn` with `do_fusion`; see `feature_column`."""

    do_fusion: Any = None

    @classmethod
    def of(cls, stock: fc.EmbeddingColumn, do_fusion: Any) -> EmbeddingColumn:
        """The column with the same fields."""
        column = cls._make(stock)
        column.do_fusion = do_fusion
        return column

    def _replace(self, **fields: Any) -> EmbeddingColumn:
        return self.of(super()._replace(**fields), self.do_fusion)

    def get_config(self) -> dict[str, Any]:
        """TensorFlow's config, and `do_fusion` where it is given."""
        config = super().get_config()
        return config if self.do_fusion is None else {**config, "do_fusion": self.do_fusion}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None, columns_by_name: Any = None
    ) -> EmbeddingColumn:
        """The column of `get_config`."""
        fields = dict(config)
        do_fusion = fields.pop("do_fusion", None)
        return cls.of(super().from_config(fields, custom_objects, columns_by_name), do_fusion)

    def _old_get_dense_tensor_internal(
        self, sparse_tensors: Any, weight_collections: Any, trainable: bool
    ) -> tf.Tensor:
        keys = key_column(self.categorical_column)
        if keys is None:
            return super()._old_get_dense_tensor_internal(
                sparse_tensors, weight_collections, trainable
            )
        weights = keys.variable(
            self.dimension, self.initializer, self.trainable and trainable, weight_collections
        )
        return self._get_dense_tensor_internal_helper(sparse_tensors, weights)

    def _get_dense_tensor_internal_helper(
        self, sparse_tensors: Any, embedding_weights: Any
    ) -> tf.Tensor:
        if chosen_fusion(self.do_fusion) is None and key_column(self.categorical_column) is None:
            return super()._get_dense_tensor_internal_helper(sparse_tensors, embedding_weights)
        return _looked_up(self, sparse_tensors, embedding_weights)


class SharedEmbeddingColumn(fc_v1._SharedEmbeddingColumn):
    """`feature_column._SharedEmbeddingColumn` with `do_fusion`; see `feature_column`."""

    do_fusion: Any = None

    @classmethod
    def of(cls, stock: fc_v1._SharedEmbeddingColumn, do_fusion: Any) -> SharedEmbeddingColumn:
        """The column with the same fields."""
        column = cls._make(stock)
        column.do_fusion = do_fusion
        return column

    def _replace(self, **fields: Any) -> SharedEmbeddingColumn:
        return self.of(super()._replace(**fields), self.do_fusion)

    def _get_dense_tensor_internal(
        self, inputs: Any, weight_collections: Any = None, trainable: bool = True
    ) -> tf.Tensor:
        keys = key_column(self.categorical_column)
        if chosen_fusion(self.do_fusion) is None and keys is None:
            return super()._get_dense_tensor_internal(inputs, weight_collections, trainable)
        # The variable scope is that of all sharing columns; a name scope tells their ops apart.
        with tf.compat.v1.name_scope(None, default_name=self.name):
            sparse_tensors = self.categorical_column._get_sparse_tensors(
                inputs, weight_collections=weight_collections, trainable=trainable
            )
            weights = _shared_weights(self, weight_collections, self.trainable and trainable)
            return _looked_up(self, sparse_tensors, weights)


def _shared_weights(column: SharedEmbeddingColumn, collections: Any, trainable: bool) -> Any:
    """The variable that the sharing columns find in the graph collection of their name."""
    name = column.shared_embedding_collection_name
    keys = key_column(column.categorical_column)
    # Of an EmbeddingVariable the number of rows is open.
    shape = [None if keys else column.categorical_column._num_buckets, column.dimension]
    shared = tf.compat.v1.get_collection(name)
    if not shared:
        if keys is not None:
            weights = keys.variable(column.dimension, column.initializer, trainable, collections)
        else:
            weights = tf.compat.v1.get_variable(
                "embedding_weights",
                shape,
                tf.float32,
                initializer=column.initializer,
                trainable=trainable,
                collections=collections,
            )
        tf.compat.v1.add_to_collection(name, weights)
        return weights
    found = tf.TensorShape(shared[0].shape).as_list()
    if len(shared) > 1 or found != shape:
        raise OptionError(
            f"column {column.name!r} shares a variable of shape {shape} through the graph "
            f"collection {name!r}, which holds {len(shared)} with {found} the first; expected "
            "that one alone. Give shared_embedding_columns another shared_embedding_collection_name"
        )
    return shared[0]


def _looked_up(column: Any, sparse_tensors: Any, weights: Any) -> tf.Tensor:
    """The column's lookup, fused as chosen: [d_0, ..., d_n-1, dim] for ids [d_0, ..., d_n]."""
    _restore(column, weights)
    ids = sparse_tensors.id_tensor
    rank = tf.compat.dimension_value(ids.dense_shape.shape[0])
    arguments = {
        "partition_strategy": "div",
        "name": f"{column.name}_weights",
        "combiner": column.combiner,
        "max_norm": column.max_norm,
        "do_fusion": column.do_fusion,
    }
    # As in TensorFlow, only the safe lookup takes ids of a higher rank.
    if column.use_safe_embedding_lookup or rank is None or rank > 2:
        return safe_embedding_lookup_sparse(weights, ids, sparse_tensors.weight_tensor, **arguments)
    return embedding_lookup_sparse(weights, ids, sparse_tensors.weight_tensor, **arguments)


def _restore(column: Any, weights: Any) -> None:
    """Makes a new variable start from the checkpoint that the column names."""
    if column.ckpt_to_load_from is None:
        return
    if key_column(column.categorical_column) is not None:
        raise UnsupportedError(
            f"column {column.name!r}: ckpt_to_load_from = {column.ckpt_to_load_from!r} is not "
            "supported where the embedding is an EmbeddingVariable; restore the checkpoint with "
            "tf.train.Saver once the variables are initialized"
        )
    whole = list(weights) if isinstance(weights, PartitionedVariable) else weights
    tf.compat.v1.train.init_from_checkpoint(
        column.ckpt_to_load_from, {column.tensor_name_in_ckpt: whole}
    )

"""`tf.feature_column` with fused lookups and EmbeddingVariables, for `input_layer`.

Behaviour after DeepRec's feature columns; everything else is TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.feature_column import feature_column as fc_v1
from tensorflow.python.feature_column import feature_column_v2 as fc

from workbench.errors import OptionError
from workbench.ops.embedding_variable.variable import EmbeddingVariableOption
from workbench.ops.feature_column.embedding_columns import EmbeddingColumn, SharedEmbeddingColumn
from workbench.ops.feature_column.key_column import EmbeddingKeyColumn, key_column
from workbench.ops.lookup.fusion import FusionVersion, chosen_fusion

__all__ = [
    "categorical_column_with_embedding",
    "embedding_column",
    "sequence_categorical_column_with_embedding",
    "shared_embedding_columns",
]

_stock = tf.compat.v1.feature_column


def embedding_column(
    categorical_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
    do_fusion: FusionVersion | bool | None = None,
) -> EmbeddingColumn:
    """`tf.compat.v1.feature_column.embedding_column` whose lookup may be fused.

    Variables have the names and shapes of TensorFlow's column, so checkpoints are interchangeable.

    Args:
      categorical_column: as in TensorFlow, weighted and sequence columns too, or one made by
        `categorical_column_with_embedding`.
      dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm,
        trainable, use_safe_embedding_lookup: as in TensorFlow.
      do_fusion: "v1", "v2" or "grouped" fuses the lookup, False keeps it TensorFlow's, True
        means "v2"; None leaves it to the `fused_embeddings` around the building of the layer.

    Raises:
      OptionError: another do_fusion. ValueError: as TensorFlow's.
    """
    chosen_fusion(do_fusion)
    stock = _stock.embedding_column(
        categorical_column,
        dimension,
        combiner=combiner,
        initializer=initializer,
        ckpt_to_load_from=ckpt_to_load_from,
        tensor_name_in_ckpt=tensor_name_in_ckpt,
        max_norm=max_norm,
        trainable=trainable,
        use_safe_embedding_lookup=use_safe_embedding_lookup,
    )
    return EmbeddingColumn.of(stock, do_fusion)


def shared_embedding_columns(
    categorical_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
    do_fusion: FusionVersion | bool | None = None,
) -> list[SharedEmbeddingColumn]:
    """`tf.compat.v1.feature_column.shared_embedding_columns` whose lookups may be fused.

    Args:
      categorical_columns: as in TensorFlow; or all made by `categorical_column_with_embedding`
        with one dtype, partition_num and ev_option, then they share an EmbeddingVariable.
      do_fusion: as of `embedding_column`.
      dimension, combiner, initializer, shared_embedding_collection_name, ckpt_to_load_from,
        tensor_name_in_ckpt, max_norm, trainable, use_safe_embedding_lookup: as in TensorFlow.

    Returns:
      One column for each of `categorical_columns`, in their order.

    Raises:
      OptionError: another do_fusion, or columns that cannot share. ValueError: as TensorFlow's.
    """
    chosen_fusion(do_fusion)
    columns = list(categorical_columns)
    make = _shared_keys if any(map(key_column, columns)) else _stock.shared_embedding_columns
    stock = make(
        columns,
        dimension,
        combiner=combiner,
        initializer=initializer,
        shared_embedding_collection_name=shared_embedding_collection_name,
        ckpt_to_load_from=ckpt_to_load_from,
        tensor_name_in_ckpt=tensor_name_in_ckpt,
        max_norm=max_norm,
        trainable=trainable,
        use_safe_embedding_lookup=use_safe_embedding_lookup,
    )
    return [SharedEmbeddingColumn.of(column, do_fusion) for column in stock]


def categorical_column_with_embedding(
    key: str,
    dtype: Any = tf.string,
    partition_num: int | None = None,
    ev_option: EmbeddingVariableOption | None = None,
) -> EmbeddingKeyColumn:
    """A categorical feature without a vocabulary: its embedding is an EmbeddingVariable.

    `embedding_column` over it makes an EmbeddingVariable `embedding_weights` [None, dimension].
    It goes into `input_layer` and `sequence_input_layer`, also weighted and as a sequence.

    Args:
      key: name of the feature, a SparseTensor, or a Tensor in which "" or -1 is no value.
      dtype: of the feature: integers are the keys themselves, strings are hashed to keys.
      partition_num: how many parts the EmbeddingVariable has; None means one, not partitioned.
      ev_option: filter, eviction and initialization of the rows; None means the defaults.

    Raises:
      OptionError: a dtype that is neither string nor integer, or a partition_num below 1.
    """
    dtype = tf.as_dtype(dtype)
    if dtype != tf.string and not dtype.is_integer:
        raise OptionError(
            f"categorical_column_with_embedding({key!r}): dtype is {dtype.name}; expected "
            "tf.string or an integer type"
        )
    if partition_num is not None and (
        isinstance(partition_num, bool) or not isinstance(partition_num, int) or partition_num < 1
    ):
        raise OptionError(
            f"categorical_column_with_embedding({key!r}): partition_num is {partition_num!r}; "
            "expected None or an integer of at least 1"
        )
    return EmbeddingKeyColumn(
        key, dtype, partition_num, EmbeddingVariableOption() if ev_option is None else ev_option
    )


def sequence_categorical_column_with_embedding(
    key: str,
    dtype: Any = tf.string,
    partition_num: int | None = None,
    ev_option: EmbeddingVariableOption | None = None,
) -> fc.SequenceCategoricalColumn:
    """`categorical_column_with_embedding` for `sequence_input_layer`: ids are not combined.

    Args:
      key, dtype, partition_num, ev_option: as there.

    Raises:
      OptionError: as there.
    """
    return fc.SequenceCategoricalColumn(
        categorical_column_with_embedding(key, dtype, partition_num, ev_option)
    )


def _shared_keys(
    columns: list[Any],
    dimension: int,
    *,
    shared_embedding_collection_name: str | None,
    initializer: Any,
    **options: Any,
) -> list[fc_v1._SharedEmbeddingColumn]:
    """Stock shared columns over EmbeddingVariables, which TensorFlow's function cannot make."""
    bases = [key_column(column) for column in columns]
    kinds = [None if base is None else base[1:] for base in bases]
    if any(kind != kinds[0] for kind in kinds):
        listed = ", ".join(repr(column.name) for column in columns)
        raise OptionError(
            f"shared_embedding_columns: the columns {listed} cannot share one EmbeddingVariable; "
            "expected all of them made by categorical_column_with_embedding with the same dtype, "
            "partition_num and ev_option"
        )
    # TensorFlow checks the options and makes the default initializer, one for all columns.
    checked = _stock.embedding_column(columns[0], dimension, initializer=initializer, **options)
    name = shared_embedding_collection_name
    if not name:
        name = "_".join(sorted(column.name for column in columns)) + "_shared_embedding"
    return [
        fc_v1._SharedEmbeddingColumn(
            categorical_column=column,
            dimension=dimension,
            initializer=checked.initializer,
            shared_embedding_collection_name=name,
            **options,
        )
        for column in columns
    ]

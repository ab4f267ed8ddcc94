"""Arguments of `get_embedding_variable`: which are taken, and what to do about the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops

from workbench.errors import OptionError, UnsupportedError
from workbench.ops.embedding_variable.keys import MOST_PARTITIONS
from workbench.ops.embedding_variable.options import EmbeddingVariableOption

# What partitioners are told of the number of rows, which nobody knows.
_ANY_NUMBER = 2**40
# As the native table has it.
_MOST_DIM = 2**16

_INSTEAD = {
    "regularizer": "add its loss of the rows that a lookup gives",
    "caching_device": "leave it out",
    "custom_getter": "leave it out",
    "constraint": "leave it out: a lookup may clip with max_norm",
    "init_data_source": "restore a checkpoint with tf.compat.v1.train.Saver",
}


def refuse(name: str, **asked: Any) -> None:
    """Raises UnsupportedError for the first argument that is not None."""
    for argument, value in asked.items():
        if value is not None:
            raise UnsupportedError(
                f"EmbeddingVariable {name!r}: {argument} = {value!r} is not implemented; "
                f"{_INSTEAD[argument]}"
            )


def check(
    name: str, dim: int, key_dtype: Any, value_dtype: Any, option: EmbeddingVariableOption
) -> None:
    """Checks where an EmbeddingVariable is made, and what of.

    Raises:
      OptionError, UnsupportedError: name the variable, the argument and what was expected.
    """
    if ops.executing_eagerly_outside_functions():
        raise UnsupportedError(
            f"EmbeddingVariable {name!r} needs a session's graph: build the model in "
            "tf.Graph().as_default(), or call tf.compat.v1.disable_v2_behavior() first"
        )
    if not isinstance(dim, int) or isinstance(dim, bool) or not 1 <= dim <= _MOST_DIM:
        raise OptionError(
            f"EmbeddingVariable {name!r}: embedding_dim is {dim!r}; expected an int from 1 to "
            f"{_MOST_DIM}"
        )
    if tf.as_dtype(key_dtype) not in (tf.int64, tf.int32):
        raise UnsupportedError(
            f"EmbeddingVariable {name!r}: key_dtype is {tf.as_dtype(key_dtype).name}; expected "
            "int64 or int32; hash strings with string_keys"
        )
    if value_dtype is not None and tf.as_dtype(value_dtype) != tf.float32:
        raise UnsupportedError(
            f"EmbeddingVariable {name!r}: value_dtype is {tf.as_dtype(value_dtype).name}; rows "
            "are float32: leave it out, and cast what a lookup gives"
        )
    if not isinstance(option, EmbeddingVariableOption):
        raise OptionError(
            f"EmbeddingVariable {name!r}: ev_option is {option!r}; expected an "
            "EmbeddingVariableOption"
        )


def partitions_of(name: str, dim: int, partitioner: Callable[..., Any]) -> int:
    """How many partitions a partitioner wants.

    Raises:
      OptionError: it does not answer [n, 1], n from 1 to 1000.
    """
    counts = list(partitioner(shape=tf.TensorShape([_ANY_NUMBER, dim]), dtype=tf.float32))
    if len(counts) == 2 and counts[1] == 1 and 1 <= counts[0] <= MOST_PARTITIONS:
        return int(counts[0])
    raise OptionError(
        f"EmbeddingVariable {name!r}: its partitioner answers {counts} for any number of rows; "
        f"expected [n, 1] with n from 1 to {MOST_PARTITIONS}: use tf.fixed_size_partitioner(n)"
    )

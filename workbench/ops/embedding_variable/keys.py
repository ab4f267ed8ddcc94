"""Keys of EmbeddingVariables: int64 numbers, and which partition has which key."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.errors import OptionError

_MOST = 2**63 - 1
# A key's partition is (key mod 1000) mod partitions, in DeepRec too.
MOST_PARTITIONS = 1000


def string_keys(strings: Any) -> tf.Tensor:
    """Hashes strings to keys.

    Args:
      strings: string tensor of any shape.

    Returns:
      int64 of the same shape, all >= 0: FarmHash's 64-bit fingerprint mod 2**63 - 1, the same on
      every machine. Among 10 million strings two share a key with a chance below 1 in 100,000.

    Raises:
      OptionError: they are no strings.
    """
    strings = tf.convert_to_tensor(strings)
    if strings.dtype != tf.string:
        raise OptionError(f"string_keys was given {strings.dtype.name}; expected strings")
    return tf.strings.to_hash_bucket_fast(strings, _MOST)


def int64_keys(keys: Any, variable: str) -> tf.Tensor:
    """Keys as int64.

    Raises:
      OptionError: they are neither int64 nor int32; names the variable.
    """
    keys = tf.convert_to_tensor(keys)
    if keys.dtype == tf.int64:
        return keys
    if keys.dtype == tf.int32:
        return tf.cast(keys, tf.int64)
    hint = "; hash strings with string_keys" if keys.dtype == tf.string else ""
    raise OptionError(
        f"keys of EmbeddingVariable {variable!r} have dtype {keys.dtype.name}; expected int64 or "
        f"int32{hint}"
    )


def partition_of(keys: tf.Tensor, partitions: int) -> tf.Tensor:
    """The partition of each int64 key, int32: (key mod 1000) mod partitions, never negative."""
    spread = tf.math.floormod(keys, tf.constant(MOST_PARTITIONS, tf.int64))
    return tf.cast(tf.math.floormod(spread, tf.constant(partitions, tf.int64)), tf.int32)

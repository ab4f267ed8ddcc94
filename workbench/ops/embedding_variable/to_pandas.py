"""Rows of an EmbeddingVariable as a pandas DataFrame."""

from __future__ import annotations

import glob
import math
import os
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from workbench.checkpoints import checkpoints_in, first_read
from workbench.errors import DataError

_KEYS = "-keys"
_PARTS = {"keys": tf.int64, "values": tf.float32, "freqs": tf.int64, "versions": tf.int64}


def frame_of(
    keys: Any, values: Any, *, freqs: Any | None = None, versions: Any | None = None
) -> pd.DataFrame:
    """One row per key, sorted by it.

    Args:
      keys: int64 [rows].
      values: float32 [rows, dim].
      freqs, versions: int64 [rows]; None leaves the column out.

    Returns:
      Columns key, freq, version (both only if given), v0 … v<dim-1>.
    """
    order = np.argsort(keys, kind="stable")
    frame = pd.DataFrame(
        np.asarray(values)[order], columns=[f"v{d}" for d in range(np.shape(values)[1])]
    )
    for name, column in (("version", versions), ("freq", freqs), ("key", keys)):
        if column is not None:
            frame.insert(0, name, np.asarray(column)[order])
    return frame


def read_embedding_variable(checkpoint_prefix: str, name: str) -> pd.DataFrame:
    """Reads an EmbeddingVariable out of a checkpoint, without its graph.

    Args:
      checkpoint_prefix: as `Saver.save` returns it, e.g. "/model/model.ckpt-100"; of a folder, the
        latest checkpoint in it that is whole: a warning names those that are damaged.
      name: of the variable, with its scopes but no partition, e.g. "input/embedding_weights".

    Returns:
      One row per key, sorted by it. Columns: key; freq and version, where they were kept; v0, v1,
      ...: the values.

    Raises:
      DataError: no such checkpoint, it is damaged, or no such variable in it; names those that
        there are.
    """
    prefixes = [checkpoint_prefix]
    if os.path.isdir(checkpoint_prefix):
        prefixes = checkpoints_in(checkpoint_prefix) or prefixes
    try:
        columns = first_read(prefixes, lambda prefix: _columns(prefix, name))
    except DataError as error:
        raise DataError(f"{error}; expected the prefix that Saver.save returns") from error
    if isinstance(columns, str):
        raise DataError(columns)
    keys, values, freqs, versions = columns
    kept = [
        column if len(keys) and len(column) == len(keys) else None for column in (freqs, versions)
    ]
    return frame_of(keys, values, freqs=kept[0], versions=kept[1])


def _columns(prefix: str, name: str) -> list[Any] | str:
    """The keys, values, frequencies and versions of a variable.

    A text says that the checkpoint has no such variable: no older one is looked at then.
    """
    reader = tf.train.load_checkpoint(prefix)
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    if name + _KEYS not in shapes:
        there = sorted(each.removesuffix(_KEYS) for each in shapes if each.endswith(_KEYS))
        return (
            f"checkpoint {prefix!r} has no EmbeddingVariable {name!r}; it has "
            f"{', '.join(map(repr, there)) or 'none'}"
        )
    stored = sum(os.path.getsize(file) for file in glob.glob(f"{glob.escape(prefix)}.data-*"))
    columns = []
    for part, kind in _PARTS.items():
        tensor = f"{name}-{part}"
        shape, dtype = shapes.get(tensor), dtypes.get(tensor)
        if shape is None or dtype != kind or len(shape) != 1 + (part == "values"):
            raise DataError(f"{tensor!r} is {dtype} {shape}; expected {kind.name}")
        if math.prod(shape) * kind.size > stored:
            raise DataError(f"{tensor!r} has the shape {shape}, for which its file is too small")
        columns.append(reader.get_tensor(tensor))
    if len(columns[0]) != len(columns[1]):
        raise DataError(f"{name!r} has {len(columns[0])} keys and {len(columns[1])} rows")
    return columns

"""Rows of an EmbeddingVariable as a pandas DataFrame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from workbench.errors import DataError

_KEYS = "-keys"


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
        latest checkpoint in it.
      name: of the variable, with its scopes but no partition, e.g. "input/embedding_weights".

    Returns:
      One row per key, sorted by it. Columns: key; freq and version, where they were kept; v0, v1,
      ...: the values.

    Raises:
      DataError: no such checkpoint, or no such variable in it; names those that there are.
    """
    try:
        reader = tf.train.load_checkpoint(checkpoint_prefix)
    except (tf.errors.OpError, ValueError) as error:
        raise DataError(
            f"no checkpoint can be read at {checkpoint_prefix!r}: {error}; expected the prefix "
            "that Saver.save returns"
        ) from error
    found = reader.get_variable_to_shape_map()
    if name + _KEYS not in found:
        there = sorted(each.removesuffix(_KEYS) for each in found if each.endswith(_KEYS))
        raise DataError(
            f"checkpoint {checkpoint_prefix!r} has no EmbeddingVariable {name!r}; it has "
            f"{', '.join(map(repr, there)) or 'none'}"
        )
    keys, values, freqs, versions = (
        reader.get_tensor(f"{name}-{part}") for part in ("keys", "values", "freqs", "versions")
    )
    kept = [
        column if len(keys) and len(column) == len(keys) else None for column in (freqs, versions)
    ]
    return frame_of(keys, values, freqs=kept[0], versions=kept[1])

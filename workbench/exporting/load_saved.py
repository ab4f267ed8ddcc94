"""Loads a SavedModel that may have Workbench's ops."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import workbench
from workbench import _native
from workbench.core.tf_graph.saved_model_file import read_saved_model
from workbench.errors import UnsupportedError
from workbench.exporting.note import read_note
from workbench.exporting.saved_proto import own_ops


def load_saved(directory: str | os.PathLike[str], tags: Sequence[str] | None = None) -> Any:
    """Loads a SavedModel, one that `export` wrote with `keep_ops=True` among them.

    A SavedModel is code that may read and write files. Load it only if you trust who made it.

    Args:
      directory: its folder.
      tags: as in `tf.saved_model.load`.

    Returns:
      What `tf.saved_model.load` returns.

    Raises:
      DataError: no SavedModel, or a damaged one.
      UnsupportedError: it has ops that this version of Workbench lacks.
      NativeError: the native library is missing, or was built for another TensorFlow.
    """
    folder = Path(directory)
    saved = read_saved_model(folder)
    ops = set().union(*(own_ops(meta) for meta in saved.meta_graphs))
    if ops:
        from tensorflow.python.framework import op_def_registry

        _native.library()
        missing = sorted(op for op in ops if op_def_registry.get(op) is None)
        if missing:
            note = read_note(folder)
            wrote = f"Workbench {note.workbench} wrote it" if note else "another version wrote it"
            raise UnsupportedError(
                f"{folder}: this Workbench, {workbench.__version__}, lacks the model's op "
                f"{missing[0]}; {wrote}: install that version or a newer one"
            )
    import tensorflow as tf

    return tf.saved_model.load(os.fspath(directory), tags=tags)

"""SavedModels that are there already: of which kind they are, and how each is exported anew."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import DataError, UnsupportedError
from workbench.exporting.saved_proto import FILE, is_of_objects, own_ops, read_saved_model

# Signatures that TensorFlow keeps for itself.
_HIDDEN = "__saved_model"


def versions_in(folder: Path) -> list[Path]:
    """The folders of a model's versions, by their numbers; none where `folder` is a model itself.

    Raises:
      DataError: it is neither.
    """
    if (folder / FILE).is_file():
        return []
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; expected a SavedModel")
    numbered = [each for each in folder.iterdir() if each.name.isdecimal()]
    versions = [each for each in numbered if (each / FILE).is_file()]
    if not versions:
        raise DataError(f"{folder}: it has no {FILE}; expected a SavedModel, or versions of one")
    return sorted(versions, key=lambda each: int(each.name))


def needs_session(folder: Path) -> bool:
    """Whether Workbench's ops of a SavedModel are in the graph of a session, with their values.

    Raises:
      DataError: no SavedModel, or a damaged one.
    """
    metas = read_saved_model(folder).meta_graphs
    return any(own_ops(meta) and not is_of_objects(meta) for meta in metas)


def copy_model(folder: Path, to: Path) -> None:
    """Copies a SavedModel into an empty folder."""
    shutil.copytree(folder, to, dirs_exist_ok=True)


def load_into(session: Any, folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Loads a SavedModel of a session's graph into a session.

    Returns:
      The signatures by name, and the files of its assets by the constant that names each.

    Raises:
      UnsupportedError: it has several graphs, or no signature.
    """
    import tensorflow as tf

    saved = read_saved_model(folder)
    if len(saved.meta_graphs) > 1:
        tags = [list(meta.meta_info_def.tags) for meta in saved.meta_graphs]
        raise UnsupportedError(
            f"{folder}: it has {len(tags)} graphs, with tags {tags}; export a model that has one"
        )
    (meta,) = saved.meta_graphs
    tf.compat.v1.saved_model.load(session, list(meta.meta_info_def.tags), str(folder))
    signatures = {
        name: signature
        for name, signature in meta.signature_def.items()
        if not name.startswith(_HIDDEN)
    }
    if not signatures:
        raise UnsupportedError(f"{folder}: it has no signature; expected one at least")
    assets = {
        asset.tensor_info.name.partition(":")[0]: str(folder / "assets" / asset.filename)
        for asset in meta.asset_file_def
    }
    return signatures, assets


def signature_names(folder: Path) -> tuple[str, ...]:
    """The names of a SavedModel's signatures."""
    names: Mapping[str, None] = {
        name: None
        for meta in read_saved_model(folder).meta_graphs
        for name in meta.signature_def
        if not name.startswith(_HIDDEN)
    }
    return tuple(sorted(names))

"""SavedModels that are there already: of which kind they are, and how each is exported anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from workbench.core.tf_graph.saved_model_file import EITHER, read_saved_model, saved_model_file
from workbench.errors import DataError, UnsupportedError, first_line
from workbench.exporting.saved_proto import is_of_objects, own_ops

# Signatures that TensorFlow keeps for itself.
_HIDDEN = "__saved_model"
# The collection in which version 1 of TensorFlow writes what files a model has.
_ASSETS = "saved_model_assets"
_COPY_BYTES = 1 << 20


def versions_in(folder: Path) -> list[Path]:
    """The folders of a model's versions, by their numbers; none where `folder` is a model itself.

    Raises:
      DataError: it is neither.
    """
    if saved_model_file(folder):
        return []
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; expected a SavedModel")
    numbered = [each for each in folder.iterdir() if each.name.isdecimal()]
    versions = [each for each in numbered if saved_model_file(each)]
    if not versions:
        raise DataError(f"{folder}: it has no {EITHER}; expected a SavedModel, or versions of one")
    return sorted(versions, key=lambda each: int(each.name))


def needs_session(folder: Path) -> bool:
    """Whether Workbench's ops of a SavedModel are in the graph of a session, with their values.

    Raises:
      DataError: no SavedModel, or a damaged one.
    """
    metas = read_saved_model(folder).meta_graphs
    return any(own_ops(meta) and not is_of_objects(meta) for meta in metas)


def copy_model(folder: Path, to: Path) -> None:
    """Copies a SavedModel into an empty folder; the copy does not have the modes of its files.

    Raises:
      DataError: a file or a folder of it cannot be read.
    """

    def refuse(error: OSError) -> NoReturn:
        raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from error

    for at, _, names in os.walk(folder, onerror=refuse, followlinks=True):
        below = to / Path(at).relative_to(folder)
        below.mkdir(exist_ok=True)
        for name in names:
            source = Path(at, name)
            if not source.is_file():
                raise DataError(f"{source}: cannot be read: it is no file, or a link to none")
            try:
                content = source.open("rb")
            except OSError as error:
                refuse(error)
            with content, (below / name).open("wb") as copy:
                shutil.copyfileobj(content, copy, _COPY_BYTES)


def load_into(session: Any, folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Loads a SavedModel of a session's graph into a session.

    Returns:
      The signatures by name, and the files of its assets by the constant that names each.

    Raises:
      DataError: TensorFlow cannot load it.
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
    try:
        tf.compat.v1.saved_model.load(session, list(meta.meta_info_def.tags), str(folder))
    except (tf.errors.OpError, OSError, ValueError) as error:
        raise DataError(f"{folder}: cannot be loaded: {first_line(error)}") from error
    signatures = {
        name: signature
        for name, signature in meta.signature_def.items()
        if not name.startswith(_HIDDEN)
    }
    if not signatures:
        raise UnsupportedError(f"{folder}: it has no signature; expected one at least")
    assets = {
        asset.tensor_info.name.partition(":")[0]: str(folder / "assets" / asset.filename)
        for asset in _asset_files(meta)
    }
    return signatures, assets


def _asset_files(meta: Any) -> list[Any]:
    """The AssetFileDefs of a meta graph, wherever its writer has put them."""
    from tensorflow.core.protobuf import meta_graph_pb2

    files = list(meta.asset_file_def)
    if not files and _ASSETS in meta.collection_def:
        for value in meta.collection_def[_ASSETS].any_list.value:
            files.append(meta_graph_pb2.AssetFileDef())
            value.Unpack(files[-1])
    return files


def signature_names(folder: Path) -> tuple[str, ...]:
    """The names of a SavedModel's signatures."""
    names: Mapping[str, None] = {
        name: None
        for meta in read_saved_model(folder).meta_graphs
        for name in meta.signature_def
        if not name.startswith(_HIDDEN)
    }
    return tuple(sorted(names))

"""Files that a SavedModel reads by a path → assets of it, which go where it goes.

TensorFlow tells a loaded model where its assets are once: it feeds their constants while tables are
filled. What reads a file at a request finds the path in a variable, which is assigned then.
"""

from __future__ import annotations

import dataclasses
import filecmp
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from workbench.core.fusion.checks.order import needed_by
from workbench.core.fusion.node_defs import free_name
from workbench.core.graph.graph_view import node_name
from workbench.core.tf_graph.saved_model_file import read_saved_model
from workbench.exporting.function_paths import Given, give_paths, pass_paths
from workbench.exporting.new_paths import STRING, NewPaths
from workbench.exporting.read_files import FileRead, file_reads, paths_in
from workbench.exporting.saved_proto import write_saved_model
from workbench.exporting.session.signatures import tensor_names

_INIT_SIGNATURE, _MAIN_OPS = "__saved_model_init_op", ("saved_model_main_op", "legacy_init_op")
_ASSETS, _COLLECTION = "assets", "saved_model_assets"
_COMPUTED = "it computes the path"


@dataclasses.dataclass(frozen=True, kw_only=True)
class MovedFiles:
    """What became of the files that a model reads.

    Attributes:
      copied: by the path that the model had the names of new assets.
      left: paths, or nodes that compute them, that stay as they are, each with the reason.
    """

    copied: Mapping[str, str]
    left: Mapping[str, str]


def move_files(folder: Path) -> MovedFiles:
    """Makes assets of the files that a SavedModel reads, in place.

    Args:
      folder: of the SavedModel. Its assets are there.
    """
    saved = read_saved_model(folder)
    assets = _Assets(folder)
    changed = [_Mover(meta, assets).run() for meta in saved.meta_graphs]
    if any(changed):
        write_saved_model(folder, saved)
    return MovedFiles(copied=assets.copied, left=assets.left)


class _Assets:
    """The files of a SavedModel.

    Attributes:
      copied, left: as of `MovedFiles`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _ASSETS
        self.copied: dict[str, str] = {}
        self.left: dict[str, str] = {}

    def name_of(self, path: str) -> str:
        """The name of the asset that has the content of a file; "" where there is no such file."""
        if path in self.copied:
            return self.copied[path]
        if not os.path.isfile(path):
            self.left[path] = "there is no such file here"
            return ""
        self._folder.mkdir(exist_ok=True)
        name = os.path.basename(path)
        taken = {each.name for each in self._folder.iterdir()}
        if name in taken and filecmp.cmp(path, self._folder / name, shallow=False):
            return name
        self.copied[path] = name = free_name(taken, name)
        shutil.copyfile(path, self._folder / name)
        return name


class _Mover:
    """Has one graph of a SavedModel read assets."""

    def __init__(self, meta: Any, assets: _Assets) -> None:
        self._meta, self._assets = meta, assets
        self._graph = NewPaths(meta.graph_def.node)
        self._nodes = self._graph.nodes
        self._functions = {each.signature.name: each for each in meta.graph_def.library.function}
        self._files = _asset_files(meta)
        # By path, for each asset has a variable of its own.
        self._given: dict[str, Given] = {}
        self._assigns: list[str] = []

    def run(self) -> bool:
        """Whether anything was changed."""
        assets = len(self._meta.asset_file_def)
        self._move_in_functions()
        at_start = self._needed(self._main_ops())
        at_requests = self._needed(
            tensor
            for name, signature in self._meta.signature_def.items()
            if name != _INIT_SIGNATURE
            for info in signature.outputs.values()
            for tensor in tensor_names(info)
        )
        for read in list(file_reads(self._nodes, self._functions)):
            if read.node in at_requests:
                self._move(read)
            elif read.node in at_start:
                self._feed(read)
        if self._assigns:
            self._wait_at_start()
        return len(self._meta.asset_file_def) > assets

    def _needed(self, tensors: Iterable[str]) -> set[str]:
        names = {node_name(tensor) for tensor in tensors}
        return set(needed_by(names & self._nodes.keys(), self._nodes))

    def _move_in_functions(self) -> None:
        for function in self._functions.values():
            nodes = {node.name: node for node in function.node_def}
            for read in file_reads(nodes, self._functions):
                if read.constants is None:
                    self._assets.left[read.node] = _COMPUTED
        needs = give_paths(self._meta, self._assets.name_of, self._assets.left.__setitem__)
        given = {path: self._path(path) for paths in needs.values() for path in paths}
        tensors = {path: each.tensor for path, each in given.items()}
        for node in list(self._nodes.values()):
            pass_paths(node, needs, tensors)
        concrete = self._meta.object_graph_def.concrete_functions
        for name in needs.keys() & set(concrete):
            concrete[name].bound_inputs.extend(given[path].object for path in needs[name])

    def _move(self, read: FileRead) -> None:
        """Has a node read assets by their paths."""
        if read.constants is None:
            self._assets.left[read.node] = _COMPUTED
            return
        known = {
            path: self._files[name]
            for name in read.constants
            if name in self._files
            for path in paths_in(self._nodes[name])
        }
        paths = self._graph.paths_of(read)
        names = {path: known.get(path) or self._assets.name_of(path) for path in paths}
        if paths and all(names.values()):
            self._graph.put(read, {path: self._path(path, names[path]).tensor for path in paths})

    def _feed(self, read: FileRead) -> None:
        """Has TensorFlow feed the paths of assets to a node that fills a table."""
        for name in read.constants or ():
            constant = self._nodes[name]
            is_one = not constant.attr["value"].tensor.tensor_shape.dim
            if name in self._files or not is_one:
                continue
            (path,) = paths_in(constant)
            if asset := self._assets.name_of(path):
                self._files[name] = asset
                self._define(name, asset)

    def _path(self, path: str, asset: str = "") -> Given:
        """The path of an asset once the model is loaded."""
        if path not in self._given:
            tensor = self._variable(path, asset or self._assets.name_of(path))
            self._given[path] = Given(tensor=tensor, object=self._object())
        return self._given[path]

    def _variable(self, path: str, asset: str) -> str:
        """A variable that has a path since the model was loaded, and what reads it."""
        place = self._graph.add("Const", "asset_path/constant")
        place.attr["dtype"].type = STRING
        place.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(path))
        variable = self._graph.add("VarHandleOp", "asset_path/variable")
        variable.attr["shared_name"].s = variable.name.encode()
        used = variable.name
        assign = self._graph.add("AssignVariableOp", "asset_path/assign", [used, place.name])
        read = self._graph.add("ReadVariableOp", "asset_path/read", [used])
        for node in (variable, assign, read):
            node.attr["dtype"].type = STRING
        variable.attr["shape"].shape.SetInParent()
        self._define(place.name, asset)
        self._assigns.append(assign.name)
        return str(read.name)

    def _define(self, constant: str, asset: str) -> None:
        file = self._meta.asset_file_def.add(filename=asset)
        file.tensor_info.name = f"{constant}:0"
        file.tensor_info.dtype = STRING
        file.tensor_info.tensor_shape.SetInParent()

    def _object(self) -> int | None:
        """The last asset as an object of the model, for what TensorFlow 2 loads."""
        nodes = self._meta.object_graph_def.nodes
        if not nodes:
            return None
        number = len(nodes)
        nodes.add().asset.asset_file_def_index = len(self._meta.asset_file_def) - 1
        nodes[0].children.add(node_id=number, local_name=f"_asset_path_{number}")
        return number

    def _main_ops(self) -> list[str]:
        """The op that TensorFlow runs once a model is loaded, if it has one."""
        if _INIT_SIGNATURE in self._meta.signature_def:
            outputs = self._meta.signature_def[_INIT_SIGNATURE].outputs
            return [info.name for info in outputs.values()]
        known = (key for key in _MAIN_OPS if key in self._meta.collection_def)
        return [name for key in known for name in self._meta.collection_def[key].node_list.value]

    def _wait_at_start(self) -> None:
        """Has that op, or a new one, wait for the paths of assets."""
        main = self._main_ops()
        if not main:
            main = [self._graph.add("NoOp", "find_assets").name]
            self._meta.collection_def[_MAIN_OPS[0]].node_list.value.extend(main)
        self._nodes[node_name(main[0])].input.extend(f"^{name}" for name in self._assigns)


def _asset_files(meta: Any) -> dict[str, str]:
    """The names of a graph's assets by their constants; its own definitions have all of them."""
    if not meta.asset_file_def and _COLLECTION in meta.collection_def:
        for value in meta.collection_def[_COLLECTION].any_list.value:
            value.Unpack(meta.asset_file_def.add())
    return {node_name(each.tensor_info.name): each.filename for each in meta.asset_file_def}

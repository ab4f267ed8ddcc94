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
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.checks.order import needed_by
from workbench.core.fusion.node_defs import free_name
from workbench.core.graph.graph_view import node_name
from workbench.core.tf_graph.saved_model_file import read_saved_model
from workbench.exporting.read_files import FileRead, file_reads, paths_in
from workbench.exporting.saved_proto import write_saved_model
from workbench.exporting.session.signatures import tensor_names

_INIT_SIGNATURE, _MAIN_OPS = "__saved_model_init_op", ("saved_model_main_op", "legacy_init_op")
_ASSETS, _COLLECTION = "assets", "saved_model_assets"
_STRING = tf.string.as_datatype_enum


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
        self._graph = meta.graph_def
        self._nodes = {node.name: node for node in self._graph.node}
        self._functions = {each.signature.name: each for each in self._graph.library.function}
        self._files = _asset_files(meta)
        # By constant of a path the tensor that has the path of the asset.
        self._reads: dict[str, str] = {}
        self._assigns: list[str] = []

    def run(self) -> bool:
        """Whether anything was changed."""
        for function in self._graph.library.function:
            self._leave(function)
        at_start, assets = self._needed(self._main_ops()), len(self._meta.asset_file_def)
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

    def _leave(self, function: Any) -> None:
        """Says what a function reads: its arguments are those of the model that has it."""
        nodes = {node.name: node for node in function.node_def}
        for read in file_reads(nodes, self._functions):
            for name in read.constants or ():
                for path in paths_in(nodes[name]):
                    self._assets.left[path] = (
                        f"{read.node!r} of function {function.signature.name!r} names it; give "
                        "the function a tf.saved_model.Asset"
                    )
            if read.constants is None:
                self._assets.left[read.node] = "it computes the path"

    def _move(self, read: FileRead) -> None:
        """Has a node read assets by their paths."""
        if read.constants is None:
            self._assets.left[read.node] = "it computes the path"
            return
        if all(self._read_of(name) for name in read.constants):
            node = self._nodes[read.node]
            node.input[read.place] = self._copy(node.input[read.place])

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

    def _copy(self, text: str) -> str:
        """The tensor that has the path of an asset where another has a path."""
        name = node_name(text)
        if name in self._reads:
            return self._reads[name]
        copy = self._add(self._nodes[name].op, f"{name}/of_asset")
        copy.attr.MergeFrom(self._nodes[name].attr)
        copy.input.extend(
            each if each.startswith("^") else self._copy(each) for each in self._nodes[name].input
        )
        self._reads[name] = copy.name
        return text.replace(name, copy.name, 1)

    def _read_of(self, constant: str) -> str:
        """The tensor that has the paths of assets in place of a constant; "" where files lack."""
        if constant in self._reads:
            return self._reads[constant]
        paths = paths_in(self._nodes[constant])
        names = [self._files.get(constant) or self._assets.name_of(path) for path in paths]
        if not all(names):
            return ""
        reads = [
            self._variable(f"{constant}/asset", path, name)
            for path, name in zip(paths, names, strict=True)
        ]
        shape = self._nodes[constant].attr["value"].tensor.tensor_shape
        if shape.dim:
            packed = self._add("Pack", f"{constant}/assets", reads)
            packed.attr["N"].i, packed.attr["T"].type = len(reads), _STRING
            reads = [packed.name]
        self._reads[constant] = reads[0]
        return reads[0]

    def _variable(self, scope: str, path: str, asset: str) -> str:
        """A variable that has the path of an asset once the model is loaded, and what reads it."""
        place = self._add("Const", f"{scope}/path")
        place.attr["dtype"].type = _STRING
        place.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(path))
        variable = self._add("VarHandleOp", f"{scope}/variable")
        variable.attr["shared_name"].s = variable.name.encode()
        assign = self._add("AssignVariableOp", f"{scope}/assign", [variable.name, place.name])
        read = self._add("ReadVariableOp", f"{scope}/read", [variable.name])
        for node in (variable, assign, read):
            node.attr["dtype"].type = _STRING
        variable.attr["shape"].shape.SetInParent()
        self._define(place.name, asset)
        self._assigns.append(assign.name)
        return read.name

    def _define(self, constant: str, asset: str) -> None:
        file = self._meta.asset_file_def.add(filename=asset)
        file.tensor_info.name = f"{constant}:0"
        file.tensor_info.dtype = _STRING
        file.tensor_info.tensor_shape.SetInParent()

    def _add(self, op: str, wanted: str, inputs: Iterable[str] = ()) -> node_def_pb2.NodeDef:
        node = self._graph.node.add(name=free_name(set(self._nodes), wanted), op=op)
        node.input.extend(inputs)
        self._nodes[node.name] = node
        return node

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
            main = [self._add("NoOp", "find_assets").name]
            self._meta.collection_def[_MAIN_OPS[0]].node_list.value.extend(main)
        self._nodes[node_name(main[0])].input.extend(f"^{name}" for name in self._assigns)


def _asset_files(meta: Any) -> dict[str, str]:
    """The names of a graph's assets by their constants; its own definitions have all of them."""
    if not meta.asset_file_def and _COLLECTION in meta.collection_def:
        for value in meta.collection_def[_COLLECTION].any_list.value:
            value.Unpack(meta.asset_file_def.add())
    return {node_name(each.tensor_info.name): each.filename for each in meta.asset_file_def}

"""A node that reads files by constant paths → one that reads them by tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.node_defs import free_name
from workbench.core.graph.graph_view import node_name
from workbench.exporting.read_files import FileRead, paths_in

STRING = tf.string.as_datatype_enum


class NewPaths:
    """The nodes of a graph, or of a function, of which some get other paths."""

    def __init__(self, nodes: Any, taken: Iterable[str] = (), output: str = "") -> None:
        """Changes nothing yet.

        Args:
          nodes: a repeated field of NodeDefs, which is changed.
          taken: names that are no nodes'.
          output: what follows the name of a Pack node where its output is read.
        """
        self._all, self._output = nodes, output
        self.nodes: dict[str, Any] = {node.name: node for node in nodes}
        self._taken = {*self.nodes, *taken}
        # By constant the tensor in its place, and by other nodes the names of their copies.
        self._tensors: dict[str, str] = {}
        self._copies: dict[str, str] = {}

    def paths_of(self, read: FileRead) -> list[str]:
        """The paths by which a node reads files; none where they cannot be other tensors."""
        constants = [self.nodes[name] for name in read.constants or ()]
        if any(len(each.attr["value"].tensor.tensor_shape.dim) > 1 for each in constants):
            return []
        return [path for each in constants for path in paths_in(each)]

    def put(self, read: FileRead, tensors: Mapping[str, str]) -> None:
        """Has a node read the files of other paths.

        What hands the paths on is copied, for others may read it.

        Args:
          read: the node.
          tensors: what has the path, by each that there was.
        """
        for name in read.constants or ():
            if name not in self._tensors:
                self._tensors[name] = self._in_place_of(self.nodes[name], tensors)
        node = self.nodes[read.node]
        node.input[read.place] = self._copy(node.input[read.place])

    def add(self, op: str, wanted: str, inputs: Iterable[str] = ()) -> node_def_pb2.NodeDef:
        """A new node, of a name that is free."""
        node: node_def_pb2.NodeDef = self._all.add(name=self.free(wanted), op=op)
        node.input.extend(inputs)
        self.nodes[node.name] = node
        return node

    def free(self, wanted: str) -> str:
        """A name that is free, which is taken then."""
        return free_name(self._taken, wanted)

    def _in_place_of(self, constant: Any, tensors: Mapping[str, str]) -> str:
        paths = [tensors[path] for path in paths_in(constant)]
        if not constant.attr["value"].tensor.tensor_shape.dim:
            return paths[0]
        packed = self.add("Pack", f"{constant.name}/assets", paths)
        packed.attr["N"].i, packed.attr["T"].type = len(paths), STRING
        return f"{packed.name}{self._output}"

    def _copy(self, text: str) -> str:
        name = node_name(text)
        if name in self._tensors:
            return self._tensors[name]
        if name not in self._copies:
            node = self.nodes[name]
            copy = self.add(node.op, f"{name}/of_asset")
            copy.attr.MergeFrom(node.attr)
            copy.input.extend(
                each if each.startswith("^") else self._copy(each) for each in node.input
            )
            self._copies[name] = copy.name
        return text.replace(name, self._copies[name], 1)

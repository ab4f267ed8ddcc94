"""Graphs and functions with Workbench's nodes → the same with calls of stock functions."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2, node_def_pb2

from workbench import _native
from workbench.core.graph.graph_view import node_name
from workbench.errors import UnsupportedError
from workbench.exporting.lowering.call import (
    KeyedTable,
    attributes_of,
    flat_dtypes,
    tensors_of,
)
from workbench.exporting.lowering.stock_functions import StockFunctions
from workbench.exporting.lowering.templates import RENAMED, STAGES, TEMPLATES, Template

PREFIX = "Workbench"
# Ops that hand a handle on.
_HANDS_ON = frozenset({"Identity", "Switch", "RefSwitch"})
Shapes = Callable[[str], tf.TensorShape]


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeyedSource:
    """Where the rows of an EmbeddingVariable are in an export.

    Attributes:
      table: tensor of the hash table's handle.
      matrix: tensor of the handle of the matrix.
      of: their sizes.
    """

    table: str
    matrix: str
    of: KeyedTable


class Lowering:
    """Replaces nodes, and counts which.

    Attributes:
      counts: how many nodes of each of Workbench's types were replaced.
      functions: those that nodes now call.
    """

    def __init__(self, taken: Sequence[str] = ()) -> None:
        """Starts with nothing; `taken` are names of functions that are there already."""
        self.counts: collections.Counter[str] = collections.Counter()
        self.functions = StockFunctions(taken)

    def nodes(
        self,
        nodes: Sequence[Any],
        where: str,
        shapes: Shapes,
        keyed: Mapping[str, KeyedSource] | None = None,
    ) -> list[node_def_pb2.NodeDef]:
        """The nodes of a graph, of which Workbench's are replaced by ones of the same names.

        Args:
          nodes: NodeDefs.
          where: the graph or function, for messages.
          shapes: the static shape of a tensor by its name.
          keyed: of the node of each EmbeddingVariable, by its name, where its rows are.

        Raises:
          UnsupportedError: no stock ops do what a node does.
        """
        by_name = {node.name: node for node in nodes}
        sources = keyed or {}
        return [
            self._replaced(node, where, shapes, by_name, sources)
            if node.op.startswith(PREFIX)
            else node
            for node in nodes
        ]

    def function(
        self, function: function_pb2.FunctionDef, shapes: Shapes
    ) -> function_pb2.FunctionDef:
        """A function whose nodes of Workbench's are replaced.

        Args:
          function: its definition.
          shapes: the static shape of a tensor by its name in the function.

        Raises:
          UnsupportedError: no stock ops do what a node does.
        """
        where = f"function {function.signature.name!r}"
        lowered = function_pb2.FunctionDef()
        lowered.CopyFrom(function)
        del lowered.node_def[:]
        lowered.node_def.extend(self.nodes(function.node_def, where, shapes))
        renamed = _renamed_outputs(function.node_def)
        for node in lowered.node_def:
            node.input[:] = [renamed.get(text, text) for text in node.input]
        for name, text in list(lowered.ret.items()):
            lowered.ret[name] = renamed.get(text, text)
        return lowered

    def _replaced(
        self,
        node: Any,
        where: str,
        shapes: Shapes,
        by_name: Mapping[str, Any],
        keyed: Mapping[str, KeyedSource],
    ) -> node_def_pb2.NodeDef:
        template = TEMPLATES.get(node.op)
        if node.op not in RENAMED and template is None:
            raise UnsupportedError(refusal(node.op, node.name, where))
        self.counts[node.op] += 1
        if template is None:
            return _renamed(node)
        return self._called(template, node, where, shapes, by_name, keyed)

    def _called(
        self,
        template: Template,
        node: Any,
        where: str,
        shapes: Shapes,
        by_name: Mapping[str, Any],
        keyed: Mapping[str, KeyedSource],
    ) -> node_def_pb2.NodeDef:
        """A call of the function that does what a node does."""
        op_def = op_def_of(node.op)
        data, waits = _inputs(node)
        sources: list[KeyedSource] = []
        arguments = data
        if template.keyed:
            pairs = tensors_of(op_def.input_arg, attributes_of(node, op_def))
            named = _named(pairs, data)
            sources = [
                _source(text, node.name, where, by_name, keyed) for text in named[template.keyed]
            ]
            read = [text for name in template.reads for text in named[name]]
            arguments = [each.table for each in sources] + [each.matrix for each in sources] + read
        function = self.functions.of(
            template, node, op_def, [shapes(text) for text in data], tuple(s.of for s in sources)
        )
        stateful = "Stateful" if function.signature.is_stateful else ""
        call = node_def_pb2.NodeDef(name=node.name, op=f"{stateful}PartitionedCall")
        call.device = node.device
        call.input.extend([*arguments, *waits])
        call.attr["f"].func.name = function.signature.name
        call.attr["Tin"].list.type.extend(arg.type for arg in function.signature.input_arg)
        call.attr["Tout"].list.type.extend(arg.type for arg in function.signature.output_arg)
        return call


def op_def_of(op: str) -> Any:
    """The definition of an op of Workbench's."""
    from tensorflow.python.framework import op_def_registry

    _native.library()
    return op_def_registry.get(op)


def refusal(op: str, name: str, where: str) -> str:
    """Why a node has no stock form, and what to do."""
    if op.startswith(STAGES):
        return (
            f"{where} reads a stage at {name!r} ({op}), and an export has none; give the tensors "
            "that the stage hands out as inputs"
        )
    return (
        f"{where} has {name!r} ({op}), which has no stock form: it trains, or counts rows; export "
        "what serves alone, or keep the ops with keep_ops=True"
    )


def _inputs(node: Any) -> tuple[list[str], list[str]]:
    """The tensors that a node reads, and what it waits for."""
    waits = [text for text in node.input if text.startswith("^")]
    return [text for text in node.input if not text.startswith("^")], waits


def _named(pairs: Sequence[Any], data: Sequence[str]) -> dict[str, list[str]]:
    """The inputs of a node by name, always as lists."""
    named, rest = {}, iter(data)
    for name, dtypes in pairs:
        count = len(dtypes) if isinstance(dtypes, list) else 1
        named[name] = [next(rest) for _ in range(count)]
    return named


def _source(
    text: str,
    reader: str,
    where: str,
    by_name: Mapping[str, Any],
    keyed: Mapping[str, KeyedSource],
) -> KeyedSource:
    """Where the rows of the EmbeddingVariable are whose handle a node reads."""
    name = node_name(text)
    while name not in keyed and name in by_name and by_name[name].op in _HANDS_ON:
        name = node_name(by_name[name].input[0])
    if name not in keyed:
        raise UnsupportedError(
            f"{where} reads rows of an EmbeddingVariable at {reader!r} in a loop or a function of "
            "its own; read them before it, or keep the ops with keep_ops=True"
        )
    return keyed[name]


def _renamed(node: Any) -> node_def_pb2.NodeDef:
    """A node of the stock op that has the same inputs, or the first share of them."""
    op, share = RENAMED[node.op]
    data, waits = _inputs(node)
    renamed = node_def_pb2.NodeDef()
    renamed.CopyFrom(node)
    renamed.op = op
    renamed.input[:] = [*data[: round(len(data) * share)], *waits]
    if op.endswith("ApplyAdam"):
        renamed.attr["T"].type = tf.float32.as_datatype_enum
    return renamed


def _renamed_outputs(nodes: Sequence[Any]) -> dict[str, str]:
    """Outputs of a function's nodes that have other names once the nodes are replaced."""
    renamed = {}
    for node in nodes:
        if node.op not in TEMPLATES:
            continue
        op_def, number = op_def_of(node.op), 0
        for name, dtypes in tensors_of(op_def.output_arg, attributes_of(node, op_def)):
            for i in range(len(flat_dtypes([(name, dtypes)]))):
                renamed[f"{node.name}:{name}:{i}"] = f"{node.name}:output:{number}"
                number += 1
    return renamed

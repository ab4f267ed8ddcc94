"""The graph of an export: the part that signatures need, in stock ops, with the values it reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import function_pb2, graph_pb2, node_def_pb2

from workbench.core.graph.graph_view import node_name
from workbench.exporting.lowering.library import Library
from workbench.exporting.lowering.lower import Lowering
from workbench.exporting.session.merged_parts import GraphPart
from workbench.exporting.session.new_nodes import (
    keyed_nodes,
    matrix_of,
    values_of_refs,
    variable_node,
)
from workbench.exporting.session.signatures import tensor_names
from workbench.exporting.session.values import READERS, SessionValues

STATIC, MUTABLE = "InitializeTableV2", "LookupTableImportV2"
_HANDLE = "VarHandleOp"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableFill:
    """What fills a hash table.

    Attributes:
      op: the type of the op.
      keys: name of the variable of its keys.
      values: name of the variable of their values; "" where these are 0, 1, 2, …
    """

    op: str
    keys: str
    values: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewGraph:
    """The definition of an export's graph.

    Attributes:
      definition: with variables, tables and functions.
      variables: the values of its variables, by name.
      fills: what fills the hash tables whose content is in variables, by name of the table.
      counts: how many nodes of each of Workbench's types were replaced.
    """

    definition: graph_pb2.GraphDef
    variables: Mapping[str, np.ndarray]
    fills: Mapping[str, TableFill]
    counts: Mapping[str, int]


def new_graph(
    graph: tf.Graph,
    definition: graph_pb2.GraphDef,
    part: GraphPart,
    values: SessionValues,
    *,
    keep_ops: bool,
) -> NewGraph:
    """The graph of an export.

    Args:
      graph: of the session.
      definition: its definition.
      part: what is exported of it.
      values: what the session holds.
      keep_ops: whether Workbench's ops stay.

    Raises:
      UnsupportedError: an op has no stock form.
    """
    library = Library(definition.library.function)
    lowering = Lowering(list(library.functions))
    held = _Held(nodes=list(part.nodes), added=[], variables=dict(values.variables), fills={})
    if keep_ops:
        held.added += part.embeddings
    else:
        _replace(held, lowering, values, _shapes(graph, part))
    for name, (keys, items) in values.tables.items():
        fill = TableFill(op=MUTABLE, keys=f"{name}/exported_keys", values=f"{name}/exported_items")
        held.fills[name] = fill
        held.variables |= {fill.keys: keys, fill.values: items}
    held.added += values_of_refs(held.nodes, [v for v in part.variables if v.op != _HANDLE])
    there = {node.name for node in held.added}
    held.added += [
        variable_node(name, value) for name, value in held.variables.items() if name not in there
    ]
    nodes = _needed([*held.added, *held.nodes], part, held.fills)
    functions = _functions(library, library.called_by(nodes), None if keep_ops else lowering)
    if keep_ops:
        for body in (nodes, *(function.node_def for function in functions)):
            _only_read(body)
    result = graph_pb2.GraphDef(versions=definition.versions, node=nodes)
    result.library.function.extend([*functions, *lowering.functions.all()])
    there = {node.name for node in nodes}
    return NewGraph(
        definition=result,
        variables={name: value for name, value in held.variables.items() if name in there},
        fills=held.fills,
        counts=dict(lowering.counts),
    )


@dataclasses.dataclass(kw_only=True)
class _Held:
    """What the graph has so far.

    Attributes:
      nodes: of the session's graph.
      added: beside those.
      variables, fills: as of `NewGraph`.
    """

    nodes: list[Any]
    added: list[Any]
    variables: dict[str, np.ndarray]
    fills: dict[str, TableFill]


def _replace(
    held: _Held,
    lowering: Lowering,
    values: SessionValues,
    shapes: Callable[[str], tf.TensorShape],
) -> None:
    """Puts stock nodes, tables and variables in place of Workbench's nodes."""
    keyed = {}
    for contents in values.embeddings.values():
        default = held.variables.get(contents.default_rows or "")
        own, source, variables = keyed_nodes(contents, matrix_of(contents, default))
        held.added += own
        held.variables |= variables
        keyed[contents.name] = source
        held.fills[source.table] = TableFill(op=STATIC, keys=f"{contents.name}/exported_keys")
    held.nodes = lowering.nodes(held.nodes, "the model", shapes, keyed)


def _functions(
    library: Library, called: set[str], lowering: Lowering | None
) -> list[function_pb2.FunctionDef]:
    """The functions that are called, whose ops of Workbench's are replaced; None keeps these."""
    own = set(library.with_own_ops())
    return [
        library.lowered(name, lowering)
        if lowering is not None and name in own
        else library.functions[name]
        for name in sorted(called)
    ]


def _only_read(nodes: Iterable[node_def_pb2.NodeDef]) -> None:
    """Has lookups in EmbeddingVariables make no rows and count nothing."""
    for node in nodes:
        if node.op in READERS:
            node.attr["read_only"].b = True


def _needed(
    nodes: Sequence[node_def_pb2.NodeDef], part: GraphPart, fills: Mapping[str, TableFill]
) -> list[node_def_pb2.NodeDef]:
    """The nodes that signatures read, and what fills the tables of these."""
    by_name = {node.name: node for node in nodes}
    waiting = [*part.initializers]
    for signature in part.signatures.values():
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            waiting += map(node_name, tensor_names(info))
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += map(node_name, by_name[name].input)
            if name in fills:
                waiting += filter(None, (fills[name].keys, fills[name].values))
    return [node for node in nodes if node.name in reached]


def _shapes(graph: tf.Graph, part: GraphPart) -> Callable[[str], tf.TensorShape]:
    def shape(text: str) -> tf.TensorShape:
        name = text if ":" in text else f"{text}:0"
        return graph.get_tensor_by_name(part.old_names.get(name, name)).shape

    return shape

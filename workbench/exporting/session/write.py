"""Writes the part of a session's graph and its values as a SavedModel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2, variable_pb2
from tensorflow.python.ops import resource_variable_ops

from workbench.core.graph.graph_view import node_name
from workbench.errors import UnsupportedError, first_line
from workbench.exporting.lowering.library import Library
from workbench.exporting.lowering.lower import Lowering
from workbench.exporting.session.new_nodes import (
    keyed_nodes,
    matrix_of,
    values_of_refs,
    variable_node,
)
from workbench.exporting.session.part import EMBEDDING, GraphPart
from workbench.exporting.session.signatures import tensor_names
from workbench.exporting.session.values import EmbeddingContents, SessionValues
from workbench.ops.embedding_variable.options import EmbeddingVariableOption
from workbench.ops.embedding_variable.saving import EmbeddingSaveable
from workbench.ops.embedding_variable.slots import Slots
from workbench.ops.embedding_variable.table import EmbeddingVariable

v1 = tf.compat.v1
_READERS = ("WorkbenchEmbeddingGather", "WorkbenchEmbeddingGroupedLookUp")
_STATIC, _MUTABLE = "InitializeTableV2", "LookupTableImportV2"
_HANDLE = "VarHandleOp"
_FROM_FILE = ("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")


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
    variables, fills = dict(values.variables), {}
    nodes = list(part.nodes)
    added: list[node_def_pb2.NodeDef] = []
    if keep_ops:
        added += part.embeddings
        _only_read(nodes)
    else:
        keyed = {}
        for contents in values.embeddings.values():
            matrix = matrix_of(contents, variables.get(contents.default_rows or ""))
            own, source, held = keyed_nodes(contents, matrix)
            added += own
            keyed[contents.name], variables = source, variables | held
            fills[source.table] = TableFill(op=_STATIC, keys=f"{contents.name}/exported_keys")
        nodes = lowering.nodes(nodes, "the model", _shapes(graph, part), keyed)
    for name, (keys, items) in values.tables.items():
        fill = TableFill(op=_MUTABLE, keys=f"{name}/exported_keys", values=f"{name}/exported_items")
        fills[name], variables = fill, variables | {fill.keys: keys, fill.values: items}
    added += values_of_refs(nodes, [node for node in part.variables if node.op != _HANDLE])
    there = {node.name for node in added}
    added += [variable_node(name, variables[name]) for name in variables if name not in there]
    nodes = _needed([*added, *nodes], part, fills)
    there = {node.name for node in nodes}
    variables = {name: value for name, value in variables.items() if name in there}
    result = graph_pb2.GraphDef(versions=definition.versions, node=nodes)
    called = library.called_by(result.node)
    with_own = set(library.with_own_ops())
    for name in sorted(called):
        needs = name in with_own and not keep_ops
        body = library.lowered(name, lowering) if needs else library.functions[name]
        result.library.function.append(body)
    result.library.function.extend(lowering.functions.all())
    return NewGraph(
        definition=result, variables=variables, fills=fills, counts=dict(lowering.counts)
    )


def write_model(
    new: NewGraph, part: GraphPart, values: SessionValues, assets: Mapping[str, str], folder: Path
) -> None:
    """Writes a SavedModel.

    Args:
      new: its graph.
      part: the part of the session's graph that it has.
      values: what the session holds.
      assets: the file of each constant that names one elsewhere, by the name of its node.
      folder: an empty one.

    Raises:
      UnsupportedError: the graph cannot be built anew.
    """
    for node in new.definition.node:
        if node.name in assets and node.op == "Const":
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(assets[node.name]))
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        try:
            tf.import_graph_def(new.definition, name="")
        except ValueError as error:
            raise UnsupportedError(
                f"the graph cannot be built without what trains it: {first_line(error)}"
            ) from error
        saved: list[Any] = []
        for name, value in new.variables.items():
            saved.append(_loaded(graph, session, name, value))
        for node in new.definition.node:
            if node.op == EMBEDDING:
                saved.append(_kept_rows(graph, session, values.embeddings[node.name]))
        fills = [graph.get_operation_by_name(name) for name in part.initializers]
        fills += [_filled(graph, table, fill) for table, fill in new.fills.items()]
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session,
            [tf.saved_model.SERVING],
            signature_def_map=dict(part.signatures),
            assets_collection=_assets(graph, part.initializers),
            main_op=tf.group(*fills, name="fill_tables") if fills else None,
            saver=v1.train.Saver(saved) if saved else None,
            strip_default_attrs=True,
        )
        builder.save()


def _only_read(nodes: Sequence[node_def_pb2.NodeDef]) -> None:
    """Has lookups in EmbeddingVariables make no rows and count nothing."""
    for node in nodes:
        if node.op in _READERS:
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


def _loaded(graph: tf.Graph, session: Any, name: str, value: np.ndarray) -> Any:
    """A variable of the graph with its value; new ops of its own initialize it by zeros."""
    handle = graph.get_tensor_by_name(f"{name}:0")
    dtype = tf.as_dtype(handle.op.get_attr("dtype"))
    with tf.name_scope(f"{name}/exported/"):
        zeros = tf.zeros(value.shape, dtype)
        assign = tf.raw_ops.AssignVariableOp(resource=handle, value=zeros)
        read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
    session.run(assign, {zeros: value})
    definition = variable_pb2.VariableDef(
        variable_name=handle.name,
        initializer_name=assign.name,
        initial_value_name=zeros.name,
        snapshot_name=read.name,
        is_resource=True,
        trainable=False,
    )
    variable = resource_variable_ops.ResourceVariable.from_proto(definition)
    v1.add_to_collection(v1.GraphKeys.GLOBAL_VARIABLES, variable)
    return variable


def _kept_rows(graph: tf.Graph, session: Any, contents: EmbeddingContents) -> Any:
    """An EmbeddingVariable of the graph with its rows, as a Saver saves it."""
    table = EmbeddingVariable(
        name=contents.name,
        dim=contents.rows.shape[1],
        handle=graph.get_tensor_by_name(f"{contents.name}:0"),
        default_rows=None,
        trainable=False,
        option=EmbeddingVariableOption(),
        slots=Slots(),
    )
    parts = (v1.placeholder(tf.int64, [None]), v1.placeholder(tf.float32, [None, None]))
    nothing = [tf.zeros([0], tf.int64)] * 4
    fill = table.replace([*parts, *nothing], (), part=0, parts=1)
    session.run(fill, dict(zip(parts, (contents.keys, contents.rows), strict=True)))
    return EmbeddingSaveable(contents.name, [table], Slots())


def _filled(graph: tf.Graph, table: str, fill: TableFill) -> tf.Operation:
    """The op that fills a hash table from variables."""
    handle = graph.get_tensor_by_name(f"{table}:0")
    keys = _read(graph, fill.keys)
    if fill.op == _MUTABLE:
        return tf.raw_ops.LookupTableImportV2(
            table_handle=handle, keys=keys, values=_read(graph, fill.values)
        )
    places = tf.range(tf.size(keys, out_type=tf.int64))
    return tf.raw_ops.InitializeTableV2(table_handle=handle, keys=keys, values=places)


def _read(graph: tf.Graph, variable: str) -> tf.Tensor:
    handle = graph.get_tensor_by_name(f"{variable}:0")
    dtype = tf.as_dtype(handle.op.get_attr("dtype"))
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)


def _assets(graph: tf.Graph, initializers: Sequence[str]) -> list[tf.Tensor]:
    """The constants that name a file from which a table is filled."""
    assets = []
    for name in initializers:
        op = graph.get_operation_by_name(name)
        if op.type not in _FROM_FILE:
            continue
        file = op.inputs[1]
        while file.op.type == "Identity":
            file = file.op.inputs[0]
        if file.op.type == "Const":
            assets.append(file)
    for file in dict.fromkeys(asset.ref() for asset in assets):
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, file.deref())
    return v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)

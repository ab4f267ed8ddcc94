"""Writes the part of a session's graph and its values as a SavedModel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import variable_pb2
from tensorflow.python.ops import resource_variable_ops

from workbench.errors import UnsupportedError, first_line
from workbench.exporting.session.new_graph import MUTABLE, NewGraph, TableFill
from workbench.exporting.session.part import EMBEDDING, GraphPart
from workbench.exporting.session.values import EmbeddingContents, SessionValues
from workbench.ops.embedding_variable.options import EmbeddingVariableOption
from workbench.ops.embedding_variable.saving import EmbeddingSaveable
from workbench.ops.embedding_variable.slots import Slots
from workbench.ops.embedding_variable.table import EmbeddingVariable

v1 = tf.compat.v1
_FROM_FILE = ("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")


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
    if fill.op == MUTABLE:
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

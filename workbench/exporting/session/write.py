"""Writes the part of a session's graph and its values as a SavedModel."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import variable_pb2
from tensorflow.python.ops import resource_variable_ops

from workbench.core.graph.op_types import EMBEDDING_VARIABLE
from workbench.errors import UnsupportedError, first_line
from workbench.exporting.session.merged_parts import GraphPart
from workbench.exporting.session.new_graph import MUTABLE, NewGraph, TableFill
from workbench.exporting.session.values import EmbeddingContents, SessionValues
from workbench.ops.embedding_variable.options import EmbeddingVariableOption
from workbench.ops.embedding_variable.saving import EmbeddingSaveable
from workbench.ops.embedding_variable.slots import Slots
from workbench.ops.embedding_variable.table import EmbeddingVariable

v1 = tf.compat.v1
# What is fed at a time.
_BATCH_BYTES = 256 << 20
_FROM_FILE = ("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")


def write_model(
    new: NewGraph,
    part: GraphPart,
    values: SessionValues,
    assets: Mapping[str, str | None],
    folder: Path,
) -> None:
    """Writes a SavedModel.

    Args:
      new: its graph.
      part: the part of the session's graph that it has.
      values: what the session holds.
      assets: constants that name a file, which is copied, by the names of their nodes; each with
        the file where it is elsewhere.
      folder: an empty one.

    Raises:
      UnsupportedError: the graph cannot be built anew.
    """
    constants = [n for n in new.definition.node if n.name in assets and n.op == "Const"]
    for node in constants:
        if (file := assets[node.name]) is not None:
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(file))
    with tf.Graph().as_default() as graph, v1.Session(graph=graph, config=_plain()) as session:
        try:
            tf.import_graph_def(new.definition, name="")
        except ValueError as error:
            raise UnsupportedError(
                f"the graph cannot be built without what trains it: {first_line(error)}"
            ) from error
        loads = [_variable(graph, name, value) for name, value in new.variables.items()]
        loads += [
            _kept_rows(graph, values.embeddings[node.name])
            for node in new.definition.node
            if node.op == EMBEDDING_VARIABLE
        ]
        fills = [graph.get_operation_by_name(name) for name in part.initializers]
        fills += [_filled(graph, table, fill) for table, fill in new.fills.items()]
        files = [graph.get_operation_by_name(node.name) for node in constants]
        _assets([*files, *_vocabularies(graph, part.initializers)])
        _save(session, loads, fills, part, folder)


def _save(
    session: Any,
    loads: Sequence[_Load],
    fills: Sequence[tf.Operation],
    part: GraphPart,
    folder: Path,
) -> None:
    """Saves a session's graph, once its values are loaded."""
    fill_tables = tf.group(*fills, name="fill_tables") if fills else None
    saver = v1.train.Saver([load.saved for load in loads]) if loads else None
    # Last, for a session takes in what was added to its graph at each run.
    for some in _batches(loads):
        fed = {tensor: value for load in some for tensor, value in load.fed}
        session.run([load.op for load in some], fed)
    builder = v1.saved_model.Builder(str(folder))
    builder.add_meta_graph_and_variables(
        session,
        [tf.saved_model.SERVING],
        signature_def_map=dict(part.signatures),
        assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
        main_op=fill_tables,
        saver=saver,
        strip_default_attrs=True,
    )
    builder.save()


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Load:
    """What brings a value into the graph's session.

    Attributes:
      saved: what a Saver saves.
      op: what loads it.
      fed: the tensors of `op` and their values.
    """

    saved: Any
    op: tf.Operation
    fed: tuple[tuple[tf.Tensor, np.ndarray], ...]


def _plain() -> Any:
    """A session whose graph nobody optimizes, for each op runs once."""
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def _batches(loads: Sequence[_Load]) -> Iterator[list[_Load]]:
    """Some at a time, of which copies fit into memory."""
    batch: list[_Load] = []
    size = 0
    for load in loads:
        batch.append(load)
        size += sum(value.nbytes for _, value in load.fed)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _variable(graph: tf.Graph, name: str, value: np.ndarray) -> _Load:
    """A variable of the graph; new ops of its own initialize it by zeros."""
    handle = graph.get_tensor_by_name(f"{name}:0")
    dtype = tf.as_dtype(handle.op.get_attr("dtype"))
    with tf.name_scope(f"{name}/exported/"):
        zeros = tf.zeros(value.shape, dtype)
        assign = tf.raw_ops.AssignVariableOp(resource=handle, value=zeros)
        read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
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
    return _Load(saved=variable, op=assign, fed=((zeros, value),))


def _kept_rows(graph: tf.Graph, contents: EmbeddingContents) -> _Load:
    """An EmbeddingVariable of the graph, as a Saver saves it."""
    table = EmbeddingVariable(
        name=contents.name,
        dim=contents.rows.shape[1],
        handle=graph.get_tensor_by_name(f"{contents.name}:0"),
        default_rows=None,
        trainable=False,
        option=EmbeddingVariableOption(),
        slots=Slots(),
    )
    keys, rows = v1.placeholder(tf.int64, [None]), v1.placeholder(tf.float32, [None, None])
    nothing = [tf.zeros([0], tf.int64)] * 4
    return _Load(
        saved=EmbeddingSaveable(contents.name, [table], Slots()),
        op=table.replace([keys, rows, *nothing], (), part=0, parts=1),
        fed=((keys, contents.keys), (rows, contents.rows)),
    )


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


def _vocabularies(graph: tf.Graph, initializers: Sequence[str]) -> list[tf.Operation]:
    """The constants that name a file from which a table is filled."""
    constants = []
    for name in initializers:
        op = graph.get_operation_by_name(name)
        if op.type not in _FROM_FILE:
            continue
        file = op.inputs[1].op
        while file.type == "Identity":
            file = file.inputs[0].op
        if file.type == "Const":
            constants.append(file)
    return constants


def _assets(constants: Sequence[tf.Operation]) -> None:
    """Has the files that constants name copied, each once."""
    for constant in dict.fromkeys(constants):
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, constant.outputs[0])

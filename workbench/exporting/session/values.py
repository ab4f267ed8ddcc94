"""The values that an export of a session keeps, read in one run that changes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.core.graph.graph_view import node_name
from workbench.errors import OptionError, UnsupportedError, first_line
from workbench.exporting.session.merged_parts import GraphPart

_REF = frozenset({"Variable", "VariableV2", "AutoReloadVariable"})
_EXPORT, _TABLE_EXPORT = "WorkbenchEmbeddingExport", "LookupTableExportV2"
READERS = ("WorkbenchEmbeddingGather", "WorkbenchEmbeddingGroupedLookUp")
MUTABLE = frozenset(
    {"MutableHashTableV2", "MutableDenseHashTableV2", "MutableHashTableOfTensorsV2"}
)
# Ops that hand a variable's value on.
_HANDS_ON = frozenset({"Identity", "ReadVariableOp", "Enter", "RefEnter", "Switch", "RefSwitch"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddingContents:
    """The rows of an EmbeddingVariable, as they were at one moment.

    Attributes:
      name: of its node.
      keys: int64 [n].
      rows: float32 [n, dim].
      default_rows: name of the variable whose rows keys without one read; None where a filter keeps
        such keys out.
      no_permission: the values of keys that a filter keeps out.
    """

    name: str
    keys: np.ndarray
    rows: np.ndarray
    default_rows: str | None
    no_permission: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class SessionValues:
    """What a session holds.

    Attributes:
      variables: by name of the node.
      embeddings: by name of the node.
      tables: keys and values of hash tables that change, by name of the node.
    """

    variables: Mapping[str, np.ndarray]
    embeddings: Mapping[str, EmbeddingContents]
    tables: Mapping[str, tuple[np.ndarray, np.ndarray]]


def read_values(
    session: Any, graph: tf.Graph, part: GraphPart, *, default_rows: bool
) -> SessionValues:
    """Reads what a part of a session's graph needs.

    Each variable and each EmbeddingVariable is read at one moment. Steps that run meanwhile may lie
    between two of them.

    Args:
      session: plain or monitored.
      graph: its graph.
      part: the part of the graph.
      default_rows: whether to find out what keys without a row read.

    Raises:
      OptionError: a variable is not initialized.
      UnsupportedError: the graph has no op that reads one.
    """
    tables = [node.name for node in part.nodes if node.op in MUTABLE]
    defaults = {
        node.name: _default_rows(graph, node) if default_rows else None for node in part.embeddings
    }
    names = {node.name for node in part.variables} | {name for name in defaults.values() if name}
    fetches = {
        "variables": {name: _reader(graph, name) for name in sorted(names)},
        "embeddings": {node.name: _exported(graph, node.name) for node in part.embeddings},
        "tables": {name: _contents(graph, name) for name in tables},
    }
    # A monitored session would count a step, and call its hooks.
    raw = session._tf_sess() if hasattr(session, "_tf_sess") else session
    try:
        values = raw.run(fetches)
    except tf.errors.FailedPreconditionError as error:
        raise OptionError(
            "the session's variables are not all initialized; initialize or restore them first "
            f"({first_line(error.message)})"
        ) from error
    embeddings = {
        node.name: EmbeddingContents(
            name=node.name,
            keys=values["embeddings"][node.name][0],
            rows=values["embeddings"][node.name][1],
            default_rows=defaults[node.name],
            no_permission=node.attr["no_permission"].f,
        )
        for node in part.embeddings
    }
    return SessionValues(
        variables=values["variables"], embeddings=embeddings, tables=values["tables"]
    )


def _reader(graph: tf.Graph, name: str) -> tf.Tensor:
    """A tensor that is a variable's value, and that nothing has to run for."""
    variable = graph.get_operation_by_name(name)
    if variable.type in _REF:
        return variable.outputs[0]
    readers = _consumers(variable.outputs[0], "ReadVariableOp")
    if not readers:
        raise UnsupportedError(
            f"variable {name!r} has no op in the session's graph that reads its value alone; add "
            "variable.read_value() to the graph before the session begins"
        )
    return readers[0].outputs[0]


def _exported(graph: tf.Graph, name: str) -> list[tf.Tensor]:
    """Keys and rows of an EmbeddingVariable."""
    exports = _consumers(graph.get_operation_by_name(name).outputs[0], _EXPORT)
    plain = [op for op in exports if not op.get_attr("steps_to_live")]
    if not plain:
        raise UnsupportedError(
            f"EmbeddingVariable {name!r} has no op in the session's graph that copies its rows, as "
            "in a graph of which only a part was imported; import the whole graph"
        )
    return [plain[0].outputs[0], plain[0].outputs[1]]


def _contents(graph: tf.Graph, name: str) -> list[tf.Tensor]:
    """Keys and values of a hash table."""
    exports = _consumers(graph.get_operation_by_name(name).outputs[0], _TABLE_EXPORT)
    if not exports:
        raise UnsupportedError(
            f"table {name!r} changes while it is used, and the session's graph has no op that "
            "exports it; add table.export() to the graph before the session begins"
        )
    return list(exports[0].outputs)


def _consumers(tensor: tf.Tensor, kind: str) -> list[tf.Operation]:
    """Readers of a tensor that wait for nothing, and stand in no loop or branch."""
    return [
        op
        for op in tensor.consumers()
        if op.type == kind and not op.control_inputs and op._get_control_flow_context() is None
    ]


def _default_rows(graph: tf.Graph, node: Any) -> str | None:
    """The variable whose rows keys without one read."""
    if node.attr["filter_freq"].i:
        return None
    handle = graph.get_operation_by_name(node.name).outputs[0]
    for reader in _with_handle(handle):
        position = [each.name for each in reader.inputs].index(_through(reader, handle))
        tables = reader.get_attr("N") if reader.type == READERS[1] else 1
        first = _first_default(reader, tables)
        op = reader.inputs[first + position].op
        while op.type in _HANDS_ON:
            op = op.inputs[0].op
        return str(op.name)
    raise UnsupportedError(
        f"EmbeddingVariable {node.name!r} is read in a loop or a function of its own; read its "
        "rows before it, or keep the ops with keep_ops=True"
    )


def _first_default(reader: tf.Operation, tables: int) -> int:
    """The first of a reader's inputs that are default rows."""
    if reader.type == READERS[0]:
        return 2
    features, weights = reader.get_attr("F"), reader.get_attr("W")
    return int(tables + 3 * features + weights)


def _with_handle(handle: tf.Tensor) -> Iterable[tf.Operation]:
    """The ops that read rows by a handle, also through a branch."""
    for op in handle.consumers():
        if op.type in READERS:
            yield op
        elif op.type in _HANDS_ON:
            for output in op.outputs:
                yield from _with_handle(output)


def _through(reader: tf.Operation, handle: tf.Tensor) -> str:
    """The input of a reader that is a handle, or comes from it."""
    for tensor in reader.inputs:
        origin = tensor
        while origin.name != handle.name and origin.op.type in _HANDS_ON:
            origin = origin.op.inputs[0]
        if origin.name == handle.name:
            return str(tensor.name)
    raise UnsupportedError(f"{reader.name!r} does not read {node_name(handle.name)!r}")

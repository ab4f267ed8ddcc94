"""NodeDefs of an export's own variables and tables, and references to variables made values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from workbench.core.graph.graph_view import node_name
from workbench.exporting.lowering.call import KeyedTable
from workbench.exporting.lowering.lower import KeyedSource
from workbench.exporting.session.values import EmbeddingContents

_OF_REFS = {
    f"Ref{op}": op for op in ("Identity", "Switch", "Merge", "Enter", "Exit", "NextIteration")
}


def variable_node(name: str, value: np.ndarray) -> node_def_pb2.NodeDef:
    """A resource variable for a value."""
    node = node_def_pb2.NodeDef(name=name, op="VarHandleOp")
    node.attr["dtype"].type = _dtype(value).as_datatype_enum
    node.attr["shape"].shape.CopyFrom(tf.TensorShape(value.shape).as_proto())
    node.attr["shared_name"].s = name.encode()
    return node


def values_of_refs(
    nodes: Sequence[node_def_pb2.NodeDef], refs: Sequence[node_def_pb2.NodeDef]
) -> list[node_def_pb2.NodeDef]:
    """Has nodes read the values of variables in place of references to them.

    Args:
      nodes: which are changed.
      refs: the variables that were references, and are resource variables now.

    Returns:
      The nodes that read the variables.
    """
    dtypes = {node.name: node.attr["dtype"].type for node in refs}
    readers: dict[str, node_def_pb2.NodeDef] = {}
    for node in nodes:
        node.op = _OF_REFS.get(node.op, node.op)
        for i, text in enumerate(node.input):
            name = node_name(text)
            if name in dtypes and not text.startswith("^"):
                reader = node_def_pb2.NodeDef(name=f"{name}/exported_value", op="ReadVariableOp")
                reader.input.append(name)
                reader.attr["dtype"].type = dtypes[name]
                readers[name] = reader
                node.input[i] = reader.name
    return list(readers.values())


def keyed_nodes(
    contents: EmbeddingContents, matrix: np.ndarray
) -> tuple[list[node_def_pb2.NodeDef], KeyedSource, dict[str, np.ndarray]]:
    """The hash table and the variables that stand for an EmbeddingVariable.

    Args:
      contents: its rows.
      matrix: the rows of keys and then the default rows.

    Returns:
      NodeDefs, where lookups find the rows, and the values of the variables by name.
    """
    name = contents.name
    table = node_def_pb2.NodeDef(name=f"{name}/exported_table", op="HashTableV2")
    table.attr["key_dtype"].type = table.attr["value_dtype"].type = tf.int64.as_datatype_enum
    table.attr["shared_name"].s = table.name.encode()
    # A hash table must have a key: key 0 then reads the first default row, as without one.
    keys = contents.keys if len(contents.keys) else np.zeros([1], np.int64)
    values = {f"{name}/exported_keys": keys, f"{name}/exported_rows": matrix}
    nodes = [table, *(variable_node(each, value) for each, value in values.items())]
    rows = len(contents.keys)
    source = KeyedSource(
        table=table.name,
        matrix=f"{name}/exported_rows",
        of=KeyedTable(rows=rows, defaults=len(matrix) - rows),
    )
    return nodes, source, values


def matrix_of(contents: EmbeddingContents, default_rows: np.ndarray | None) -> np.ndarray:
    """The rows of an EmbeddingVariable, and behind them those that other keys read."""
    if default_rows is None:
        default_rows = np.full_like(
            contents.rows, contents.no_permission, shape=(1, _dim(contents))
        )
    return np.concatenate([contents.rows, default_rows])


def _dim(contents: EmbeddingContents) -> int:
    return int(contents.rows.shape[1])


def _dtype(value: np.ndarray) -> tf.DType:
    return tf.string if value.dtype == object else tf.as_dtype(value.dtype)

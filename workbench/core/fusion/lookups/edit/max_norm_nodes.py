"""NodeDefs of the gradient of rows of a table that a lookup's `max_norm` shortens."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.lookups.lookup import StockLookup


def max_norm_nodes(
    name: str, lookup: StockLookup, rows: str, given: str
) -> tuple[list[node_def_pb2.NodeDef], str]:
    """The nodes that read rows once more and make their gradient, and its tensor.

    Args:
      name: scope of the nodes.
      lookup: the lookup.
      rows: tensor of the rows, int64 [n].
      given: tensor of the gradient of the shortened rows, [n, dim].
    """
    dtype = tf.as_dtype(lookup.dtype)
    with tf.Graph().as_default() as graph:
        table = tf.compat.v1.placeholder(tf.resource if lookup.is_resource else dtype)
        wanted = tf.compat.v1.placeholder(tf.int64, [None])
        gradient = tf.compat.v1.placeholder(dtype, [None, lookup.dim])
        if lookup.is_resource:
            read = tf.raw_ops.ResourceGather(resource=table, indices=wanted, dtype=dtype)
        else:
            read = tf.raw_ops.GatherV2(params=table, indices=wanted, axis=0)
        read = tf.ensure_shape(read, [None, lookup.dim])
        (made,) = tf.gradients(tf.clip_by_norm(read, lookup.max_norm, axes=[1]), read, gradient)
    inputs = {table.op.name: lookup.table, wanted.op.name: rows, gradient.op.name: given}
    nodes = [node for node in graph.as_graph_def().node if node.name not in inputs]
    for node in nodes:
        node.input[:] = [_renamed(text, name, inputs) for text in node.input]
        node.name, node.device = f"{name}/{node.name}", lookup.device
    return nodes, f"{name}/{made.name}"


def _renamed(text: str, scope: str, inputs: dict[str, str]) -> str:
    waits = "^" if text.startswith("^") else ""
    return inputs.get(text) or f"{waits}{scope}/{text.removeprefix('^')}"

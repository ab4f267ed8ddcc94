"""Ops that a kernel of Workbench's does alike, to the bit, and faster.

TensorFlow decodes lines of text on one thread, making a string of each field character by
character. Adam's update of a whole variable it splits into a part for each thread, and waits for
the last of them, as Workbench's ops do not.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from workbench.core.fusion import node_defs
from workbench.core.fusion.definition import Definition
from workbench.core.fusion.placement import Placement, names_gpu

_FLOAT32 = tf.float32.as_datatype_enum
_LINES = "DecodeCSV"
_INSTEAD = {
    _LINES: "WorkbenchDecodeCsv",
    "ApplyAdam": "WorkbenchApplyAdam",
    "ResourceApplyAdam": "WorkbenchResourceApplyAdam",
}
# What their ops lack.
_ATTRIBUTES = ("T", "select_cols")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlikeOps:
    """Names of nodes of a graph, in its order.

    Attributes:
      decoded: those that make columns of lines.
      adams: those that update whole variables as Adam does.
    """

    decoded: tuple[str, ...]
    adams: tuple[str, ...]


def find_alike_ops(graph: Definition, placement: Placement) -> AlikeOps:
    """The nodes of a graph that such kernels are to do.

    Args:
      graph: the graph.
      placement: where its nodes may run; there are no such kernels for GPUs.
    """
    nodes = [node for node in graph.ordered if node.op in _INSTEAD and "_kernel" not in node.attr]
    return AlikeOps(
        decoded=tuple(node.name for node in nodes if node.op == _LINES and _decodes_all(node)),
        adams=tuple(
            node.name
            for node in nodes
            if node.op != _LINES
            and node.attr["T"].type == _FLOAT32
            and not placement.may_be_on_gpu(node.device)
        ),
    )


def choose_kernels_of(graph: Definition, found: AlikeOps, replaced: graph_pb2.GraphDef) -> None:
    """Has nodes run Workbench's kernels.

    Args:
      graph: that has them.
      found: the nodes.
      replaced: what comes in the place of nodes of the graph; to change, and to add to.
    """
    names = (*found.decoded, *found.adams)
    known = node_defs.to_change(replaced, (graph.nodes[name] for name in names))
    for name in names:
        node = known[name]
        node.op = _INSTEAD[node.op]
        for attribute in _ATTRIBUTES:
            node.attr.pop(attribute, None)


def _decodes_all(node: Any) -> bool:
    """Whether a node gives all columns; TensorFlow has no kernel for GPUs either."""
    chosen = node.attr["select_cols"].list.i
    return not chosen and not names_gpu(node.device)

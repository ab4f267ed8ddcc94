"""Ops that a kernel of Workbench's does alike, to the bit, and faster.

TensorFlow decodes lines of text on one thread, making a string of each field character by
character. Adam's update of a whole variable it splits into a part for each thread, and waits for
the last of them, as Workbench's ops do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.core.fusion import node_defs
from workbench.core.fusion.other_kernel import Swap, other_kernel_rule
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.placement import Placement, names_gpu
from workbench.core.graph.op_types import FLOAT32
from workbench.number_words import counted

_LINES = "DecodeCSV"
_INSTEAD = {
    _LINES: "WorkbenchDecodeCsv",
    "ApplyAdam": "WorkbenchApplyAdam",
    "ResourceApplyAdam": "WorkbenchResourceApplyAdam",
}
# What their ops lack.
_ATTRIBUTES = ("T", "select_cols")


def _decoders(graph: Definition, _: Placement) -> Iterator[Swap]:
    """The nodes that make all columns of lines; TensorFlow has no kernel for GPUs either."""
    for node in _swapped(graph):
        is_whole = node.op == _LINES and not node.attr["select_cols"].list.i
        if is_whole and not names_gpu(node.device):
            yield _swap(node)


def _updates(graph: Definition, placement: Placement) -> Iterator[Swap]:
    """The updates of whole variables as by Adam."""
    for node in _swapped(graph):
        updates = node.op != _LINES and node.attr["T"].type == FLOAT32
        if updates and not placement.may_be_on_gpu(node.device):
            yield _swap(node)


def _swapped(graph: Definition) -> list[Any]:
    """The nodes whose op such a kernel may do, in the graph's order."""
    return [n for n in graph.ordered if n.op in _INSTEAD and "_kernel" not in n.attr]


def _swap(old: Any) -> Swap:
    node = node_defs.waiting(old, {})
    node.op = _INSTEAD[old.op]
    for attribute in _ATTRIBUTES:
        node.attr.pop(attribute, None)
    return Swap(node=node, instead_of=[old.name])


DECODERS = other_kernel_rule(
    "line decoder", _decoders, lambda _: "lines decoded by Workbench's kernel"
)
UPDATES = other_kernel_rule(
    "update",
    _updates,
    lambda count: f"{counted(count, 'variable')} updated as by Adam by Workbench's kernel",
)

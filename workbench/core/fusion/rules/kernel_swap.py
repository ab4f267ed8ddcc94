"""Ops that a kernel of Workbench's does alike, to the bit, and faster.

TensorFlow decodes lines of text on one thread, making a string of each field character by
character. Adam's update of a whole variable it splits into a part for each thread, and waits for
the last of them, as Workbench's ops do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from workbench.core.fusion import node_defs
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.placement import Placement, names_gpu
from workbench.core.fusion.rule import Edit, Fused, Part, Refusal, Rule, Surroundings
from workbench.number_words import counted

_FLOAT32 = tf.float32.as_datatype_enum
_LINES = "DecodeCSV"
_INSTEAD = {
    _LINES: "WorkbenchDecodeCsv",
    "ApplyAdam": "WorkbenchApplyAdam",
    "ResourceApplyAdam": "WorkbenchResourceApplyAdam",
}
_DECODER, _UPDATE = "line decoder", "update"
# What their ops lack.
_ATTRIBUTES = ("T", "select_cols")


def _find_decoders(graph: Definition, _: Placement) -> tuple[list[Part], list[Refusal]]:
    """The nodes that make all columns of lines; TensorFlow has no kernel for GPUs either."""
    nodes = [
        node
        for node in _swapped(graph)
        if node.op == _LINES and not node.attr["select_cols"].list.i and not names_gpu(node.device)
    ]
    return [Part(name=node.name, match=node) for node in nodes], []


def _find_updates(graph: Definition, placement: Placement) -> tuple[list[Part], list[Refusal]]:
    """The updates of whole variables as by Adam."""
    nodes = [
        node
        for node in _swapped(graph)
        if node.op != _LINES
        and node.attr["T"].type == _FLOAT32
        and not placement.may_be_on_gpu(node.device)
    ]
    return [Part(name=node.name, match=node) for node in nodes], []


def _swapped(graph: Definition) -> list[Any]:
    """The nodes whose op such a kernel may do, in the graph's order."""
    return [n for n in graph.ordered if n.op in _INSTEAD and "_kernel" not in n.attr]


def _edit(surroundings: Surroundings, parts: Sequence[Part]) -> Edit:
    edit = Edit()
    for part in parts:
        old = part.match
        if old.name in surroundings.taken:
            continue
        node = node_defs.waiting(old, {})
        node.op = _INSTEAD[old.op]
        for attribute in _ATTRIBUTES:
            node.attr.pop(attribute, None)
        edit.replace(node, part)
        kind = _DECODER if old.op == _LINES else _UPDATE
        edit.fused.append(Fused(kind=kind, name=part.name, op=part.name))
    return edit


def _describe_decoders(fused: Sequence[Fused]) -> list[str]:
    return ["lines decoded by Workbench's kernel", *(f"  {each.name}" for each in fused)]


def _describe_updates(fused: Sequence[Fused]) -> list[str]:
    said = f"{counted(len(fused), 'variable')} updated as by Adam by Workbench's kernel"
    return [said, *(f"  {each.name}" for each in fused)]


DECODERS = Rule(kind=_DECODER, find=_find_decoders, edit=_edit, describe=_describe_decoders)
UPDATES = Rule(kind=_UPDATE, find=_find_updates, edit=_edit, describe=_describe_updates)

"""Gradients of embeddings that are cut out of one of all, which an update reads as it is.

How TensorFlow builds them, where embeddings are stacked or concatenated:

    the gradient of a stack ─ Unpack ─┬ AddN, where there is more than one ─ the gradient of one
    that of a concatenation ─ SplitV ─┘
                         or ─ Slice, from ConcatOffset on
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion import node_defs
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.neighbors import run_once_on

_RANK_OF_STACK = 3
# An update of fewer tables of its own gains less than one of all of them.
_FEWEST = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cut:
    """The part of a gradient that belongs to an embedding.

    Attributes:
      wholes: tensors [rows, width], or stacked [rows, width / n, n]; their sum is the gradient.
      width: columns of it.
      begin: the first column of the part.
    """

    wholes: tuple[str, ...]
    width: int
    begin: int


def cuts(graph: Definition, given: Sequence[tuple[StockLookup, str]]) -> list[Cut | None]:
    """Where the gradients of embeddings lie in one that several of them share.

    Args:
      graph: the graph.
      given: lookups and their embeddings' gradients.

    Returns:
      Of each; None where it is not cut out of one, or few others are.
    """
    found = [_cut(graph, lookup, gradient) for lookup, gradient in given]
    shared = collections.Counter(each.wholes for each in found if each)
    return [each if each and shared[each.wholes] >= _FEWEST else None for each in found]


def _cut(graph: Definition, lookup: StockLookup, given: str) -> Cut | None:
    if lookup.ends_with_ids:
        return None
    total = graph.source(graph.same(given))
    terms = graph.inputs(total) if total.op == "AddN" else [given]
    nodes = [graph.source(graph.same(each)) for each in terms]
    steps = [*nodes, *[total] * (total.op == "AddN")]
    waits = any(text.startswith("^") for node in steps for text in node.input)
    if waits or not run_once_on(graph, [node.name for node in steps], lookup.device):
        return None
    first, *others = (_part(graph, graph.same(each)) for each in terms)
    if first is None or any(each != first for each in others):
        return None
    begin, size, width = first
    wholes = tuple(graph.inputs(node)[0] for node in nodes)
    return Cut(wholes=wholes, width=width, begin=begin) if size == lookup.dim else None


def _part(graph: Definition, tensor: str) -> tuple[int, int, int] | None:
    """Where a part begins, its columns, and those of the whole; None of what is no part."""
    node = graph.source(tensor)
    sizes = _SIZES[node.op](graph, node) if node.op in _SIZES else None
    if sizes is None or any(size < 0 for size in sizes):
        return None
    # A slice is the part that begins where the tensor of that number does.
    output = _output(graph, graph.inputs(node)[1] if node.op == "Slice" else tensor)
    return sum(sizes[:output]), sizes[output], sum(sizes)


def _unpacked(graph: Definition, node: Any) -> list[int] | None:
    shape = graph.shape(graph.inputs(node)[0])
    if shape is None or len(shape) != _RANK_OF_STACK or node.attr["axis"].i not in (1, -2):
        return None
    return [shape[2]] * node.attr["num"].i


def _split(graph: Definition, node: Any) -> list[int] | None:
    if _axis(graph, graph.inputs(node)[2]) not in (1, -1):
        return None
    return _widths(graph, [f"{node.name}:{i}" for i in range(node.attr["num_split"].i)])


def _sliced(graph: Definition, node: Any) -> list[int] | None:
    """Of a part that begins where one of concatenated tensors does, and is as large."""
    _, begin, size = graph.inputs(node)
    offset = graph.made_by(begin, "ConcatOffset", output=_output(graph, begin))
    if offset is None:
        return None
    axis, *shapes = graph.inputs(offset)
    if _axis(graph, axis) not in (1, -1):
        return None
    if graph.same(shapes[_output(graph, begin)]) != graph.same(size):
        return None
    return _widths(graph, shapes, of_shapes=True)


def _axis(graph: Definition, tensor: str) -> int | None:
    """An axis, which TensorFlow computes from the one of a concatenation."""
    found = graph.value(tensor)
    if found is not None:
        return int(found.item())
    node = graph.made_by(tensor, "FloorMod")
    if node is None:
        return None
    number, rank = map(graph.value, graph.inputs(node))
    return None if number is None or rank is None else int((number % rank).item())


def _output(graph: Definition, tensor: str) -> int:
    return int(graph.same(tensor).rpartition(":")[2])


def _widths(
    graph: Definition, tensors: Sequence[str], *, of_shapes: bool = False
) -> list[int] | None:
    """The columns of matrices, or of those whose shapes these tensors are."""
    shapes = [(_shape_in if of_shapes else Definition.shape)(graph, each) for each in tensors]
    if any(shape is None or len(shape) != 2 for shape in shapes):
        return None
    return [shape[1] for shape in shapes if shape is not None]


def _shape_in(graph: Definition, tensor: str) -> Any:
    """What a tensor says is the shape of something, as far as that is known."""
    known = graph.value(tensor)
    if known is not None:
        return tuple(known.tolist())
    node = graph.made_by(tensor, "Shape", "ShapeN", output=_output(graph, tensor))
    return None if node is None else graph.shape(graph.inputs(node)[_output(graph, tensor)])


_SIZES: dict[str, Callable[[Definition, Any], list[int] | None]] = {
    "Unpack": _unpacked,
    "SplitV": _split,
    "Slice": _sliced,
}


def whole_nodes(
    graph: Definition,
    cut: Cut,
    lookup: StockLookup,
    name: str,
    constant: Callable[[Any, str], str],
) -> tuple[list[node_def_pb2.NodeDef], str]:
    """What makes the gradient that is cut, a matrix: nodes that are added, and its tensor.

    Args:
      graph: that has it.
      cut: a part of it.
      lookup: that it is a part of.
      name: of the last of these nodes; others begin with it.
      constant: gives the tensor of a constant on a device.
    """
    dtype, device = lookup.dtype, lookup.device
    added, matrices = [], []
    for number, whole in enumerate(cut.wholes):
        if len(graph.shape(whole) or ()) != _RANK_OF_STACK:
            matrices.append(whole)
            continue
        size = constant(np.array([-1, cut.width], np.int32), device)
        added.append(node_defs.reshape_node(f"{name}_flat_{number}", [whole, size], dtype, device))
        matrices.append(f"{added[-1].name}:0")
    if len(matrices) == 1:
        return added, matrices[0]
    added.append(node_defs.sum_node(name, matrices, dtype, device))
    return added, f"{name}:0"

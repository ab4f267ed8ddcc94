"""Lookups whose embeddings a graph puts beside each other, in which order one op can write them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion import node_defs
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.neighbors import run_once_on

_FEWEST = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Together:
    """Lookups that one op does.

    Attributes:
      lookups: in the order of its outputs; with joins, of its output's columns.
      joins: names of the nodes that put what they give, in that order and nothing else, beside each
        other, or one over the other: ConcatV2 and Pack.
    """

    lookups: tuple[StockLookup, ...]
    joins: tuple[str, ...] = ()


def together(graph: Definition, lookups: Sequence[StockLookup]) -> list[Together]:
    """The ops for lookups that one op may do: one for those of which something is put together."""
    by_result = {graph.same(f"{lookup.result}:0"): lookup for lookup in lookups}
    joined_ops: list[Together] = []
    taken: set[str] = set()
    for lookup in lookups:
        joined = None if lookup.result in taken else _joined(graph, lookup, by_result)
        if joined:
            joined_ops.append(joined)
            taken.update(other.result for other in joined.lookups)
    rest = tuple(lookup for lookup in lookups if lookup.result not in taken)
    return [*[Together(lookups=rest)] * bool(rest), *joined_ops]


def _joined(
    graph: Definition, lookup: StockLookup, by_result: Mapping[str, StockLookup]
) -> Together | None:
    joins = _joins(graph, lookup)
    orders = {tuple(_tensors(graph, graph.nodes[name])) for name in joins}
    order = orders.pop() if len(orders) == 1 else ()
    if orders or len(set(order)) != len(order) or len(order) < _FEWEST:
        return None
    own = tuple(by_result[each] for each in order if each in by_result)
    if len(own) != len(order) or any(_joins(graph, each) != joins for each in own):
        return None
    if not run_once_on(graph, joins, lookup.device):
        return None
    return Together(lookups=own, joins=joins)


def _joins(graph: Definition, lookup: StockLookup) -> tuple[str, ...]:
    """What reads the embeddings, a matrix, where all that does puts them beside others."""
    result = graph.same(f"{lookup.result}:0")
    shape = graph.shape(result)
    if shape is None or len(shape) != 2 or lookup.ends_with_ids:
        return ()
    readers = [each for each in graph.readers(result) if not graph.hands_on(each)]
    every = all(_is_join(graph, each) for each in readers)
    return tuple(sorted(each.name for each in readers)) if every else ()


def _is_join(graph: Definition, node: Any) -> bool:
    if any(text.startswith("^") for text in node.input):
        return False
    if node.op == "Pack":
        return node.attr["axis"].i in (1, -2)
    if node.op != "ConcatV2":
        return False
    axis = graph.value(graph.inputs(node)[-1])
    return axis is not None and axis.item() in (1, -1)


def _tensors(graph: Definition, node: Any) -> list[str]:
    """What a join puts together."""
    inputs = graph.inputs(node)
    return [graph.same(each) for each in (inputs[:-1] if node.op == "ConcatV2" else inputs)]


def joined_nodes(
    graph: Definition, group: Together, op: str, constant: Callable[[Any, str], str]
) -> tuple[list[node_def_pb2.NodeDef], list[node_def_pb2.NodeDef], list[str]]:
    """What hands on the one output of the op of joined lookups.

    Args:
      graph: that has the joins.
      group: the lookups.
      op: name of their op.
      constant: gives the tensor of a constant on a device.

    Returns:
      Nodes that are added; nodes in the place of the joins; the tensor of each lookup, which
      nothing computes unless it is asked for.
    """
    first, dims = group.lookups[0], [lookup.dim for lookup in group.lookups]
    output, device, dtype = f"{op}:0", first.device, first.dtype
    added, tensors = [], []
    for number, (end, dim) in enumerate(zip(np.cumsum(dims).tolist(), dims, strict=True)):
        begin, size = (
            constant(np.array(each, np.int32), device) for each in ([0, end - dim], [-1, dim])
        )
        part = node_defs.slice_node(f"{op}_part_{number}", [output, begin, size], dtype, device)
        added.append(part)
        tensors.append(f"{part.name}:0")
    replaced = []
    for number, name in enumerate(group.joins):
        whole = output
        if graph.nodes[name].op == "Pack":
            shape = constant(np.array([-1, len(dims), dims[0]], np.int32), device)
            over = node_defs.reshape_node(f"{op}_stacked_{number}", [output, shape], dtype, device)
            added.append(over)
            whole = f"{over.name}:0"
        replaced.append(node_defs.stand_in(graph.nodes[name], [whole], [dtype]))
    return added, replaced, tensors

"""Tables that stock TensorFlow itself reads without the waits that a graph states.

Its arithmetic optimizer has rows combined where they lie, instead of gathered at unique ids first
(SimplifyEmbeddingLookup). It then reads the variable by a node of its own, which waits for nothing.
Where the gather waited for a change of the table, the result depends on time. What else reads that
table stays as it is: fused, it would take another time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from workbench.core.fusion.checks.effects import variables_used
from workbench.core.fusion.lookups.lookup import COMBINERS, StockLookup
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.graph.graph_view import node_name


def lost_waits(graph: Definition) -> dict[Hashable, str]:
    """By each such variable the gather that no longer waits for a change of it."""
    lost: dict[Hashable, str] = {}
    for node in graph.ordered:
        if node.op == "ResourceGather" and _is_simplified(graph, node):
            lost |= dict.fromkeys(_variables(graph, node) & _changed(graph, node), node.name)
    return lost


def variables_of(graph: Definition, lookup: StockLookup) -> set[Hashable]:
    """The variable that a lookup reads, or whose value it reads; none where that is not known."""
    if lookup.is_resource:
        return _variables(graph, graph.nodes[lookup.gather or lookup.combines])
    return _variables(graph, graph.source(graph.same(lookup.table)))


def _is_simplified(graph: Definition, gather: Any) -> bool:
    """Whether ids of a gather are unique ones, and the rows that it gives are combined."""
    if graph.made_by(graph.inputs(gather)[1], "Unique") is None:
        return False
    readers = graph.readers(f"{gather.name}:0")
    return any(each.op.removesuffix("WithNumSegments") in COMBINERS for each in readers)


def _variables(graph: Definition, node: Any) -> set[Hashable]:
    return {variable for variable, _ in variables_used(graph.nodes, node)}


def _changed(graph: Definition, gather: Any) -> set[Hashable]:
    """The variables that something may change on which a gather depends, if only by its ids."""
    waiting = list(map(node_name, gather.input))
    seen: set[str] = set()
    changed: set[Hashable] = set()
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            node = graph.nodes[name]
            changed |= {each for each, changes in variables_used(graph.nodes, node) if changes}
            waiting += map(node_name, node.input)
    return changed

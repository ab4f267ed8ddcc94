"""Parts of updates that many nodes do: who reads them, who waits for them, what they read."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from workbench.core.fusion.lookups.table_updates.update import waits_of
from workbench.core.fusion.pattern.definition import Definition

READ = "ReadVariableOp"


def waits_outside(
    graph: Definition, changes: Iterable[Any], nodes: Container[str], slots: Container[str]
) -> tuple[str, ...]:
    """What the nodes of an update wait for that is no part of it, nor reads a slot for it."""
    names = dict.fromkeys(name for node in changes for name in waits_of(node) if name not in nodes)
    return tuple(name for name in names if not _reads(graph, graph.nodes[name], slots))


def alone(graph: Definition, nodes: dict[str, Any], apply: Any, taken: Iterable[str]) -> bool:
    """Whether what the update computes and takes is only read by itself.

    What waits for some of its nodes waits for the last one too, and so is behind all of them.
    """
    for node in nodes.values():
        if node is apply:
            continue
        readers = [reader for reader in graph.readers(out(node)) if reader.name not in nodes]
        waiting = [reader for reader in graph.waiting(node.name) if reader.name not in nodes]
        if readers or not all(_is_behind(graph, reader, apply) for reader in waiting):
            return False
    outside = {reader.op for t in taken for reader in graph.readers(t) if reader.name not in nodes}
    return outside <= {"Shape"}


def _is_behind(graph: Definition, node: Any, apply: Any) -> bool:
    """Whether a node, or else all that it lets go on, waits for the last node of an update."""
    if _waits_for(graph, node, apply):
        return True
    after = graph.waiting(node.name)
    return node.op == "NoOp" and all(_is_behind(graph, each, apply) for each in after)


def _waits_for(graph: Definition, node: Any, apply: Any) -> bool:
    """Whether a node waits for another one, directly or with what groups such."""
    before = waits_of(node)
    groups = (graph.nodes[name] for name in before if graph.nodes[name].op == "NoOp")
    return apply.name in before or any(_waits_for(graph, each, apply) for each in groups)


def scaled(graph: Definition, tensor: str) -> tuple[Any, str, str] | None:
    """Of a tensor that is another one times a number: the node, the other one, the number."""
    node = graph.made_by(tensor, "Mul")
    for values, number in (graph.inputs(node), graph.inputs(node)[::-1]) if node else ():
        if graph.shape(number) == () and graph.shape(values) != ():
            return node, values, number
    return None


def is_of(graph: Definition, node: Any, variable: str) -> bool:
    """Whether the first input of a node is that variable."""
    return graph.same(graph.inputs(node)[0]) == variable


def _reads(graph: Definition, node: Any, variables: Container[str]) -> bool:
    return node.op == READ and graph.same(graph.inputs(node)[0]) in variables


def only(graph: Definition, tensor: str, *ops: str) -> Any | None:
    """The one node that reads a tensor, where it is of one of these types."""
    readers = graph.readers(tensor)
    return readers[0] if len(readers) == 1 and readers[0].op in ops else None


def other(graph: Definition, node: Any, one: str) -> str:
    """The input of a node of two that is not this one."""
    first, second = graph.inputs(node)
    return first if graph.same(second) == graph.same(one) else second


def out(node: Any) -> str:
    return f"{node.name}:0"

"""What reads nodes that one op is to stand for, and what those wait for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from workbench.core.fusion.pattern.definition import Definition, tensor_name
from workbench.core.fusion.rule import RefusedError
from workbench.core.graph.graph_view import node_name

# Where several gradients of one op wait for one another.
_GATES = "/tuple/group_deps"


def readers_of(graph: Definition, name: str, known: Collection[str]) -> list[str]:
    """What reads a node, is none of these, and has a use."""
    readers = graph.readers(f"{name}:0")
    return [
        node.name
        for node in readers
        if node.name not in known and not graph.hands_on(node) and not _is_idle(graph, node)
    ]


def _is_idle(graph: Definition, node: Any) -> bool:
    """Whether a node gives a gradient the shape of something, and nothing reads it."""
    return bool(node.op == "Shape" and not graph.readers(f"{node.name}:0"))


def waited_for(graph: Definition, name: str, known: Collection[str]) -> tuple[str, ...]:
    """What a node, and known ones that lead to it, wait for."""
    awaited: dict[str, None] = {}
    seen, waiting = {name}, [name]
    while waiting:
        node = graph.nodes[waiting.pop()]
        for text in node.input:
            other = graph.source(graph.same(tensor_name(text.removeprefix("^")))).name
            if text.startswith("^") and other not in known:
                # An Identity that hands on another node's result runs behind that one alone.
                awaited[node_name(text)] = None
            elif other in known and other not in seen:
                seen.add(other)
                waiting.append(other)
    return tuple(awaited)


def computing(graph: Definition, names: Iterable[str]) -> frozenset[str]:
    """Those of the nodes that are no constants."""
    return frozenset(name for name in names if name and graph.nodes[name].op != "Const")


def require_alone(graph: Definition, inside: Iterable[str], known: Collection[str]) -> None:
    """Raises RefusedError where other ops than known ones need what is computed inside."""
    for name in inside:
        if readers_of(graph, name, known):
            raise RefusedError("other ops read what it computes on its way")
        for node in graph.waiting(name):
            if node.name not in known and _GATES not in node.name and not graph.hands_on(node):
                raise RefusedError("other ops wait for what it computes on its way")


def run_once_on(graph: Definition, names: Iterable[str], device: str) -> bool:
    """Whether all nodes are on one device, and run once in a step."""
    return all(
        graph.nodes[name].device == device and name not in graph.conditional for name in names
    )

"""Which nodes one op may stand for: it never waits for itself, and runs where they did."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from tensorflow.python.framework import op_def_registry

from workbench.core.fusion.pattern.definition import Definition
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_families import UPDATE, family_of
from workbench.core.graph.op_types import FED_ALWAYS, SAFE_STATEFUL, SOURCES, VARIABLES

_T = TypeVar("_T")
# What takes something of which a run may have none: a batch, or what is fed.
_TAKES = SOURCES | FED_ALWAYS
_ONLY_READ = SAFE_STATEFUL | VARIABLES | {"ReadVariableOp", "ResourceGather", "VariableShape"}
_CALLS_PYTHON = ("PyFunc", "EagerPyFunc")


def levels(
    graph: Definition,
    replaced: Collection[str],
    beside: Mapping[str, str],
    behind: Mapping[str, Collection[str]],
) -> dict[str, int]:
    """Of each node that is to be replaced, how many others stand on the longest path to it.

    Nodes of one level do not depend on one another. Where each op stands for nodes of one level,
    what it reads depends on ops of lower levels alone, and so no cycle arises.

    Args:
      graph: the graph.
      replaced: names of the nodes.
      beside: of some of them another one, with which they are replaced by one op.
      behind: of some of them others that do not depend on them, and whose ops theirs wait for.
    """
    depths: dict[str, int] = {}
    known: dict[str, int] | None = None
    while depths != known:
        known = dict(depths)
        after: dict[str, int] = {}
        for node in graph.ordered:
            # What loops lead back comes later in this order; nodes of loops are never replaced.
            level = max((after.get(node_name(text), 0) for text in node.input), default=0)
            if node.name in replaced:
                level = max(level, depths.get(beside.get(node.name, ""), 0))
                level = max(
                    [level, *(depths.get(each, 0) + 1 for each in behind.get(node.name, ()))]
                )
                depths[node.name] = level
                level += 1
            after[node.name] = level
    return depths


def run_together(
    graph: Definition, fetches: Sequence[Collection[str]] = ()
) -> dict[str, tuple[int, ...]]:
    """What tells of each node in which runs it is: sets as bits.

    Of what fetches need, which of them need it: runs of all of it are those that matter, and a run
    of a part gets the graph's own nodes. Of other nodes what they take, and what they lead to: an
    op in the place of nodes for which both are the same takes no batch, asks for no placeholder and
    updates no table that a run with one of them did not. Fetching one of them computes all.

    Args:
      graph: the graph.
      fetches: names of nodes that runs are known to fetch; those of one fetch are one collection.
    """
    takes = _taken(graph)
    needed = _bits_before(graph, {name: 1 << n for n, name in enumerate(_ends(graph))})
    marks: dict[str, int] = {}
    for number, names in enumerate(fetches):
        for name in names:
            marks[name] = marks.get(name, 0) | 1 << number
    fetched = _bits_before(graph, marks)
    return {
        name: (fetched[name],) if fetched[name] else (takes[name], needed[name]) for name in takes
    }


def _taken(graph: Definition) -> dict[str, int]:
    """By node what it takes, a set as bits."""
    takes: dict[str, int] = {}
    sources = 0
    for node in graph.ordered:
        bits = 0
        for text in node.input:
            bits |= takes.get(node_name(text), 0)
        if node.op in _TAKES or node.op.startswith(_CALLS_PYTHON):
            bits |= 1 << sources
            sources += 1
        takes[node.name] = bits
    return takes


def _ends(graph: Definition) -> list[str]:
    """The nodes behind which nothing comes, and which are there for what they do."""
    read = {node_name(text) for node in graph.nodes.values() for text in node.input}
    return [name for name, node in graph.nodes.items() if name not in read and _acts(node.op)]


def _bits_before(graph: Definition, marks: Mapping[str, int]) -> dict[str, int]:
    """By node the marks of those that need it, its own among them."""
    bits = {**dict.fromkeys(graph.nodes, 0), **marks}
    for node in reversed(graph.ordered):
        for text in node.input:
            bits[node_name(text)] |= bits[node.name]
    return bits


@functools.cache
def _acts(op: str) -> bool:
    """Whether an op at the end of a graph is there for what it does; groups of such are NoOps."""
    definition = op_def_registry.get(op)
    stateful = definition is None or bool(definition.is_stateful)
    return op == "NoOp" or family_of(op) == UPDATE or (stateful and op not in _ONLY_READ)


def grouped(items: Sequence[_T], key: Callable[[_T], Hashable]) -> list[list[_T]]:
    """The items by key, in their order."""
    groups: dict[Hashable, list[_T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())

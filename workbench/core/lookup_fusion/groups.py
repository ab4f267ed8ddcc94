"""Which nodes one op may stand for, so that no op of a graph waits for itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from workbench.core.graph.graph_view import node_name
from workbench.core.lookup_fusion.definition import Definition

_T = TypeVar("_T")


def levels(
    graph: Definition, replaced: Collection[str], after: Mapping[str, str]
) -> dict[str, int]:
    """Of each node that is to be replaced, how many others stand on the longest path to it.

    Nodes of one level do not depend on one another. Where each op stands for nodes of one level,
    what it reads depends on ops of lower levels alone, and so no cycle arises.

    Args:
      graph: the graph.
      replaced: names of the nodes.
      after: of some of them another one, with which they are replaced by one op.
    """
    found: dict[str, int] = {}
    known: dict[str, int] | None = None
    while found != known:
        known = dict(found)
        behind: dict[str, int] = {}
        for node in graph.ordered:
            # What loops lead back comes later in this order; nodes of loops are never replaced.
            level = max((behind.get(node_name(text), 0) for text in node.input), default=0)
            if node.name in replaced:
                level = found[node.name] = max(level, found.get(after.get(node.name, ""), 0))
                level += 1
            behind[node.name] = level
    return found


def grouped(items: Sequence[_T], key: Callable[[_T], Hashable]) -> list[list[_T]]:
    """The items by key, in their order."""
    groups: dict[Hashable, list[_T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())

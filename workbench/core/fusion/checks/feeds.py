"""New ops that need a feed, or have an effect, that a part of what they stand for does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.core.fusion.checks.effects import has_effect
from workbench.core.fusion.checks.order import Order
from workbench.core.graph.op_types import FED_ALWAYS

if TYPE_CHECKING:
    from workbench.core.fusion.checks.rewritten import Region, RewrittenGraph


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asking:
    """A new node, and the nodes of the graph that it stands for.

    Attributes:
      node: name of the new node.
      regions: of the nodes that it stands for.
      unknown: placeholders that none of these needs, and nodes with an effect, likewise.
    """

    node: str
    regions: tuple[Region, ...]
    unknown: tuple[str, ...]


def asking_for_more(rewritten: RewrittenGraph) -> Iterator[Asking]:
    """Finds those nodes.

    Gradients of rows are an example: one op gives ids and values, and the ids alone do not depend
    on what the loss is computed from, nor on a dropout's random numbers. A run that needs a part
    takes the graph's own nodes.
    """
    graph = rewritten.graph.nodes
    marked = [name for name, node in graph.items() if node.op in FED_ALWAYS or has_effect(node.op)]
    stock, now = Order(rewritten.inputs_before, marked), Order(rewritten.inputs_after, marked)
    asking: dict[str, set[str]] = {}
    for region in rewritten.regions:
        gained = now.lost(region.node, stock)
        if _acts(rewritten, region):
            # Of several updates of one op runs need all or none.
            gained = [name for name in gained if graph[name].op in FED_ALWAYS]
        for name in gained:
            for new in _entries(rewritten, region, now, name) or [region.node]:
                asking.setdefault(new, set()).add(name)
    for new, names in asking.items():
        regions = tuple(each for each in rewritten.regions if new in (*each.new, each.node))
        unknown = {
            name
            for name in names
            if not any(stock.is_before(name, region.node) for region in regions)
        }
        yield Asking(node=new, regions=regions, unknown=tuple(sorted(unknown)))


def _entries(rewritten: RewrittenGraph, region: Region, now: Order, name: str) -> list[str]:
    """The new nodes of a region that need a node of the graph, and not for another new one."""
    through = {new for new in region.new if now.is_before(name, new)}
    return [new for new in sorted(through) if through.isdisjoint(rewritten.inputs_after[new])]


def _acts(rewritten: RewrittenGraph, region: Region) -> bool:
    """Whether what a region stands for has an effect itself."""
    new = (rewritten.after[name].op for name in region.new)
    return has_effect(rewritten.graph.nodes[region.node].op) or any(map(has_effect, new))

"""New ops that ask for a placeholder that a part of what they stand for does not need."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

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
      unknown: placeholders that none of these needs.
    """

    node: str
    regions: tuple[Region, ...]
    unknown: tuple[str, ...]


def asking_for_more(rewritten: RewrittenGraph) -> Iterator[Asking]:
    """Finds those nodes.

    Gradients of rows are an example: one op gives ids and values, and the ids alone do not depend
    on what the loss is computed from.
    """
    graph = rewritten.graph.nodes
    fed = [name for name, node in graph.items() if node.op in FED_ALWAYS]
    if not fed:
        return
    stock, now = Order(rewritten.inputs_before, fed), Order(rewritten.inputs_after, fed)
    asking: dict[str, set[str]] = {}
    for region in rewritten.regions:
        gained = now.lost(region.node, stock)
        for name, new in itertools.product(gained, sorted(region.new)):
            if now.is_before(name, new):
                asking.setdefault(new, set()).add(name)
    for new, names in asking.items():
        regions = tuple(region for region in rewritten.regions if new in region.new)
        unknown = {
            name
            for name in names
            if not any(stock.is_before(name, region.node) for region in regions)
        }
        yield Asking(node=new, regions=regions, unknown=tuple(sorted(unknown)))

"""The lookups whose tables a graph has read before a node of a gradient or of an update runs.

Where a loss does not depend on the values that it sums, its gradient depends on a lookup through a
shape alone, of something within: not on the lookup's result. The order holds nevertheless.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from workbench.core.fusion.checks.order import Order, inputs_of
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.pattern.definition import Definition


def reads_before(
    graph: Definition, lookups: Sequence[StockLookup], names: Collection[str]
) -> dict[str, list[str]]:
    """By name of a node the results of lookups on which it waits only for what is within them.

    Args:
      graph: the graph.
      lookups: those that are fused.
      names: nodes of gradients and updates that are fused.
    """
    read_by = {lookup.result: _reads(lookup) for lookup in lookups}
    order = Order(inputs_of(graph.nodes), [*read_by, *read_by.values(), *names])

    def waits_within(name: str, result: str) -> bool:
        return order.is_before(read_by[result], name) and not (
            order.is_before(result, name) or order.is_before(name, result)
        )

    waiting = ((name, [each for each in read_by if waits_within(name, each)]) for name in names)
    return {name: results for name, results in waiting if results}


def _reads(lookup: StockLookup) -> str:
    """The node by which a lookup reads its table."""
    return lookup.read or lookup.gather or lookup.combines

"""Functions with lookups in them that nodes of a session's graph call."""

from __future__ import annotations

from collections.abc import Collection

from workbench.core.fusion.checks.order import needed_by
from workbench.core.fusion.fetched import Fetches
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import Refusal
from workbench.core.graph.op_types import LOOKUPS
from workbench.core.tf_graph.inlined_calls import CALLS, functions_behind

# What gathers rows of a tensor may do so of a table, and mostly does not.
_READS_TABLES = LOOKUPS - {"Gather", "GatherV2"}
_CALLED = (
    "it calls a function that a session's plan leaves as it is: XLA compiles that, TensorFlow may "
    "take another one for it, or it has a state of its own; load the model by tf.saved_model.load, "
    "and fuse the function of its signature by wb.fuse_function"
)
_BRANCH = "it calls a function as a branch, a loop or the like, into which no plan reaches"


def called_lookups(graph: Definition, fetches: Fetches) -> list[Refusal]:
    """The nodes that fetches need, in the graph's order, whose functions look rows up."""
    return [
        Refusal(name=name, reason=_CALLED if graph.nodes[name].op in CALLS else _BRANCH)
        for name in _callers(graph, fetches, _READS_TABLES)
    ]


def calls_with_lookups(graph: Definition, fetches: Fetches) -> list[str]:
    """The calls that fetches need, in the graph's order, whose functions may look rows up."""
    callers = _callers(graph, fetches, LOOKUPS)
    return [name for name in callers if graph.nodes[name].op in CALLS]


def _callers(graph: Definition, fetches: Fetches, ops: Collection[str]) -> list[str]:
    """The nodes behind which functions have ops of some types."""
    needed = needed_by({name for names in fetches for name in names}, graph.nodes)
    return [
        node.name
        for node in graph.ordered
        if node.name in needed
        and any(
            inner.op in ops
            for function in functions_behind(node, graph.functions).values()
            for inner in function.node_def
        )
    ]

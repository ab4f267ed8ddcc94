"""Calls of functions with lookups in them: a session's plan does not reach these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import Refusal
from workbench.core.graph.op_types import LOOKUPS
from workbench.core.tf_graph.inlined_calls import CALLS

_READS_TABLES = LOOKUPS - {"Gather", "GatherV2"}
_REASON = (
    "it calls a function, and a session's plan does not reach into functions; load the model by "
    "tf.saved_model.load, and fuse the function of its signature by wb.fuse_function"
)


def called_lookups(graph: Definition) -> list[Refusal]:
    """The calls of a graph, in its order, whose functions look rows up."""
    calls = (node for node in graph.ordered if node.op in CALLS)
    return [
        Refusal(name=node.name, reason=_REASON)
        for node in calls
        if any(op in _READS_TABLES for op in _ops(node, graph.functions, set()))
    ]


def _ops(node: Any, functions: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    """The types of the ops of all functions behind a node."""
    yield node.op
    for value in node.attr.values():
        called = [value.func] if value.WhichOneof("value") == "func" else value.list.func
        for name in (each.name for each in called):
            if name in functions and name not in seen:
                seen.add(name)
                for inner in functions[name].node_def:
                    yield from _ops(inner, functions, seen)

"""Whether a graph is the one that a plan was made for.

Natively fusion/apply_fusion.cc asks the same of a session's graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.python.framework import op_def_registry

from workbench.core.fusion.checks.effects import variables_used
from workbench.core.fusion.pattern.definition import tensor_name
from workbench.core.graph.graph_view import node_name
from workbench.errors import PlanError

_AGAIN = "the plan was made for another graph; plan again, for this graph"


def require_fit(
    definition: graph_pb2.GraphDef,
    *,
    region: Collection[Any],
    sources: Iterable[Any],
    writers: Iterable[str],
    functions: Iterable[Any] = (),
) -> None:
    """Requires that a graph has what a plan replaces as it was when the plan was made.

    It may have more nodes than the plan knows, but none that changes a variable behind the region:
    the plan knows no order for it.

    Args:
      definition: the graph.
      region, sources, writers: as of a FusionPlan, the first two as nodes.
      functions: those of the region.

    Raises:
      PlanError: it is another graph; the message names a node.
    """
    nodes = {node.name: node for node in definition.node}
    for planned, reads in ((region, True), (sources, False)):
        for wanted in planned:
            found = nodes.get(wanted.name)
            difference = "is missing" if found is None else _difference(wanted, found, reads)
            if difference:
                raise PlanError(f"node {wanted.name!r} {difference}: {_AGAIN}")
    library = {each.signature.name: each for each in definition.library.function}
    for function in functions:
        name = function.signature.name
        if name not in library or _parts(function) != _parts(library[name]):
            lacks = "is another one" if name in library else "is missing"
            raise PlanError(f"function {name!r} {lacks}: {_AGAIN}")
    # What reads nothing, such as a variable, comes behind nothing that the plan does.
    inside = {node.name for node in region if node.input}
    known = {*writers, *(node.name for node in region)}
    used = {use for name in known & nodes.keys() for use, _ in variables_used(nodes, nodes[name])}
    for name, node in nodes.items():
        uses = variables_used(nodes, node) if name not in known else ()
        changes = any(changes and variable in used for variable, changes in uses)
        if changes and _comes_behind(nodes, name, inside):
            raise PlanError(
                f"node {name!r} changes a variable behind what the plan replaces: {_AGAIN}"
            )


def _comes_behind(nodes: Mapping[str, Any], name: str, region: Collection[str]) -> bool:
    """Whether a node depends on one of a region."""
    seen, waiting = {name}, [name]
    while waiting:
        for text in nodes[waiting.pop()].input:
            source = node_name(text)
            if source in region:
                return True
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return False


def _difference(wanted: node_def_pb2.NodeDef, present: node_def_pb2.NodeDef, reads: bool) -> str:
    """In what a node differs from the one that a plan was made for, a clause; "" if in nothing."""
    if wanted.op != present.op:
        return f"is a {present.op} and was a {wanted.op}"
    attributes = [_compared(node, reads=reads) for node in (wanted, present)]
    for name in sorted({*attributes[0], *attributes[1]}):
        if attributes[0].get(name) != attributes[1].get(name):
            return f"has another {name}"
    if not reads:
        return ""
    if _tensors(wanted) != _tensors(present):
        return "reads other tensors"
    if _waits(wanted) != _waits(present):
        return "waits for other nodes"
    return "" if wanted.device == present.device else "asks for another device"


def _compared(node: node_def_pb2.NodeDef, *, reads: bool) -> dict[str, Any]:
    """What a node does by; the value of a constant that is read from outside does not matter."""
    return {
        name: value
        for name, value in node.attr.items()
        if value.WhichOneof("value") and name[0] != "_" and (reads or name != "value")
    }


def _parts(function: Any) -> list[Any]:
    """What functions are compared by: arguments, nodes, and what is returned."""
    signature = function.signature
    ends = [(arg.name, arg.type) for arg in (*signature.input_arg, *signature.output_arg)]
    nodes = [
        (node.name, node.op, list(node.input), node.device, _with_defaults(node))
        for node in function.node_def
    ]
    return [ends, nodes, dict(function.ret), dict(function.control_ret)]


def _with_defaults(node: node_def_pb2.NodeDef) -> dict[str, Any]:
    """The attributes of a node of a function, which models write without those that ops have."""
    op = op_def_registry.get(node.op)
    known = {each.name: each.default_value for each in (op.attr if op else ())}
    defaults = {name: value for name, value in known.items() if value.WhichOneof("value")}
    return {**defaults, **_compared(node, reads=True)}


def _tensors(node: node_def_pb2.NodeDef) -> list[str]:
    return [tensor_name(text) for text in node.input if not text.startswith("^")]


def _waits(node: node_def_pb2.NodeDef) -> set[str]:
    return {text for text in node.input if text.startswith("^")}

"""RewrittenGraph → FusionPlan: what of an edit a session needs to know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tensorflow.core.framework import function_pb2, graph_pb2, node_def_pb2

from workbench.core.fusion.checks.contract import needed
from workbench.core.fusion.checks.effects import has_effect, variables_used
from workbench.core.fusion.checks.rewritten import RewrittenGraph
from workbench.core.fusion.fusion_plan import FusionPlan, Group
from workbench.core.fusion.node_defs import kept_apart
from workbench.core.fusion.rule import Refusal
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_types import FED_ALWAYS

# Of a source its value may be large, and does not matter.
_NOT_COMPARED = frozenset({"value"})


def planned(
    rewritten: RewrittenGraph,
    ends: Iterable[str] | None,
    lines: Iterable[str],
    refusals: Sequence[Refusal],
    functions: Sequence[function_pb2.FunctionDef] = (),
) -> FusionPlan:
    """The plan of an edit that keeps the contract.

    Args:
      rewritten: the graph before and after.
      ends: as of `contract.violations`.
      lines: what is fused, in words.
      refusals: what stays.
      functions: of the calls in whose place the plan has nodes.
    """
    graph, edit, regions = rewritten.graph, rewritten.edit, rewritten.regions
    together = _together(rewritten, ends)
    members = {name for names in together.values() if len(names) > 1 for name in names}
    chosen = {each.node for each in regions if each.inside or each.node in members}
    # Where a session chooses between two nodes, that is no Identity while it optimizes.
    replaced = [
        new.node if new.node.name in chosen and ends is None else kept_apart(new.node)
        for new in edit.replaced
    ]
    names = {node.name for node in replaced}
    inside = dict.fromkeys(name for region in regions for name in sorted(region.inside))
    region = {*inside, *names}
    sources = {node_name(text) for edited in regions for text in edited.reads} - region
    return FusionPlan(
        fused=tuple(edit.fused),
        refusals=tuple(refusals),
        lines=tuple(lines),
        added=_serialized(edit.added),
        replaced=_serialized(replaced),
        region=_serialized((_as_planned(graph.nodes[name]) for name in sorted(region)), functions),
        sources=_serialized(
            _as_planned(graph.nodes[name], without=_NOT_COMPARED)
            for name in sorted(sources)
            if graph.nodes[name].op != "Const"
        ),
        choices=tuple(edited.node for edited in regions if edited.node in chosen),
        # Whatever a placeholder is fed, both forms compute all of it.
        inside=tuple(name for name in inside if graph.nodes[name].op not in FED_ALWAYS),
        reads=_reads(rewritten, ends, [name for name in inside if name not in names]),
        writers=_writers(rewritten),
        groups=tuple(
            Group(op=op, members=tuple(members))
            for op, members in together.items()
            if len(members) > 1
        ),
        bypassed=tuple(edit.bypassed),
    )


def _together(rewritten: RewrittenGraph, ends: Iterable[str] | None) -> dict[str, dict[str, None]]:
    """By new node the nodes for which it stands, and which runs need all or none of."""
    edit = rewritten.edit
    effects = {node.name for node in edit.added if has_effect(node.op)}
    together = {op: dict.fromkeys(edit.groups[op]) for op in edit.groups if op in effects}
    for asking in rewritten.asking_for_more if ends is None else ():
        members = (region.node for region in asking.regions)
        together.setdefault(asking.node, {}).update(dict.fromkeys(members))
    return together


def _writers(rewritten: RewrittenGraph) -> tuple[str, ...]:
    """The nodes that may change variables that regions use: a plan knows their order alone."""
    nodes, regions = rewritten.graph.nodes, rewritten.standing_in
    uses = [(name, *use) for name, node in nodes.items() for use in variables_used(nodes, node)]
    used = {variable for name, variable, _ in uses if name in regions}
    return tuple(
        dict.fromkeys(name for name, variable, changes in uses if changes and variable in used)
    )


def _reads(
    rewritten: RewrittenGraph, ends: Iterable[str] | None, names: Sequence[str]
) -> tuple[str, ...]:
    """Of these nodes the ones that read variables, where no run needs them but to fetch them."""
    nodes = rewritten.graph.nodes
    live = needed(rewritten, ends)
    reading = (name for name in names if any(True for _ in variables_used(nodes, nodes[name])))
    return tuple(name for name in reading if name not in live)


def _as_planned(
    node: node_def_pb2.NodeDef, without: frozenset[str] = frozenset()
) -> node_def_pb2.NodeDef:
    """What a plan is compared by."""
    planned = node_def_pb2.NodeDef(name=node.name, op=node.op, device=node.device)
    planned.input.extend(node.input)
    for name, value in node.attr.items():
        # One that was asked for and is not there is there without a value.
        is_set = value.WhichOneof("value") is not None
        if is_set and not name.startswith("_") and name not in without:
            planned.attr[name].CopyFrom(value)
    return planned


def _serialized(
    nodes: Iterable[node_def_pb2.NodeDef], functions: Sequence[function_pb2.FunctionDef] = ()
) -> bytes:
    part = graph_pb2.GraphDef(node=list(nodes))
    if functions:
        part.library.function.extend(functions)
    return bytes(part.SerializeToString())

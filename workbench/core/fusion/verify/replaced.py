"""ReplacedNode: a node that a plan replaces, with the parts that it is of, and what it needs."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from workbench.core.fusion.checks.effects import has_effect, variables_used
from workbench.core.fusion.checks.order import needed_by
from workbench.core.fusion.checks.rewritten import Region, RewrittenGraph
from workbench.core.fusion.fusion_plan import FusionPlan
from workbench.core.fusion.pattern.definition import Definition, tensor_name
from workbench.core.fusion.rule import Edit, Part
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_families import UPDATE, family_of
from workbench.core.graph.workbench_ops import HAND_ON

_IDS = (tf.int32.as_datatype_enum, tf.int64.as_datatype_enum)
_GRADIENT = re.compile(r"LookUpGrad")
_CALLS = ("PartitionedCall", "StatefulPartitionedCall", "If", "While", "Case")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ReplacedNode:
    """A node of a graph in whose place a plan puts another one.

    Attributes:
      name: of the node.
      region: what the new node stands for.
      parts: numbers of the fused parts that it is of.
      gives: whether it gives tensors to be compared; an update changes variables instead.
      writes: names of the nodes that change variables before it, itself among them.
      gained: names of those that a run of the plan's node needs, and a run of the graph's does not.
      changes: whether a run of it changes variables, as it is or as the plan makes it.
      rows: the tensor that has the rows of which a tensor of this node has the ids, and that one;
        None where it has none.
      variables: what it uses, or what is computed within it.
    """

    name: str
    region: Region
    parts: tuple[int, ...]
    gives: bool
    writes: frozenset[str]
    gained: frozenset[str]
    changes: bool
    rows: tuple[str, str] | None
    variables: frozenset[Any]


def rewritten_by(definition: graph_pb2.GraphDef, plan: FusionPlan) -> RewrittenGraph:
    """A graph before and after a plan, as the plan's own nodes say it."""
    edit = Edit(added=list(graph_pb2.GraphDef.FromString(plan.added).node))
    for node in graph_pb2.GraphDef.FromString(plan.replaced).node:
        edit.replace(node, Part(name=node.name, match=None))
    return RewrittenGraph(Definition(definition.node, definition.library.function), edit)


def replaced_nodes(plan: FusionPlan, rewritten: RewrittenGraph) -> list[ReplacedNode]:
    """The nodes that do other work than before, without those that only wait for others."""
    graph = rewritten.graph
    owners, rows = _Owners(plan, rewritten), _rows_of(rewritten)
    replaced = []
    for region, replacement in zip(rewritten.regions, rewritten.edit.replaced, strict=True):
        stock = graph.nodes[region.node]
        if stock.op == replacement.node.op and graph.inputs(stock) == graph.inputs(
            replacement.node
        ):
            continue
        closure = needed_by([region.node], graph.nodes)
        after = needed_by([region.node], rewritten.after)
        replaced.append(
            ReplacedNode(
                name=region.node,
                region=region,
                parts=owners.of(region),
                gives=stock.op != "NoOp" and family_of(stock.op) != UPDATE,
                writes=frozenset(n for n in closure if _writes(graph.nodes[n].op)),
                gained=frozenset(
                    name
                    for name in after.keys() & graph.nodes.keys() - closure.keys()
                    if _writes(rewritten.after[name].op)
                ),
                changes=any(_writes(rewritten.after[name].op) for name in (*closure, *after)),
                rows=rows.get(region.node),
                variables=frozenset(
                    variable
                    for name in region.nodes
                    for variable, _ in variables_used(graph.nodes, graph.nodes[name])
                ),
            )
        )
    return replaced


def _rows_of(rewritten: RewrittenGraph) -> dict[str, tuple[str, str]]:
    """By the name of each node that gives ids of rows the tensors of rows and of ids.

    Both are of one gradient, which has the rows of a table in any order, and some ids many times.
    """
    tensors: dict[str, dict[bool, str]] = {}
    for region, replacement in zip(rewritten.regions, rewritten.edit.replaced, strict=True):
        if not any(_GRADIENT.search(rewritten.after[name].op) for name in region.new):
            continue
        node = replacement.node
        if node.op == "IdentityN":
            types, scope = list(node.attr["T"].list.type), node.name
        elif node.op in ("Identity", HAND_ON):
            types, scope = [node.attr["T"].type], node.name.rpartition("/")[0]
        else:
            continue
        for number, dtype in enumerate(types):
            tensors.setdefault(scope, {})[dtype in _IDS] = f"{node.name}:{number}"
    pairs = (pair for pair in tensors.values() if len(pair) == 2)
    return {node_name(pair[True]): (pair[False], pair[True]) for pair in pairs}


def runs_of(replaced: Sequence[ReplacedNode], graph: Definition) -> list[list[ReplacedNode]]:
    """The replaced nodes in lists, each of which a run computes at once.

    Tensors are computed with the updates alone that they wait for. Updates run with those of the
    same training step, and with those that the same new node does.
    """
    tensors: dict[frozenset[str], list[ReplacedNode]] = {}
    updates: list[tuple[set[str], list[ReplacedNode]]] = []
    ends = _Ends(graph)
    writes = {each.name: each.writes for each in replaced}
    for each in replaced:
        if each.gives or not each.writes:
            rows = node_name(each.rows[0]) if each.rows else each.name
            tensors.setdefault(writes.get(rows, each.writes) | each.gained, []).append(each)
            continue
        behind = {*ends.of(each.name), *each.region.new}
        joined = [each]
        for other in [other for other in updates if not behind.isdisjoint(other[0])]:
            updates.remove(other)
            behind |= other[0]
            joined = [*other[1], *joined]
        updates.append((behind, joined))
    return [*tensors.values(), *(nodes for _, nodes in updates)]


@functools.cache
def _writes(op: str) -> bool:
    return family_of(op) == UPDATE or (op in _CALLS and has_effect(op))


class _Ends:
    """The nodes that nothing reads, behind each node."""

    def __init__(self, graph: Definition) -> None:
        self._readers: dict[str, set[str]] = {}
        for node in graph.nodes.values():
            for text in node.input:
                self._readers.setdefault(node_name(text), set()).add(node.name)

    def of(self, name: str) -> frozenset[str]:
        found, waiting, ends = {name}, [name], set()
        while waiting:
            last = waiting.pop()
            readers = self._readers.get(last, set())
            if not readers:
                ends.add(last)
            waiting += readers - found
            found |= readers
        return frozenset(ends)


class _Owners:
    """Which fused parts a region is of."""

    def __init__(self, plan: FusionPlan, rewritten: RewrittenGraph) -> None:
        self._fused = plan.fused
        self._rewritten = rewritten

    def of(self, region: Region) -> tuple[int, ...]:
        """Numbers of the parts: those whose op is in the region; else those that read as it does.

        Of several parts that one op does, a region has the one in whose scope its node is.
        """
        ops = region.new | {region.node}
        parts = [number for number, fused in enumerate(self._fused) if fused.op in ops]
        if not parts:
            tensors = self._tensors_of(region)
            parts = [
                number
                for number, fused in enumerate(self._fused)
                if not tensors.isdisjoint(self._reads(fused.op))
            ]
        named = [number for number in parts if _is_in(region.node, self._fused[number].name)]
        longest = max((len(self._fused[number].name) for number in named), default=0)
        innermost = [number for number in named if len(self._fused[number].name) == longest]
        return tuple(innermost or parts or range(len(self._fused)))

    def _tensors_of(self, region: Region) -> set[str]:
        after = self._rewritten.after
        return {t for name in (*region.new, region.node) for t in self._read_by(after[name])}

    @functools.cache  # noqa: B019, it ends with the verification
    def _reads(self, op: str) -> frozenset[str]:
        node = self._rewritten.after.get(op)
        return frozenset(() if node is None else self._read_by(node))

    def _read_by(self, node: Any) -> list[str]:
        nodes = self._rewritten.after
        inputs = [tensor_name(text) for text in node.input if text[0] != "^"]
        return [t for t in inputs if nodes[node_name(t)].op != "Const"]


def _is_in(name: str, scope: str) -> bool:
    return name == scope or name.startswith(f"{scope}/")

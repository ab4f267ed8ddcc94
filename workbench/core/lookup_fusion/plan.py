"""Graph → FusionPlan: which of its stock lookups grouped ops do instead, and why not the others."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework.func_graph import FuncGraph

from workbench import _native
from workbench.core.lookup_fusion import grouped_nodes
from workbench.core.lookup_fusion.definition import Definition
from workbench.core.lookup_fusion.dense_gradients import dense_gradients_of
from workbench.core.lookup_fusion.dense_lookups import find_dense_lookups
from workbench.core.lookup_fusion.gradients import LookupGradient, gradients_of
from workbench.core.lookup_fusion.groups import grouped, levels, run_together
from workbench.core.lookup_fusion.stock_lookups import LookupRefusal, StockLookup, find_lookups
from workbench.core.lookup_fusion.updates import TableUpdate
from workbench.errors import PlanError
from workbench.number_words import counted

# Scope of what a plan adds to a graph.
_SCOPE = "grouped_lookups"
_TOLD = ("lookups", "refusals")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FusedLookup:
    """A stock lookup that a grouped op does instead.

    Attributes:
      name: the scope that it was built in.
      op: name of the grouped op.
      gradients: how many gradients of it grouped ops make; not those that an update makes itself.
      updates: whether the update of its table is done by a grouped op too.
    """

    name: str
    op: str
    gradients: int
    updates: bool


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class FusionPlan:
    """What is done to a graph so that grouped ops do its stock lookups.

    Attributes:
      lookups: those that are fused, in the graph's order.
      refusals: those that stay, and why.
      added: nodes that are added, a serialized GraphDef.
      replaced: nodes that come in the place of nodes of the same name, likewise.
      replaced_ops: the op types of those that they replace.
      bypassed: nodes that read tables and which nothing needs any more.
    """

    lookups: tuple[FusedLookup, ...]
    refusals: tuple[LookupRefusal, ...]
    added: bytes
    replaced: bytes
    replaced_ops: tuple[str, ...]
    bypassed: tuple[str, ...]

    def __repr__(self) -> str:
        return f"FusionPlan({len(self.lookups)} lookups, {len(self.refusals)} stay)"

    def describe(self) -> str:
        """The plan in words: what is fused into which op, and why the rest is not."""
        lines = []
        for op in dict.fromkeys(each.op for each in self.lookups):
            own = [each for each in self.lookups if each.op == op]
            updated = sum(each.updates for each in own)
            parts = [f"{op}: {counted(len(own), 'lookup')} in one op"]
            parts += [f"{counted(updated, 'update')} of tables with their gradients"] * bool(
                updated
            )
            lines.append("; ".join(parts))
            lines += [f"  {each.name}" for each in own]
        lines += [f"{each.name} stays: {each.reason}" for each in self.refusals]
        return "\n".join(lines) or "the graph has no stock lookup"

    def described(self) -> str:
        """Its lookups and refusals as JSON, for `of`."""
        own = {name: [dataclasses.asdict(each) for each in getattr(self, name)] for name in _TOLD}
        return json.dumps({**own, "bypassed": self.bypassed})

    @classmethod
    def of(
        cls, described: str, *, added: bytes, replaced: bytes, replaced_ops: tuple[str, ...]
    ) -> FusionPlan:
        """The plan of which `described` told the rest."""
        own = json.loads(described)
        return cls(
            lookups=tuple(FusedLookup(**each) for each in own["lookups"]),
            refusals=tuple(LookupRefusal(**each) for each in own["refusals"]),
            added=added,
            replaced=replaced,
            replaced_ops=replaced_ops,
            bypassed=tuple(own["bypassed"]),
        )


def plan_fusion(graph: Any) -> FusionPlan:
    """Finds the stock lookups of a graph, and plans grouped ops in their place.

    A grouped op does all lookups that do not depend on one another and are in the same runs, of one
    dtype and on one device; where TensorFlow's Adagrad or gradient descent alone reads a gradient,
    the update of the table is part of it. Results are those of stock TensorFlow, but for the order
    in which the rows of one example are summed.

    Args:
      graph: a `tf.Graph`, a FuncGraph or concrete function, or a GraphDef that was made with
        `as_graph_def(add_shapes=True)`; it is only read.

    Raises:
      PlanError: something else.
    """
    definition = _definition_of(graph)
    nodes = Definition(definition.node)
    gpu = bool(tf.config.list_physical_devices("GPU"))
    found, refusals = find_lookups(nodes, gpu=gpu)
    kept: list[tuple[StockLookup, list[LookupGradient]]] = []
    for lookup in found:
        gradients = gradients_of(nodes, lookup)
        if gradients is None:
            reason = "its gradient is not the one that TensorFlow makes of a safe lookup"
            refusals.append(LookupRefusal(name=lookup.name, reason=reason))
        else:
            kept.append((lookup, gradients))
    dense, others = find_dense_lookups(nodes, gpu=gpu)
    kept += [(lookup, dense_gradients_of(nodes, lookup)) for lookup in dense]
    refusals += others
    # A function always runs as a whole.
    whole = isinstance(getattr(graph, "graph", graph), FuncGraph)
    return _Planned(nodes, kept, {} if whole else run_together(nodes)).plan(tuple(refusals))


class _Planned:
    """The nodes of a plan, while it is made."""

    def __init__(
        self,
        graph: Definition,
        lookups: Sequence[tuple[StockLookup, list[LookupGradient]]],
        runs: Mapping[str, tuple[int, int]],
    ) -> None:
        self._graph = graph
        self._runs = runs
        self._added = graph_pb2.GraphDef()
        self._replaced = graph_pb2.GraphDef()
        self._scope = _free_scope(graph)
        # By the node whose place it takes, the grouped op: of a result, and of what read the table.
        self._ops: dict[str, str] = {}
        self._bypassed: dict[str, str] = {}
        self._constants: dict[Any, str] = {}
        self._lookups = [(self._with_all_inputs(lookup), found) for lookup, found in lookups]
        replaced = {lookup.result for lookup, _ in lookups}
        after = {}
        for gradient in (each for _, gradients in lookups for each in gradients):
            if gradient.update:
                replaced.add(gradient.update.node)
                continue
            replaced |= {gradient.values, gradient.rows}
            if gradient.rows != gradient.values:
                after[gradient.rows] = gradient.values
        self._level = levels(graph, replaced, after)

    def plan(self, refusals: tuple[LookupRefusal, ...]) -> FusionPlan:
        """The plan as a whole."""
        self._add_lookups()
        pairs = [(lookup, g) for lookup, gradients in self._lookups for g in gradients]
        self._add_gradients([(lookup, g) for lookup, g in pairs if not g.update])
        self._add_updates([(lookup, g, g.update) for lookup, g in pairs if g.update])
        self._redirect_waits()
        return FusionPlan(
            lookups=tuple(
                FusedLookup(
                    name=lookup.name,
                    op=self._ops[lookup.result],
                    gradients=sum(not g.update for g in gradients),
                    updates=any(g.update for g in gradients),
                )
                for lookup, gradients in self._lookups
            ),
            refusals=refusals,
            added=self._added.SerializeToString(),
            replaced=self._replaced.SerializeToString(),
            replaced_ops=tuple(self._graph.nodes[n.name].op for n in self._replaced.node),
            bypassed=tuple(self._bypassed),
        )

    def _add_lookups(self) -> None:
        lookups = [lookup for lookup, _ in self._lookups]
        groups = grouped(lookups, lambda each: self._alike(each, each.result))
        for number, group in enumerate(groups):
            node = grouped_nodes.lookup_node(f"{self._scope}/lookup_{number}", group)
            self._added.node.append(node)
            for output, lookup in enumerate(group):
                self._ops[lookup.result] = node.name
                if lookup.gather:
                    self._bypassed[lookup.gather] = node.name
                self._stand_in(lookup.result, [f"{node.name}:{output}"], [lookup.dtype])

    def _add_gradients(self, pairs: Sequence[tuple[StockLookup, LookupGradient]]) -> None:
        groups = grouped(pairs, lambda pair: self._alike(pair[0], pair[1].values))
        for number, group in enumerate(groups):
            lookups, gradients = zip(*group, strict=True)
            node = grouped_nodes.gradient_node(
                f"{self._scope}/gradient_{number}", lookups, gradients
            )
            self._added.node.append(node)
            for i, (lookup, gradient) in enumerate(group):
                rows = self._as_ids(f"{node.name}_rows_{i}", f"{node.name}:{i}", lookup)
                values = f"{node.name}:{len(group) + i}"
                if gradient.values == gradient.rows:
                    types = [lookup.dtype, lookup.id_dtype]
                    self._stand_in(gradient.values, [values, rows], types)
                else:
                    self._stand_in(gradient.values, [values], [lookup.dtype])
                    self._stand_in(gradient.rows, [rows], [lookup.id_dtype])
                if gradient.summed:
                    # First what reads both outputs of the other one.
                    self._stand_in(gradient.summed, [values], [lookup.dtype])
                    self._stand_in(gradient.unique, [rows], [lookup.id_dtype])

    def _add_updates(
        self, triples: Sequence[tuple[StockLookup, LookupGradient, TableUpdate]]
    ) -> None:
        def key(triple: tuple[StockLookup, LookupGradient, TableUpdate]) -> Any:
            lookup, _, update = triple
            scalars = tuple(map(self._known, update.scalars))
            rule = (update.rule, scalars, update.is_resource, update.use_locking)
            return (*self._alike(lookup, update.node), *rule, update.device)

        for number, group in enumerate(grouped(triples, key)):
            lookups, gradients, updates = zip(*group, strict=True)
            before = [name for update in updates for name in self._waits_for(update.node)]
            # The op reads tables of features together: none is updated before all were read.
            before += [
                self._ops[lookup.result]
                for lookup, _, update in group
                if self._level[lookup.result] < self._level[update.node]
            ]
            node = grouped_nodes.update_node(
                f"{self._scope}/update_{number}",
                lookups,
                gradients,
                updates,
                [self._scalar(each, updates[0].device) for each in updates[0].scalars],
                dict.fromkeys(before),
            )
            self._added.node.append(node)
            for update in updates:
                old = self._graph.nodes[update.node]
                self._replaced.node.append(grouped_nodes.done(old, node.name))

    def _redirect_waits(self) -> None:
        """What waits until a table was read waits for the grouped op that reads it."""
        replaced = {node.name for node in self._replaced.node}
        for node in self._graph.nodes.values():
            if node.name in replaced or self._bypassed.keys().isdisjoint(
                text.removeprefix("^") for text in node.input if text.startswith("^")
            ):
                continue
            waiting = grouped_nodes.waiting(node, self._bypassed)
            self._replaced.node.append(waiting)

    def _alike(self, lookup: StockLookup, node: str) -> Any:
        """What nodes that one op stands for have in common."""
        kinds = lookup.dtype, lookup.id_dtype, lookup.is_resource
        return self._level[node], self._runs.get(node), lookup.device, *kinds

    def _waits_for(self, name: str) -> list[str]:
        """The nodes that run before another one by a control edge."""
        texts = [text for text in self._graph.nodes[name].input if text.startswith("^")]
        return [self._bypassed.get(text[1:], text[1:]) for text in texts]

    def _stand_in(self, name: str, tensors: Sequence[str], types: Sequence[int]) -> None:
        old = self._graph.nodes[name]
        self._replaced.node.append(grouped_nodes.stand_in(old, tensors, types))

    def _as_ids(self, name: str, rows: str, lookup: StockLookup) -> str:
        if lookup.id_dtype == tf.int64.as_datatype_enum:
            return rows
        node = grouped_nodes.cast_node(name, rows, lookup.id_dtype, lookup.device)
        self._added.node.append(node)
        return f"{name}:0"

    def _known(self, scalar: str | float) -> str | float:
        """A rule's number, as far as the graph says it; each table may have a tensor of its own."""
        value = self._graph.value(scalar) if isinstance(scalar, str) else None
        return scalar if value is None else float(value)

    def _scalar(self, value: str | float, device: str) -> str:
        """The tensor of a rule's number."""
        return value if isinstance(value, str) else self._constant(np.float32(value), device)

    def _with_all_inputs(self, lookup: StockLookup) -> StockLookup:
        """The lookup with something in place of the inputs that it lacks."""
        one_each, no_shape = np.int64(0), np.zeros(0, np.int64)
        return dataclasses.replace(
            lookup,
            indices=lookup.indices or self._constant(one_each, lookup.device),
            dense_shape=lookup.dense_shape or self._constant(no_shape, lookup.device),
        )

    def _constant(self, value: Any, device: str) -> str:
        """The tensor of a constant; the same one for equal values."""
        key = value.dtype.name, value.shape, value.tobytes(), device
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = f"{self._scope}/constant_{len(self._constants)}"
            self._added.node.append(grouped_nodes.constant_node(known, value, device))
        return f"{known}:0"


def fused_definition(definition: Any, plan: FusionPlan) -> graph_pb2.GraphDef:
    """A GraphDef as a plan makes it, for the graph that the plan was made for.

    Raises:
      PlanError: it was made for another one.
    """
    # The new nodes' ops are the library's.
    _native.library()
    replaced = {node.name: node for node in graph_pb2.GraphDef.FromString(plan.replaced).node}
    ops = dict(zip(replaced, plan.replaced_ops, strict=True))
    fused = graph_pb2.GraphDef(versions=definition.versions, library=definition.library)
    for node in definition.node:
        if node.name in replaced and node.op != (op := ops.pop(node.name)):
            raise PlanError(
                f"node {node.name!r} is a {node.op}, where the plan was made for a {op}; make a "
                "plan for this graph"
            )
        fused.node.append(replaced.get(node.name, node))
    if ops:
        raise PlanError(
            f"the graph has no node {next(iter(ops))!r}, which the plan replaces; make a plan for "
            "this graph"
        )
    fused.node.extend(graph_pb2.GraphDef.FromString(plan.added).node)
    return fused


def _definition_of(graph: Any) -> Any:
    if isinstance(graph, tf.compat.v1.GraphDef):
        return graph
    graph = graph if isinstance(graph, tf.Graph) else getattr(graph, "graph", graph)
    if not isinstance(graph, tf.Graph):
        raise PlanError(
            f"{graph!r} of type {type(graph).__name__} is no graph; expected a tf.Graph, a "
            "FuncGraph, a concrete function or a GraphDef"
        )
    return graph.as_graph_def(add_shapes=True)


def _free_scope(graph: Definition) -> str:
    """A scope that no node of the graph is in."""
    taken = {name.partition("/")[0] for name in graph.nodes}
    scope, number = _SCOPE, 0
    while scope in taken:
        number += 1
        scope = f"{_SCOPE}_{number}"
    return scope

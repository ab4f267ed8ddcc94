"""The nodes of a FusionPlan: grouped ops, and what takes the place of what they stand for."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from workbench.core.fusion import node_defs
from workbench.core.fusion.batch_norms.nodes import norm_nodes
from workbench.core.fusion.constants import Constants
from workbench.core.fusion.definition import Definition
from workbench.core.fusion.found import Found
from workbench.core.fusion.fusion_plan import FusedLookup, FusionPlan
from workbench.core.fusion.groups import grouped, levels
from workbench.core.fusion.interactions.nodes import interaction_nodes
from workbench.core.fusion.kernels.alike_ops import choose_kernels_of
from workbench.core.fusion.kernels.matmuls import choose_kernels
from workbench.core.fusion.lookups.gradients import LookupGradient
from workbench.core.fusion.lookups.joined import joined_nodes, together
from workbench.core.fusion.lookups.joined_gradients import Cut, cuts, whole_nodes
from workbench.core.fusion.lookups.lookup import StockLookup, WeightGradient
from workbench.core.fusion.lookups.max_norm_nodes import max_norm_nodes
from workbench.core.fusion.lookups.reads import idle_reads
from workbench.core.fusion.lookups.table_updates.update import TableUpdate, stock_update
from workbench.core.fusion.refusal import Refusal
from workbench.core.fusion.texts.hashed_columns import HashedColumn, column_nodes

# Scope of the grouped ops that a plan adds to a graph.
_SCOPE = "grouped_lookups"
# TensorFlow's number of the data type.
_INT64 = tf.int64.as_datatype_enum


class FusedNodes:
    """The nodes of a plan, while it is made."""

    def __init__(
        self,
        graph: Definition,
        found: Found,
        runs: Mapping[str, tuple[int, int]],
    ) -> None:
        self._graph = graph
        self._found = found
        self._norms = norm_nodes(graph, found.norms)
        self._interactions = interaction_nodes(graph, found.interactions)
        self._runs = runs
        self._added = graph_pb2.GraphDef()
        self._replaced = graph_pb2.GraphDef()
        self._scope = node_defs.free_scope(graph, _SCOPE)
        # By the node whose place it takes, the grouped op: of a result, and of what read the table.
        self._ops: dict[str, str] = {}
        # What nothing waits for any more has "".
        self._bypassed: dict[str, str] = {}
        # Of results, the op that makes the gradient of the weights.
        self._weight_ops: dict[str, str] = {}
        self._constant = Constants(self._scope, self._added)
        lookups = found.lookups
        self._lookups = [(self._with_all_inputs(lookup), of_it) for lookup, of_it in lookups]
        replaced = {lookup.result for lookup, _ in lookups}
        replaced |= {name for column in found.columns for name in (column.indices, column.ids)}
        after = {}
        for lookup, _ in lookups:
            replaced.update(lookup.weight_gradient.nodes if lookup.weight_gradient else ())
        for gradient in (each for _, gradients in lookups for each in gradients):
            if gradient.update:
                replaced.add(gradient.update.node)
                continue
            replaced |= {gradient.values, gradient.rows}
            if gradient.rows != gradient.values:
                after[gradient.rows] = gradient.values
        self._level = levels(graph, replaced, after)

    def plan(self, refusals: tuple[Refusal, ...]) -> FusionPlan:
        """The plan as a whole."""
        self._add_columns()
        self._add_lookups()
        self._add_weight_gradients()
        pairs = [(lookup, g) for lookup, gradients in self._lookups for g in gradients]
        self._add_gradients([(lookup, g) for lookup, g in pairs if not g.update])
        self._add_updates([(lookup, g, g.update) for lookup, g in pairs if g.update])
        for other in (self._norms, self._interactions):
            self._added.node.extend(other.added)
            self._bypassed |= other.bypassed
        for other in (self._norms, self._interactions):
            self._replaced.node.extend(
                node_defs.waiting(node, self._bypassed) for node in other.replaced
            )
        self._redirect_waits()
        matmuls = [
            product
            for product in self._found.matmuls
            if not any(node.name in self._bypassed for node in product.nodes)
        ]
        choose_kernels(matmuls, self._replaced)
        choose_kernels_of(self._graph, self._found.alike, self._replaced)
        return FusionPlan(
            lookups=tuple(
                FusedLookup(
                    name=lookup.name,
                    op=self._ops[lookup.result],
                    gradients=sum(not g.update for g in gradients)
                    + (lookup.weight_gradient is not None),
                    updates=any(g.update for g in gradients),
                    stock_update=""
                    if any(each.update for each in gradients)
                    else stock_update(self._graph, lookup.table),
                )
                for lookup, gradients in self._lookups
            ),
            norms=self._norms.fused,
            interactions=self._interactions.fused,
            matmuls=tuple(each.name for each in matmuls),
            hashed=tuple(each.ids for each in self._found.columns),
            decoded=self._found.alike.decoded,
            adams=self._found.alike.adams,
            refusals=refusals,
            added=self._added.SerializeToString(),
            replaced=self._replaced.SerializeToString(),
            replaced_ops=tuple(self._graph.nodes[n.name].op for n in self._replaced.node),
            bypassed=tuple(self._bypassed),
        )

    def _add_columns(self) -> None:
        def key(column: HashedColumn) -> Any:
            # The op reads texts alone, as what is of the lower level does.
            nodes = column.indices, column.ids
            level = min(self._level[node] for node in nodes)
            return level, column.device, *(self._runs.get(node) for node in nodes)

        # Texts that are hashed in several ways have the same indices.
        tensors: dict[str, str] = {}
        for number, group in enumerate(grouped(self._found.columns, key)):
            node, instead = column_nodes(f"{self._scope}/columns_{number}", group)
            self._added.node.append(node)
            tensors.update(instead)
        for name, tensor in tensors.items():
            self._stand_in(name, [tensor], [_INT64])

    def _add_lookups(self) -> None:
        lookups = [lookup for lookup, _ in self._lookups]
        groups = grouped(lookups, lambda each: self._alike(each, each.result))
        ops = [op for group in groups for op in together(self._graph, group)]
        for number, made in enumerate(ops):
            name = f"{self._scope}/lookup_{number}"
            node = node_defs.lookup_node(name, made.lookups, joined=bool(made.joins))
            self._added.node.append(node)
            outputs = [f"{name}:{output}" for output in range(len(made.lookups))]
            if made.joins:
                added, joins, outputs = joined_nodes(self._graph, made, name, self._constant)
                self._added.node.extend(added)
                self._replaced.node.extend(joins)
            for output, lookup in zip(outputs, made.lookups, strict=True):
                self._ops[lookup.result] = name
                for read in filter(None, (lookup.gather, lookup.read)):
                    self._bypassed[read] = name
                self._stand_in(lookup.result, [output], [lookup.dtype])
        self._bypassed |= dict.fromkeys(idle_reads(self._graph, lookups), "")

    def _add_weight_gradients(self) -> None:
        pairs = [(lookup, own) for lookup, _ in self._lookups if (own := lookup.weight_gradient)]
        groups = grouped(pairs, lambda pair: self._alike(pair[0], self._first(pair[1])))
        for number, group in enumerate(groups):
            lookups, gradients = zip(*group, strict=True)
            name = f"{self._scope}/weight_gradient_{number}"
            given = [each.given for each in gradients]
            self._added.node.append(node_defs.weight_gradient_node(name, lookups, given))
            for output, (lookup, gradient) in enumerate(group):
                self._weight_ops[lookup.result] = name
                for node in gradient.nodes:
                    self._stand_in(node, [f"{name}:{output}"], [lookup.dtype])

    def _first(self, gradient: WeightGradient) -> str:
        """Of the nodes that give a gradient the one of the lowest level."""
        return min(gradient.nodes, key=lambda name: self._level[name])

    def _read_before(self, lookups: Sequence[StockLookup]) -> dict[str, None]:
        """The ops that read rows of tables once more, before gradients of these change them."""
        names = (self._weight_ops.get(lookup.result) for lookup in lookups)
        return dict.fromkeys(name for name in names if name is not None)

    def _add_gradients(self, pairs: Sequence[tuple[StockLookup, LookupGradient]]) -> None:
        groups = grouped(pairs, lambda pair: self._alike(pair[0], pair[1].values))
        for number, group in enumerate(groups):
            lookups, gradients = zip(*group, strict=True)
            node = node_defs.gradient_node(
                f"{self._scope}/gradient_{number}",
                lookups,
                gradients,
                self._read_before(lookups),
            )
            self._added.node.append(node)
            for i, (lookup, gradient) in enumerate(group):
                rows = self._as_ids(f"{node.name}_rows_{i}", f"{node.name}:{i}", lookup)
                values = f"{node.name}:{len(group) + i}"
                if lookup.max_norm is not None:
                    scope, given = f"{node.name}_rows_of_{i}", values
                    nodes, values = max_norm_nodes(scope, lookup, f"{node.name}:{i}", given)
                    self._added.node.extend(nodes)
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
        alone = [triple for triple in triples if not triple[-1].shared_by]
        given = [(lookup, gradient.given) for lookup, gradient, _ in alone]
        found = cuts(self._graph, given)
        parts = dict(zip((each.node for *_, each in alone), found, strict=True))

        def key(triple: tuple[StockLookup, LookupGradient, TableUpdate]) -> Any:
            lookup, _, update = triple
            scalars = tuple(map(self._equal, update.scalars))
            rule = (update.rule, scalars, update.is_resource, update.use_locking)
            part = parts.get(update.node)
            alike = self._alike(lookup, update.node)
            return (*alike, *rule, update.device, part and part.wholes)

        for number, group in enumerate(grouped(triples, key)):
            lookups, gradients, updates = zip(*group, strict=True)
            waits = dict.fromkeys(name for update in updates for name in update.after)
            before = [*filter(None, (self._bypassed.get(name, name) for name in waits))]
            # The op reads tables of features together: none is updated before all were read.
            before += [
                self._ops[lookup.result]
                for lookup, _, update in group
                if self._level[lookup.result] < self._level[update.node]
            ]
            node = node_defs.update_node(
                f"{self._scope}/update_{number}",
                lookups,
                gradients,
                updates,
                [self._scalar(each, updates[0].device) for each in updates[0].scalars],
                dict.fromkeys([*before, *self._read_before(lookups)]),
                self._joined(
                    f"{self._scope}/update_{number}_gradient",
                    lookups[0],
                    [part for each in updates if (part := parts.get(each.node))],
                ),
            )
            self._added.node.append(node)
            for update in dict.fromkeys(updates):
                self._updated(update, node.name)

    def _joined(
        self, name: str, lookup: StockLookup, parts: Sequence[Cut]
    ) -> tuple[str, list[int]] | None:
        """The gradient that alike lookups share, and at which column each one's begins."""
        if not parts:
            return None
        added, whole = whole_nodes(self._graph, parts[0], lookup, name, self._constant)
        self._added.node.extend(added)
        return whole, [each.begin for each in parts]

    def _updated(self, update: TableUpdate, op: str) -> None:
        """Another op does an update: what changed something runs behind it, and does nothing."""
        old = self._graph.nodes[update.node]
        self._replaced.node.append(node_defs.done(old, op))
        for each in update.others:
            old = self._graph.nodes[each.node]
            if each.variable:
                made = node_defs.variable_after(old, each.variable, op)
            else:
                made = node_defs.done(old, op)
            self._replaced.node.append(made)
        for name in update.reads:
            self._bypassed[name] = op

    def _redirect_waits(self) -> None:
        """What waits until a table was read waits for the grouped op that reads it."""
        replaced = {node.name for node in self._replaced.node}
        for node in self._graph.nodes.values():
            if node.name in replaced or self._bypassed.keys().isdisjoint(
                text.removeprefix("^") for text in node.input if text.startswith("^")
            ):
                continue
            waiting = node_defs.waiting(node, self._bypassed)
            self._replaced.node.append(waiting)

    def _alike(self, lookup: StockLookup, node: str) -> Any:
        """What nodes that one op stands for have in common."""
        kinds = lookup.dtype, lookup.id_dtype, lookup.is_resource
        where = lookup.device, lookup.place
        return self._level[node], self._runs.get(node), *where, *kinds

    def _stand_in(self, name: str, tensors: Sequence[str], types: Sequence[int]) -> None:
        old = self._graph.nodes[name]
        self._replaced.node.append(node_defs.stand_in(old, tensors, types))

    def _as_ids(self, name: str, rows: str, lookup: StockLookup) -> str:
        if lookup.id_dtype == _INT64:
            return rows
        node = node_defs.cast_node(name, rows, lookup.id_dtype, lookup.device)
        self._added.node.append(node)
        return f"{name}:0"

    def _equal(self, scalar: str | float) -> Hashable:
        """What tells a rule's numbers apart, of which each table may have tensors of its own."""
        return self._graph.expression(scalar) if isinstance(scalar, str) else scalar

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

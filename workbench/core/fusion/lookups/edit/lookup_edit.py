"""The nodes of a plan for lookups: grouped ops, and what takes the place of what they stand for."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.core.fusion import node_defs
from workbench.core.fusion.lookups.edit import grouped_nodes
from workbench.core.fusion.lookups.edit.constants import Constants
from workbench.core.fusion.lookups.edit.idle_reads import idle_reads
from workbench.core.fusion.lookups.edit.joined import joined_nodes, together
from workbench.core.fusion.lookups.edit.joined_gradients import Cut, cuts, whole_nodes
from workbench.core.fusion.lookups.edit.max_norm_nodes import max_norm_nodes
from workbench.core.fusion.lookups.edit.reads_before import reads_before
from workbench.core.fusion.lookups.find.gradients import LookupGradient
from workbench.core.fusion.lookups.lookup import StockLookup, WeightGradient
from workbench.core.fusion.lookups.table_updates.update import (
    TableUpdate,
    stock_update,
    variable_of,
)
from workbench.core.fusion.pattern.groups import grouped, levels
from workbench.core.fusion.rule import Edit, Fused, Part, Surroundings
from workbench.core.graph.graph_view import node_name

# Scope of the grouped ops that a plan adds to a graph.
_SCOPE = "grouped_lookups"
KIND = "lookup"
# TensorFlow's number of the data type.
_INT64 = tf.int64.as_datatype_enum
_Lookup = tuple[StockLookup, list[LookupGradient]]


class LookupEdit:
    """The edit for some lookups, while it is made."""

    def __init__(
        self, surroundings: Surroundings, lookups: Sequence[_Lookup], parts: Sequence[Part]
    ) -> None:
        """Plans for lookups with their gradients, each of which is one of the parts."""
        self._graph, self._runs = surroundings.graph, surroundings.runs
        self._effects = surroundings.effects
        self._edit = Edit()
        self._scope = node_defs.free_scope(self._graph, _SCOPE)
        # By the result of a lookup.
        self._parts = {of.result: part for (of, _), part in zip(lookups, parts, strict=True)}
        # By the node whose place it takes, the grouped op: of a result, and of what read the table.
        self._ops: dict[str, str] = {}
        # Of results, the op that makes the gradient of the weights.
        self._weight_ops: dict[str, str] = {}
        self._constant = Constants(self._scope, self._edit.added)
        self._lookups = [(self._with_all_inputs(lookup), of_it) for lookup, of_it in lookups]
        # Of gradients, of tables or of weights, and of updates.
        backward: set[str] = set()
        beside = {}
        for lookup, _ in lookups:
            backward.update(lookup.weight_gradient.nodes if lookup.weight_gradient else ())
        for gradient in (each for _, gradients in lookups for each in gradients):
            if gradient.update:
                backward.add(gradient.update.node)
                continue
            backward |= {gradient.values, gradient.rows}
            if gradient.rows != gradient.values:
                beside[gradient.rows] = gradient.values
        self._behind = reads_before(self._graph, [lookup for lookup, _ in lookups], backward)
        replaced = backward.union(lookup.result for lookup, _ in lookups)
        self._level = levels(self._graph, replaced, beside, self._behind)

    def build(self) -> Edit:
        """The edit as a whole."""
        self._add_lookups()
        self._add_weight_gradients()
        pairs = [(lookup, g) for lookup, gradients in self._lookups for g in gradients]
        self._add_gradients([(lookup, g) for lookup, g in pairs if not g.update])
        self._add_updates([(lookup, g, g.update) for lookup, g in pairs if g.update])
        self._edit.credits = [(g.values, self._parts[lookup.result]) for lookup, g in pairs]
        updated = {variable_of(self._graph, lookup.table) for lookup, g in pairs if g.update}
        self._edit.fused = [self._fused(lookup, of_it, updated) for lookup, of_it in self._lookups]
        return self._edit

    def _fused(
        self, lookup: StockLookup, gradients: Sequence[LookupGradient], updated: set[str]
    ) -> Fused:
        of_plan = variable_of(self._graph, lookup.table) in updated
        return Fused(
            kind=KIND,
            name=lookup.name,
            op=self._ops[lookup.result],
            gradients=sum(not g.update for g in gradients) + (lookup.weight_gradient is not None),
            updates=any(each.update for each in gradients),
            note="" if of_plan else stock_update(self._graph, lookup.table),
        )

    def _add_lookups(self) -> None:
        lookups = [lookup for lookup, _ in self._lookups]
        groups = grouped(lookups, lambda lookup: self._pure(lookup, lookup.result))
        ops = [op for group in groups for op in together(self._graph, group)]
        for number, op in enumerate(ops):
            name = f"{self._scope}/lookup_{number}"
            node = grouped_nodes.lookup_node(name, op.lookups, joined=bool(op.joins))
            self._edit.added.append(node)
            outputs = [f"{name}:{output}" for output in range(len(op.lookups))]
            if op.joins:
                added, joins, outputs = joined_nodes(self._graph, op, name, self._constant)
                self._edit.added.extend(added)
                parts = [self._parts[lookup.result] for lookup in op.lookups]
                reads = frozenset().union(*map(self._reads, op.lookups))
                for join in joins:
                    self._edit.replace(join, *parts, reads=reads)
            for output, lookup in zip(outputs, op.lookups, strict=True):
                self._ops[lookup.result] = name
                for read in filter(None, (lookup.gather, lookup.read)):
                    self._edit.bypass(read, name, self._parts[lookup.result])
                self._stand_in(lookup, lookup.result, [output], [lookup.dtype])
        for read, of_it in idle_reads(self._graph, lookups):
            self._edit.bypass(read, "", *(self._parts[lookup.result] for lookup in of_it))

    def _add_weight_gradients(self) -> None:
        pairs = [(lookup, own) for lookup, _ in self._lookups if (own := lookup.weight_gradient)]
        groups = grouped(pairs, lambda pair: self._pure(pair[0], self._first(pair[1])))
        for number, group in enumerate(groups):
            lookups, gradients = zip(*group, strict=True)
            name = f"{self._scope}/weight_gradient_{number}"
            given = [each.given for each in gradients]
            self._edit.added.append(grouped_nodes.weight_gradient_node(name, lookups, given))
            for output, (lookup, gradient) in enumerate(group):
                self._weight_ops[lookup.result] = name
                for node in gradient.nodes:
                    tensors = [f"{name}:{output}"]
                    self._stand_in(lookup, node, tensors, [lookup.dtype], gradient.given)

    def _first(self, gradient: WeightGradient) -> str:
        """Of the nodes that give a gradient the one of the lowest level."""
        return min(gradient.nodes, key=lambda name: self._level[name])

    def _read_before(self, lookups: Sequence[StockLookup]) -> dict[str, None]:
        """The ops that read rows of tables once more, before gradients of these change them."""
        names = (self._weight_ops.get(lookup.result) for lookup in lookups)
        return dict.fromkeys(name for name in names if name is not None)

    def _lookups_before(self, nodes: Iterable[str]) -> dict[str, None]:
        """The ops of the lookups that nodes wait for, though not for what these give."""
        results = (result for name in nodes for result in self._behind.get(name, ()))
        return dict.fromkeys(self._ops[result] for result in results)

    def _add_gradients(self, pairs: Sequence[tuple[StockLookup, LookupGradient]]) -> None:
        groups = grouped(pairs, lambda pair: self._pure(pair[0], pair[1].values))
        for number, group in enumerate(groups):
            lookups, gradients = zip(*group, strict=True)
            node = grouped_nodes.gradient_node(
                f"{self._scope}/gradient_{number}",
                lookups,
                gradients,
                self._lookups_before(name for g in gradients for name in (g.values, g.rows))
                | self._read_before(lookups),
            )
            self._edit.added.append(node)
            for i, (lookup, gradient) in enumerate(group):
                given = gradient.given
                rows = self._as_ids(f"{node.name}_rows_{i}", f"{node.name}:{i}", lookup)
                values = f"{node.name}:{len(group) + i}"
                if lookup.max_norm is not None:
                    scope = f"{node.name}_rows_of_{i}"
                    nodes, values = max_norm_nodes(scope, lookup, f"{node.name}:{i}", values)
                    self._edit.added.extend(nodes)
                if gradient.values == gradient.rows:
                    types = [lookup.dtype, lookup.id_dtype]
                    self._stand_in(lookup, gradient.values, [values, rows], types, given)
                else:
                    self._stand_in(lookup, gradient.values, [values], [lookup.dtype], given)
                    self._stand_in(lookup, gradient.rows, [rows], [lookup.id_dtype], given)
                if gradient.summed:
                    # First what reads both outputs of the other one.
                    self._stand_in(lookup, gradient.summed, [values], [lookup.dtype], given)
                    self._stand_in(lookup, gradient.unique, [rows], [lookup.id_dtype], given)

    def _add_updates(
        self, triples: Sequence[tuple[StockLookup, LookupGradient, TableUpdate]]
    ) -> None:
        alone = [triple for triple in triples if not triple[-1].shared_by]
        given = [(lookup, gradient.given) for lookup, gradient, _ in alone]
        parts_of_updates = cuts(self._graph, given)
        parts = dict(zip((update.node for *_, update in alone), parts_of_updates, strict=True))

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
            before = [*self._lookups_before(update.node for update in updates)]
            before += [*filter(None, (self._edit.bypassed.get(name, name) for name in waits))]
            # The op reads tables of features together: none is updated before all were read.
            before += [
                self._ops[lookup.result]
                for lookup, _, update in group
                if self._level[lookup.result] < self._level[update.node]
            ]
            group_parts = [part for update in updates if (part := parts.get(update.node))]
            node = grouped_nodes.update_node(
                f"{self._scope}/update_{number}",
                lookups,
                gradients,
                updates,
                [self._scalar(update, updates[0].device) for update in updates[0].scalars],
                dict.fromkeys([*before, *self._read_before(lookups)]),
                self._joined(f"{self._scope}/update_{number}_gradient", lookups[0], group_parts),
            )
            self._edit.added.append(node)
            self._edit.groups[node.name] = [
                name
                for update in dict.fromkeys(updates)
                for name in (update.node, *(other.node for other in update.others))
            ]
            scalars = self._scalars_read(updates)
            for update in dict.fromkeys(updates):
                members = [(of, g) for of, g, other in group if other == update]
                whole = parts.get(update.node)
                reads = scalars.union(
                    whole.wholes if whole else (gradient.given for _, gradient in members),
                    (update.table, *update.slots),
                    *(self._reads(lookup, table=False) for lookup, _ in members),
                )
                owners = [self._parts[lookup.result] for lookup, _ in members]
                self._updated(update, node.name, owners, reads)

    def _scalars_read(self, updates: Sequence[TableUpdate]) -> frozenset[str]:
        """The tensors by which alike numbers of several updates are computed; one of all else."""
        read: set[str] = set()
        for numbers in zip(*(each.scalars for each in updates), strict=True):
            tensors = {each for each in numbers if isinstance(each, str)}
            if len(tensors) > 1:
                tensors = {leaf for each in tensors for leaf in self._graph.leaves(each)}
            read |= tensors
        return frozenset(read)

    def _joined(
        self, name: str, lookup: StockLookup, parts: Sequence[Cut]
    ) -> tuple[str, list[int]] | None:
        """The gradient that alike lookups share, and at which column each one's begins."""
        if not parts:
            return None
        added, whole = whole_nodes(self._graph, parts[0], lookup, name, self._constant)
        self._edit.added.extend(added)
        return whole, [each.begin for each in parts]

    def _updated(
        self, update: TableUpdate, op: str, owners: Sequence[Part], reads: frozenset[str]
    ) -> None:
        """Another op does an update: what changed something runs behind it, and does nothing."""
        stand_ins = [(update.node, update.result), *((o.node, o.variable) for o in update.others)]
        for name, variable in stand_ins:
            old = self._graph.nodes[name]
            made = node_defs.variable_after(old, variable, op) if variable else None
            self._edit.replace(made or node_defs.done(old, op), *owners, reads=reads)
        for name in update.reads:
            self._edit.bypass(name, op, *owners)

    def _pure(self, lookup: StockLookup, node: str) -> Any:
        """What nodes without effects have in common: a run of one has no effect that it had not."""
        return *self._alike(lookup, node), self._effects.get(node)

    def _alike(self, lookup: StockLookup, node: str) -> Any:
        """What nodes that one op stands for have in common."""
        kinds = lookup.dtype, lookup.id_dtype, lookup.is_resource
        where = lookup.device, lookup.place
        return self._level[node], self._runs.get(node), *where, *kinds

    def _stand_in(
        self,
        lookup: StockLookup,
        name: str,
        tensors: Sequence[str],
        types: Sequence[int],
        given: str | None = None,
    ) -> None:
        """Has a node of a lookup, or of its gradient from that `given`, hand on tensors."""
        reads = self._reads(lookup).union(() if given is None else (given,))
        node = node_defs.stand_in(self._graph.nodes[name], tensors, types)
        self._edit.replace(node, self._parts[lookup.result], reads=reads)

    def _reads(self, lookup: StockLookup, *, table: bool = True) -> frozenset[str]:
        """The tensors of the graph that a lookup, or its gradient, is computed from."""
        ids = (lookup.ids, lookup.indices, lookup.dense_shape, lookup.weights)
        tensors = (*ids, lookup.table) if table else ids
        return frozenset(each for each in tensors if each and node_name(each) in self._graph.nodes)

    def _as_ids(self, name: str, rows: str, lookup: StockLookup) -> str:
        if lookup.id_dtype == _INT64:
            return rows
        node = node_defs.cast_node(name, rows, lookup.id_dtype, lookup.device)
        self._edit.added.append(node)
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

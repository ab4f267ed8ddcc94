"""Calls of functions with lookups in a session's graph → the nodes of these functions, in sight.

A rule sees the nodes of one graph. So a plan for a signature of TensorFlow 2, which is one call,
is made for a graph with the function's nodes before an end that has the call's name. The plan for
the session's graph then has these nodes as new ones, and the end in the place of the call. No run
can feed or fetch what is inside a call, and each run of it needs all of it: there is no choice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2, node_def_pb2
from tensorflow.python.framework import op_def_registry

from workbench.core.fusion.checks.effects import has_effect, variables_used
from workbench.core.fusion.checks.order import needed_by
from workbench.core.fusion.checks.rewritten import RewrittenGraph
from workbench.core.fusion.node_defs import kept_apart
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.rule import Edit
from workbench.core.graph.graph_view import node_name
from workbench.core.tf_graph.inlined_calls import functions_behind, with_bodies


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OpenedCalls:
    """A graph with calls, and one with nodes of functions before the ends of some of them.

    Attributes:
      closed: the session's graph.
      graph: the other one.
      bodies: by call the names of the nodes of its function.
    """

    closed: Definition
    graph: tf.Graph
    bodies: Mapping[str, Collection[str]]

    def fused_in(self, rewritten: RewrittenGraph) -> list[str]:
        """The calls of which an edit of the other graph replaces nodes."""
        replaced = {each.node.name for each in rewritten.edit.replaced}
        return [call for call, names in self.bodies.items() if not replaced.isdisjoint(names)]

    def for_session(self, rewritten: RewrittenGraph) -> RewrittenGraph:
        """The session's graph, and what an edit of the other graph makes of it."""
        edit, nodes = rewritten.edit, self.closed.nodes
        within = {name: call for call, names in self.bodies.items() for name in names}
        whole = Edit(
            added=self._added(rewritten),
            replaced=[
                replaced
                for replaced in edit.replaced
                if replaced.node.name in nodes.keys() - self.bodies.keys()
            ],
            bypassed={name: by for name, by in edit.bypassed.items() if name in nodes},
            groups={
                op: list(dict.fromkeys(within.get(name, name) for name in members))
                for op, members in edit.groups.items()
            },
            fused=edit.fused,
        )
        for call in self.bodies:
            reads = frozenset(self.closed.inputs(nodes[call]))
            whole.replace(_plain(rewritten.after[call]), reads=reads)
        return RewrittenGraph(self.closed, whole)

    def _added(self, rewritten: RewrittenGraph) -> list[node_def_pb2.NodeDef]:
        """The nodes that the session's graph lacks, of those that something needs."""
        replaced = {each.node.name for each in rewritten.edit.replaced}
        present, after = self.closed.nodes.keys(), rewritten.after
        needed = needed_by([*self.bodies, *(replaced & present)], after)
        return [
            _plain(kept_apart(node) if name in replaced else node)
            for name, node in after.items()
            if name in needed and name not in present
        ]

    @property
    def functions(self) -> list[function_pb2.FunctionDef]:
        """The functions that are in sight, and those that their nodes call."""
        found: dict[str, function_pb2.FunctionDef] = {}
        for call in self.bodies:
            found |= functions_behind(self.closed.nodes[call], self.closed.functions)
        return list(found.values())


def opened_calls(definition: Any, calls: Collection[str]) -> OpenedCalls | None:
    """A session's graph with nodes of functions in sight; None where no call can be opened.

    A call stays where TensorFlow runs it as one piece, where its function has something that goes
    by the name of its node, or an effect that the function's callers do not wait for.

    Args:
      definition: a GraphDef.
      calls: names of calls, of which each run of its own needs all.
    """
    closed = Definition(definition.node, definition.library.function)
    while calls:
        whole, bodies = with_bodies(_ordered(definition, closed, calls), calls)
        nodes = {node.name: node for node in whole.node}
        calls = [call for call in bodies if _can_be_open(call, bodies[call], nodes)]
        if len(calls) == len(bodies):
            break
    if not calls:
        return None
    inside = tf.Graph()
    with inside.as_default():
        tf.graph_util.import_graph_def(whole, name="")
    return OpenedCalls(closed=closed, graph=inside, bodies=bodies)


def _can_be_open(call: str, body: Collection[str], nodes: Mapping[str, Any]) -> bool:
    if any(_goes_by_its_name(nodes[name]) for name in body):
        return False
    return needed_by([call], nodes).keys() >= {n for n in body if has_effect(nodes[n].op)}


def _goes_by_its_name(node: Any) -> bool:
    """Whether a node has a resource that other nodes find by the node's name."""
    op = op_def_registry.get(node.op)
    named = any(attribute.name == "shared_name" for attribute in (op.attr if op else ()))
    return named and not ("shared_name" in node.attr and node.attr["shared_name"].s)


def _ordered(definition: Any, graph: Definition, calls: Collection[str]) -> Any:
    """A graph whose calls wait for what changes or reads their variables before their arguments.

    As one op a call begins when all of its arguments are there.
    """
    ordered = tf.compat.v1.GraphDef()
    ordered.CopyFrom(definition)
    for node in ordered.node:
        if node.name in calls:
            own = {variable for variable, _ in variables_used(graph.nodes, node)}
            sources = dict.fromkeys(map(node_name, graph.inputs(node)))
            node.input.extend(f"^{each}" for each in sources if _acts_before(graph, each, own))
    return ordered


def _acts_before(graph: Definition, source: str, variables: Collection[Any]) -> bool:
    """Whether an argument depends on an effect, or on one of some variables."""
    return any(
        has_effect(graph.nodes[name].op)
        or any(used in variables for used, _ in variables_used(graph.nodes, graph.nodes[name]))
        for name in needed_by([source], graph.nodes)
    )


def _plain(node: Any) -> node_def_pb2.NodeDef:
    """A node without the shapes that rules asked for."""
    plain = node_def_pb2.NodeDef()
    plain.CopyFrom(node)
    plain.attr.pop("_output_shapes", None)
    return plain

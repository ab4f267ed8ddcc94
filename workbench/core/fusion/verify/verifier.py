"""Plan + a session or function → Verification: both run on one batch, in private sessions."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from workbench.core.fusion.checks.contract import violations
from workbench.core.fusion.checks.effects import has_effect
from workbench.core.fusion.checks.order import needed_by
from workbench.core.fusion.checks.rewritten import RewrittenGraph
from workbench.core.fusion.fusion_plan import FusionPlan, fused_definition
from workbench.core.fusion.node_defs import kept_apart
from workbench.core.fusion.verify.batch import prepare
from workbench.core.fusion.verify.begun import begun_session
from workbench.core.fusion.verify.inputs import Inputs, function_inputs, session_inputs
from workbench.core.fusion.verify.outcome import Outcome, outcomes
from workbench.core.fusion.verify.replaced import (
    ReplacedNode,
    replaced_nodes,
    rewritten_by,
    runs_of,
)
from workbench.core.fusion.verify.sides import sides
from workbench.core.fusion.verify.verification import (
    DIFFERS,
    NOT_VERIFIED,
    ROUNDED,
    SAME,
    Verdict,
    Verification,
    VerifiedPart,
)
from workbench.core.graph.op_types import PLACEHOLDERS, SOURCES
from workbench.core.tf_graph.rebuilt_function import without_calls
from workbench.errors import OptionError

# The worst first.
_ORDER = (DIFFERS, NOT_VERIFIED, ROUNDED, SAME)
_Outcomes = dict[int, list[Outcome]]


def verify(plan: FusionPlan, subject: Any, batch: Any = None) -> Verification:
    """Runs a graph's own nodes and those of a plan on one batch, and compares them.

    Args:
      plan: what is verified.
      subject: a `tf.compat.v1` session, a graph, or a concrete function.
      batch: feeds of the session or graph, as of `session.run`; arguments of the function.

    Raises:
      PlanError: the plan was made for another graph.
      OptionError: `subject` is none of these, the batch does not fit it, or the graph's variables
        cannot be initialized.
    """
    if isinstance(subject, tf.types.experimental.ConcreteFunction):
        return _verify_function(plan, subject, batch)
    if type(subject) is tf.Graph:
        with begun_session(subject) as session:
            return _verify_session(plan, session, batch)
    find = getattr(subject, "_tf_sess", None)
    session = find() if find else subject
    if not isinstance(session, tf.compat.v1.Session | tf.compat.v1.InteractiveSession):
        raise OptionError(
            f"{subject!r} of type {type(subject).__name__} cannot be verified; expected a "
            "tf.compat.v1 session, a graph or a concrete function"
        )
    return _verify_session(plan, session, batch)


def _verify_session(plan: FusionPlan, session: Any, feed_dict: Any) -> Verification:
    definition = session.graph.as_graph_def(add_shapes=True)
    fused = fused_definition(definition, plan)
    rewritten = rewritten_by(definition, plan)
    if not plan.count:
        return Verification(parts=())
    if session._target:
        return _verification(plan, _all(plan, "the session is one of a cluster"))
    names = [each.node.name for each in rewritten.edit.replaced]
    needed = needed_by(names, rewritten.graph.nodes) | needed_by(names, rewritten.after)
    inputs = session_inputs(
        session, feed_dict, rewritten.graph, needed.keys() & rewritten.graph.nodes.keys()
    )
    return _verified(plan, rewritten, (definition, fused), inputs, None)


def _verify_function(plan: FusionPlan, function: Any, batch: Any) -> Verification:
    function = without_calls(function)
    graph = function.graph
    definition = graph.as_graph_def(add_shapes=True)
    fused = fused_definition(definition, plan)
    # Of reads of variables that nothing needs a call gives no value.
    ends = {tensor.op.name for tensor in graph.outputs}
    ends.update(op.name for op in graph.control_outputs if has_effect(op.type))
    if not plan.count:
        return Verification(parts=())
    inputs = function_inputs(function, batch)
    return _verified(plan, rewritten_by(definition, plan), (definition, fused), inputs, ends)


def _verified(
    plan: FusionPlan,
    rewritten: RewrittenGraph,
    definitions: tuple[graph_pb2.GraphDef, graph_pb2.GraphDef],
    inputs: Inputs,
    ends: Iterable[str] | None,
) -> Verification:
    replaced = replaced_nodes(plan, rewritten)
    by_part: _Outcomes = collections.defaultdict(list)
    for node_def in definitions[1].node:
        if node_def.name in rewritten.standing_in:
            node_def.CopyFrom(kept_apart(node_def))
    parts_of = {node.name: node.parts for node in replaced}
    for part, reason in violations(rewritten, ends).items():
        for number in parts_of.get(part.name, range(plan.count)):
            by_part[number].append(Outcome(verdict=DIFFERS, where=part.name, reason=reason))
    # All of a function runs, whatever is read of it.
    for node in replaced if ends is None else ():
        for name in sorted(node.gained)[:1] if node.gives and not node.rows else ():
            op = f"{rewritten.graph.nodes[name].op} {name!r}"
            reason = f"a run that fetches {node.name!r} alone runs {op}, too"
            _add(by_part, node, Outcome(verdict=DIFFERS, where=node.name, reason=reason))
    # In a function that is being traced, too, values are computed.
    with tf.init_scope(), sides(*definitions, inputs) as (stock, fused):
        prepare((stock, fused), rewritten, replaced, inputs)
        runnable, inside = [], frozenset(plan.inside)
        for node in replaced:
            reason = _reason(node, rewritten, inputs, inside)
            if reason:
                _add(by_part, node, Outcome(verdict=NOT_VERIFIED, reason=reason))
            else:
                runnable.append(node)
        variables = _variables(rewritten)
        for run in runs_of(runnable, rewritten.graph):
            for node, outcome in outcomes(run, stock, fused, inputs, variables):
                _add(by_part, node, outcome)
    return _verification(plan, by_part)


def _reason(
    node: ReplacedNode, rewritten: RewrittenGraph, inputs: Inputs, inside: frozenset[str]
) -> str:
    """Why a replaced node cannot be run privately, a clause; "" where it can."""
    graph = rewritten.graph
    if node.name in graph.conditional:
        return f"{node.name!r} is in a branch or loop, whose tensors no run gives"
    inside = (inside & node.region.nodes) | {node.name}
    for fed in inputs.feeds:
        name = fed.rpartition(":")[0]
        if name not in inside or graph.nodes[name].op in (PLACEHOLDERS | SOURCES):
            continue
        return f"{fed!r} is fed, and a run that feeds it runs the graph's own nodes"
    for nodes in (graph.nodes, rewritten.after):
        for name in needed_by([node.name], nodes, inputs.feeds):
            if inputs.refused.get(name):
                return inputs.refused[name]
    return ""


def _variables(rewritten: RewrittenGraph) -> Mapping[Any, str]:
    """By what tells a variable from others, as `variables_used` gives it, the name of its node."""
    found: dict[Any, str] = {}
    for node in rewritten.graph.nodes.values():
        shared = node.attr["shared_name"].s.decode() if "shared_name" in node.attr else ""
        container = node.attr["container"].s.decode() if "container" in node.attr else ""
        found.setdefault((node.op, container, shared or node.name), node.name)
    return found


def _add(by_part: _Outcomes, node: ReplacedNode, outcome: Outcome) -> None:
    for number in node.parts:
        by_part[number].append(outcome)


def _all(plan: FusionPlan, reason: str) -> _Outcomes:
    return {n: [Outcome(verdict=NOT_VERIFIED, reason=reason)] for n in range(plan.count)}


def _verification(plan: FusionPlan, by_part: _Outcomes) -> Verification:
    parts = []
    for number, fused in enumerate(plan.fused):
        none = Outcome(verdict=NOT_VERIFIED, reason="no node of the plan is known to be its own")
        mine = by_part.get(number) or [none]
        verdict: Verdict = min((each.verdict for each in mine), key=_ORDER.index)
        worst = max((each for each in mine if each.verdict == verdict), key=_size)
        parts.append(
            VerifiedPart(
                kind=fused.kind,
                name=fused.name,
                verdict=verdict,
                difference=worst.difference,
                relative=worst.relative,
                where=worst.where,
                reason=worst.reason,
            )
        )
    return Verification(parts=tuple(parts))


def _size(outcome: Outcome) -> tuple[bool, float]:
    """An order in which what says more comes behind."""
    return bool(outcome.reason), outcome.relative

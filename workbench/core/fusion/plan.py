"""Graph → FusionPlan: what of it few ops do, and why not all."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from workbench import _native
from workbench.core.fusion import node_defs
from workbench.core.fusion.called_lookups import called_lookups, calls_with_lookups
from workbench.core.fusion.checks.contract import violations
from workbench.core.fusion.checks.effects import effects_before, has_effect
from workbench.core.fusion.checks.rewritten import RewrittenGraph
from workbench.core.fusion.fetched import Fetches, fetched, readable
from workbench.core.fusion.fusion_plan import FusionPlan
from workbench.core.fusion.opened_calls import OpenedCalls, opened_calls
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.groups import run_together
from workbench.core.fusion.pattern.placement import placement_of
from workbench.core.fusion.planned import planned
from workbench.core.fusion.rule import Edit, Part, Refusal, Rule, Surroundings
from workbench.core.fusion.rules import RULES
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_families import GRADIENTS
from workbench.core.tf_graph.meta_graphs import meta_graph_in
from workbench.errors import PlanError

_IN_GRADIENTS = re.compile(rf"(^|/){GRADIENTS}")
_PartsByRule = Mapping[Rule, Sequence[Part]]


def plan_fusion(graph: Any, *, fetches: Any = None, signature: Any = None) -> FusionPlan:
    """Finds stock lookups, layers and columns of text in a graph, and plans ops in their place.

    A grouped op does all lookups of one dtype and one device that are in the same runs and do not
    depend on one another. The update of a table is part of it where an optimizer alone reads the
    gradient and a grouped op can do the update alike. Results are those of stock TensorFlow, but
    for the order in which the rows of one example are summed.

    One op does a batch normalization, and one its gradients: tens of nodes else. It replaces
    `tf.nn.moments` over the rows of a float32 matrix and `tf.nn.batch_normalization`, as Keras's
    BatchNormalization trains too.

    One op does an interaction of vectors, and one its gradient. A dot interaction gathers pairs of
    each example's vectors from `tf.matmul(x, x, transpose_b=True)`, as DLRM does. The interaction
    of a factorization machine is the square of the vectors' sum less the sum of their squares. They
    differ from TensorFlow's in the last digits, summed in another order.

    A kernel of Workbench's does large products of two float32 matrices, with the bias and the ReLU
    behind them. It does so on processors on which that is faster; docs/matmul.md says on which.
    They too differ in the last digits.

    One op hashes the words of all columns of text that are not empty and are hashed as feature
    columns do it. Kernels that any number of threads share decode lines, and update whole variables
    as Adam does. All of these give what TensorFlow's ops give.

    One op prepares the ids of all features as Keras's embeddings do: columns of a matrix, cast to
    integers, of which those below 0 count from the table's end.

    Whatever is fused keeps what the graph states: what waits for what, in which order a variable is
    read and written, and each gradient once. What an op could not keep stays, with the reason among
    the refusals. A run of a session that feeds or fetches within what is fused runs the graph's own
    nodes.

    What may run on a GPU stays, but for lookups whose ops have kernels there, once
    `wb.load_gpu_kernels` has loaded them.

    Placeholders are fed apart: unless it is known what runs fetch, an op does not look up for two
    of them, since a run might feed one alone. With `fetches` or `signature` one op does all lookups
    that the same fetches need. A run that feeds or fetches a part runs the graph's own nodes. Calls
    of functions that these fetches need, as of a signature of TensorFlow 2, are fused within.

    Args:
      graph: a `tf.Graph`, a FuncGraph or concrete function, a MetaGraphDef, the folder of a
        SavedModel, or a GraphDef that was made with `as_graph_def(add_shapes=True)`; it is only
        read.
      fetches: what runs of a session's graph fetch, in any structure, as of `session.run`; a run
        may fetch some of it. None where that is not known.
      signature: in place of fetches a SignatureDef, of which the outputs are fetched. Or the name
        of one, of a SavedModel or of the MetaGraphDef that `tf.compat.v1.saved_model.load` returns.

    Raises:
      PlanError: `graph` is something else.
      OptionError: `fetches` or `signature` is not of this graph, or the graph is a function. Or the
        folder has no SavedModel.
    """
    if isinstance(graph, str | os.PathLike):
        graph = meta_graph_in(graph)
    known = fetched(getattr(graph, "graph", graph), fetches, signature)
    own = readable(graph)
    return _with_functions(own, known) if known else _plan_of(ask_rules(own))


def _plan_of(
    answers: Answers, opened: OpenedCalls | None = None, more: Sequence[Refusal] = ()
) -> FusionPlan:
    rewritten = opened.for_session(answers.rewritten) if opened else answers.rewritten
    return planned(
        rewritten,
        answers.ends,
        _lines(rewritten.edit),
        tuple(dict.fromkeys([*answers.refusals, *more])),
        opened.functions if opened else (),
    )


def _with_functions(graph: Any, known: Fetches) -> FusionPlan:
    """A plan for a session's graph and the functions that it calls, of which something is fused."""
    whole = _definition_of(graph)
    calls = calls_with_lookups(Definition(whole.node, whole.library.function), known)
    opened = opened_calls(whole, calls)
    answers = ask_rules(opened.graph if opened else graph, known)
    refusals = [*answers.refusals, *called_lookups(answers.rewritten.graph, known)]
    if opened and (used := opened.fused_in(answers.rewritten)) != list(opened.bodies):
        opened = opened_calls(whole, used)
        answers = ask_rules(opened.graph if opened else graph, known)
    return _plan_of(answers, opened, refusals)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """What the rules said of a graph.

    Attributes:
      rewritten: the graph, and what the rules make of it together.
      ends: as of `contract.violations`.
      parts: what they fuse, by rule.
      refusals: what stays.
    """

    rewritten: RewrittenGraph
    ends: frozenset[str] | None
    parts: Mapping[Rule, Sequence[Part]]
    refusals: Sequence[Refusal]


def ask_rules(graph: Any, fetches: Fetches = ()) -> Answers:
    """Asks every rule what of a graph it fuses, and keeps what the contract allows.

    Args:
      graph: as of `plan_fusion`, but no MetaGraphDef.
      fetches: names of the nodes of what runs fetch; none where that is not known.

    Raises:
      PlanError: it is no graph.
    """
    definition = _definition_of(graph)
    nodes = Definition(definition.node, definition.library.function)
    placement = placement_of(graph)
    kept: dict[Rule, list[Part]] = {}
    refusals: list[Refusal] = []
    for rule in RULES:
        parts, others = rule.find(nodes, placement)
        known = not (parts and rule.is_dense) or _native.has_dense_kernels()
        kept[rule] = parts if known else []
        refusals += others
    if any(kept.values()):
        # What its ops do is known once they are.
        _native.library()
    own = getattr(graph, "graph", graph)
    # A function always runs as a whole.
    ends = _ends_of(own) if isinstance(own, FuncGraph) else None
    runs = run_together(nodes, fetches) if ends is None and any(kept.values()) else {}
    effects = effects_before(nodes) if runs else {}
    while True:
        edit = _edited(Surroundings(graph=nodes, runs=runs, effects=effects), kept)
        rewritten = RewrittenGraph(nodes, edit)
        refused = violations(rewritten, ends)
        if not refused:
            return Answers(rewritten=rewritten, ends=ends, parts=kept, refusals=refusals)
        refusals += [Refusal(name=part.name, reason=reason) for part, reason in refused.items()]
        kept = {rule: [p for p in parts if p not in refused] for rule, parts in kept.items()}


def _edited(surroundings: Surroundings, found: _PartsByRule) -> Edit:
    """What the rules do to a graph together."""
    edit = Edit()
    for rule, parts in found.items():
        taken = frozenset(each.node.name for each in edit.replaced).union(edit.bypassed)
        edit.extend(rule.edit(dataclasses.replace(surroundings, taken=taken), parts))
    _redirect_waits(surroundings.graph, edit)
    return edit


def _redirect_waits(nodes: Definition, edit: Edit) -> None:
    """What waits for a node that nothing needs any more waits for the one that runs instead.

    What only nodes within regions need stays as it is, for runs that need the graph's own nodes.
    """
    needed = needed_outside(RewrittenGraph(nodes, edit))
    edit.replaced = [
        dataclasses.replace(each, node=node_defs.waiting(each.node, edit.bypassed))
        for each in edit.replaced
    ]
    replaced = {each.node.name for each in edit.replaced}
    for node in nodes.nodes.values():
        before = {text[1:] for text in node.input if text.startswith("^")}
        waits = not edit.bypassed.keys().isdisjoint(before)
        if waits and node.name in needed and node.name not in replaced:
            parts = [part for name in before for part in edit.bypassed_by.get(name, ())]
            edit.replace(node_defs.waiting(node, edit.bypassed), *dict.fromkeys(parts))


def needed_outside(rewritten: RewrittenGraph) -> set[str]:
    """The nodes that are needed but for what is computed within regions.

    Of gradients TensorFlow builds more than an update reads; none of that is.
    """
    bypassed, after = rewritten.edit.bypassed, rewritten.after
    inside = {name for region in rewritten.regions for name in region.inside}
    needed = {name for name in after.keys() - inside if not _IN_GRADIENTS.search(name)}
    needed.update(region.node for region in rewritten.regions)
    waiting = list(needed)
    while waiting:
        for text in after[waiting.pop()].input:
            name = node_name(text)
            redirected = text[0] == "^" and name in bypassed
            if not redirected and name not in needed:
                needed.add(name)
                waiting.append(name)
    return needed


def _lines(edit: Edit) -> Iterable[str]:
    """What is fused, in words."""
    for rule in RULES:
        own = [each for each in edit.fused if each.kind.endswith(rule.kind)]
        yield from rule.describe(own) if own else ()


def _ends_of(graph: FuncGraph) -> frozenset[str]:
    """What each call of a function is for: what it returns, and effects.

    It runs all its reads of variables, too; of those that nothing needs no value comes.
    """
    outputs = {tensor.op.name for tensor in graph.outputs}
    effects = (op.name for op in graph.control_outputs if has_effect(op.type))
    return frozenset(outputs.union(effects))


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

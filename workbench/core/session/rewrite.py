"""Plans + a session's config → a config whose sessions run rewritten graphs.

A FusionPlan and a StagePlan may be in one config: the graph is fused first, and the stages are made
for the fused graph. Plans travel as named parameters of the config, also to a server. There a graph
pass of the native library applies them to the session's own copy of the graph; the user's graph
stays as it is.

requires: the plan fits the graph. A StagePlan has a fingerprint of it; of a FusionPlan the pass
compares each node of its regions. A plan for another graph is an error.
ensures: every fetch and feed by name means what it meant: a run that feeds a tensor within a
region, or fetches what is read there, runs the graph's own nodes; each run that needs the input
takes exactly one item; what the plan does not name is untouched.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from workbench import _native
from workbench.core.fusion.fusion_plan import FusionPlan, Group, fused_definition
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.session.prefetch_runner import PrefetchRunner, runner_in
from workbench.core.session.stage_nodes import stage_spec, texts, update_names
from workbench.core.staging.buffer_scope import buffer_scope
from workbench.core.tf_graph.import_graph import graph_view
from workbench.errors import OptionError, PlanError

v1 = tf.compat.v1
# In native/rewriting/plan/stage_plan.cc.
_NAME, _FORMAT = "WorkbenchStagePlan", 3

# Attributes of a FusionPlan: nodes, and names of nodes.
_NODES = ("added", "replaced", "region", "sources")
_NAMES = ("choices", "inside", "reads", "writers")


def apply(
    plan: StagePlan | FusionPlan, config: Any = None, *, graph: Any = None, verify: Any = None
) -> Any:
    """Puts a plan into a ConfigProto; sessions made with it run the rewritten graph.

    An earlier plan of the kind in it is replaced. A plan of nothing leaves the graph as it is.
    Where lookups are fused and stages run ahead, the FusionPlan is applied first, and the
    StagePlan made for the graph as it leaves it: `find_boundary(graph, …, fusion=plan)`.

    Args:
      plan: what to apply.
      config: a ConfigProto, changed in place; None makes one.
      graph: the graph that sessions will run; given, the plan is checked against it here. The hook
        that starts the stages checks it in any case.
      verify: of a FusionPlan, feeds of `graph` as of `session.run`, which may be empty. The plan is
        verified on them here, with variables as their initializers make them; see
        `FusionPlan.verify`. None verifies nothing.

    Returns:
      The config.

    Raises:
      PlanError: the plan was made for another graph. Or it fuses lookups of a graph for which the
        config has stages already. Or a verification finds that something differs.
      OptionError: `config` is no ConfigProto, or `verify` is given without a graph to run.
    """
    if config is None:
        config = v1.ConfigProto()
    if not hasattr(getattr(config, "graph_options", None), "rewrite_options"):
        raise OptionError(
            f"config is {config!r} of type {type(config).__name__}; expected a ConfigProto"
        )
    if verify is not None and (graph is None or not isinstance(plan, FusionPlan)):
        raise OptionError("verify is for a FusionPlan, and runs the graph; give graph=… with it")
    applied = applied_in(config)
    stages, fusion = (applied.plan, applied.fusion) if applied else (None, None)
    if isinstance(plan, FusionPlan):
        if stages is not None and stages.stages:
            raise PlanError(
                "the config has a plan of stages already, made for the graph with its lookups as "
                "they are; apply the FusionPlan first, then a StagePlan for the fused graph"
            )
        if graph is not None:
            fused_definition(graph.as_graph_def(), plan)
        if verify is not None:
            plan.verify(graph, verify).require()
        fusion = plan
    else:
        if graph is not None:
            require_graph(plan, graph, fusion)
        stages = plan
    remove(config)
    _put_in(config, stages, fusion)
    return config


def _put_in(config: Any, stages: StagePlan | None, fusion: FusionPlan | None) -> None:
    if not (stages and stages.stages) and not (fusion and fusion.count):
        return
    # The pass is in the library; a session without it would run the graph as it is.
    _native.library()
    entry = config.graph_options.rewrite_options.custom_optimizers.add()
    entry.name = _NAME
    token = secrets.token_hex(8)
    parameters = entry.parameter_map
    parameters["format"].i = _FORMAT
    parameters["plan"].s = stages.to_json().encode() if stages else b""
    parameters["token"].s = token.encode()
    planned = stages.stages if stages else ()
    parameters["stages"].list.func.extend(stage_spec(stage, token) for stage in planned)
    parameters["fusion"].list.func.extend([_fusion_spec(fusion)] if fusion else [])


def _fusion_spec(fusion: FusionPlan) -> attr_value_pb2.NameAttrList:
    """A fusion as the pass reads it, and what only Python does."""
    spec = attr_value_pb2.NameAttrList(name="fusion")
    for name in _NODES:
        spec.attr[name].s = getattr(fusion, name)
    for name in _NAMES:
        spec.attr[name].CopyFrom(texts(getattr(fusion, name)))
    spec.attr["groups"].list.func.extend(_group_spec(group) for group in fusion.groups)
    spec.attr["described"].s = fusion.to_json().encode()
    return spec


def _group_spec(group: Group) -> attr_value_pb2.NameAttrList:
    spec = attr_value_pb2.NameAttrList(name=group.op)
    spec.attr["members"].CopyFrom(texts(group.members))
    return spec


def remove(config: Any) -> None:
    """Takes the plans, if there are any, out of a ConfigProto, in place."""
    optimizers = config.graph_options.rewrite_options.custom_optimizers
    for i in reversed(range(len(optimizers))):
        if optimizers[i].name == _NAME:
            del optimizers[i]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Applied:
    """Plans in a config.

    Attributes:
      plan: the stages; None where there are none.
      fusion: of lookups; None where none is fused.
      token: tells the buffers of this config from those of any other.
    """

    plan: StagePlan | None
    fusion: FusionPlan | None
    token: str


def applied_in(config: Any) -> Applied | None:
    """The plans in a ConfigProto, None without any."""
    if config is None:
        return None
    for entry in config.graph_options.rewrite_options.custom_optimizers:
        if entry.name == _NAME:
            parameters = entry.parameter_map
            text = parameters["plan"].s.decode()
            fusions = parameters["fusion"].list.func
            return Applied(
                plan=StagePlan.from_json(text) if text else None,
                fusion=_fusion_of(fusions[0].attr) if fusions else None,
                token=parameters["token"].s.decode(),
            )
    return None


def _fusion_of(attributes: Any) -> FusionPlan:
    names = {name: _texts_of(attributes[name]) for name in _NAMES}
    groups = (
        Group(op=each.name, members=_texts_of(each.attr["members"]))
        for each in attributes["groups"].list.func
    )
    return FusionPlan.from_json(
        attributes["described"].s.decode(),
        groups=tuple(groups),
        **{name: attributes[name].s for name in _NODES},
        **names,
    )


def _texts_of(attribute: Any) -> tuple[str, ...]:
    return tuple(text.decode() for text in attribute.list.s)


def require_graph(plan: StagePlan, graph: Any, fusion: FusionPlan | None = None) -> None:
    """Requires that `graph` is the one that the plan was made for, once its lookups are fused.

    Raises:
      PlanError: it is another, or lacks a node of the plan.
    """
    if fusion is None:
        plan.require_graph(_fingerprint(plan, graph))
        return
    try:
        plan.require_graph(_fingerprint(plan, fused_definition(graph.as_graph_def(), fusion)))
    except PlanError as error:
        if plan.fingerprint != _fingerprint(plan, graph):
            raise
        raise PlanError(
            "this plan was made for the graph before its parts were fused; find its boundary with "
            "wb.find_boundary(graph, targets, fusion=the plan of wb.plan_fusion)"
        ) from error


def _fingerprint(plan: StagePlan, graph: Any) -> str:
    """What the plan knows a graph by."""
    view = graph_view(graph)
    return view.fingerprint(view.ancestors(view.mask(view.number(name) for name in plan.roots)))


def runners_with(applied: Applied, own: Sequence[PrefetchRunner]) -> list[PrefetchRunner]:
    """The stages to run in a session: the user's own, widened where the plan says so, and new ones.

    Args:
      applied: the plan and its token.
      own: the stages that the user built.
    """
    stages = list(own)
    for stage in applied.plan.stages if applied.plan else ():
        puts = {each.put for each in stage.widens}
        if not puts:
            stages.append(
                runner_in(buffer_scope(stage.name), stage.name, stage.options, update_names(stage))
            )
            continue
        for i, runner in enumerate(stages):
            if puts & set(runner.puts):
                stages[i] = _with_threads(runner, stage.options.num_threads)
    return stages


def _with_threads(runner: PrefetchRunner, count: int) -> PrefetchRunner:
    different = tuple(dict.fromkeys(runner.puts))
    if len(different) > 1:
        return runner
    options = dataclasses.replace(runner.options, num_threads=count)
    return dataclasses.replace(runner, puts=different * count, options=options)

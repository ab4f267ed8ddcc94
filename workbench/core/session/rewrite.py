"""Plans + a session's config → a config whose sessions run rewritten graphs.

A FusionPlan and a StagePlan may be in one config: lookups are fused first, and the stages are made
for the fused graph. Plans travel as named parameters of the config, also to a server. There a graph
pass of the native library applies them to the session's own copy of the graph; the user's graph
stays as it is.

requires: the plan fits the graph (fingerprint; the pass checks every node that it touches).
ensures: every fetch and feed by name means what it meant; each run that needs the input takes
exactly one item; what the plan does not name is untouched.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2

from workbench import _native
from workbench.core.lookup_fusion.fusion_plan import FusionPlan, fused_definition
from workbench.core.planning.stage_plan import PlannedStage, StagePlan
from workbench.core.session.prefetch_runner import PrefetchRunner, build_runner, runner_in
from workbench.core.staging.buffer import Buffer
from workbench.core.staging.buffer_scope import buffer_scope
from workbench.core.tf_graph.import_graph import graph_view
from workbench.errors import OptionError, PlanError

v1 = tf.compat.v1
# In native/rewriting/plan/stage_plan.cc.
_NAME, _FORMAT = "WorkbenchStagePlan", 2
_LIST = attr_value_pb2.AttrValue.ListValue


def apply(plan: StagePlan | FusionPlan, config: Any = None, *, graph: Any = None) -> Any:
    """Puts a plan into a ConfigProto; sessions made with it run the rewritten graph.

    An earlier plan of the kind in it is replaced. A plan without stages or lookups leaves the graph
    as it is. Where lookups are fused and stages run ahead, the FusionPlan is applied first, and the
    StagePlan made for the graph as it leaves it: `find_boundary(graph, …, fusion=plan)`.

    Args:
      plan: what to apply.
      config: a ConfigProto, changed in place; None makes one.
      graph: the graph that sessions will run; given, the plan is checked against it here. The hook
        that starts the stages checks it in any case.

    Returns:
      The config.

    Raises:
      PlanError: the plan was made for another graph; or it fuses lookups of a graph for which the
        config has stages already.
      OptionError: `config` is no ConfigProto.
    """
    if config is None:
        config = v1.ConfigProto()
    if not hasattr(getattr(config, "graph_options", None), "rewrite_options"):
        raise OptionError(
            f"config is {config!r} of type {type(config).__name__}; expected a ConfigProto"
        )
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
        fusion = plan
    else:
        if graph is not None:
            require_graph(plan, graph, fusion)
        stages = plan
    remove(config)
    _put_in(config, stages, fusion)
    return config


def _put_in(config: Any, stages: StagePlan | None, fusion: FusionPlan | None) -> None:
    if not (stages and stages.stages) and not (fusion and fusion.lookups):
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
    parameters["stages"].list.func.extend(_spec(stage, token) for stage in planned)
    parameters["fusion"].list.func.extend([_fusion_spec(fusion)] if fusion else [])


def _fusion_spec(fusion: FusionPlan) -> attr_value_pb2.NameAttrList:
    """A fusion as the pass reads it, and what only Python does."""
    spec = attr_value_pb2.NameAttrList(name="fusion")
    spec.attr["added"].s = fusion.added
    spec.attr["replaced"].s = fusion.replaced
    spec.attr["replaced_ops"].CopyFrom(_texts(fusion.replaced_ops))
    spec.attr["described"].s = fusion.described().encode()
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
    return FusionPlan.of(
        attributes["described"].s.decode(),
        added=attributes["added"].s,
        replaced=attributes["replaced"].s,
        replaced_ops=tuple(text.decode() for text in attributes["replaced_ops"].list.s),
    )


def require_graph(plan: StagePlan, graph: Any, fusion: FusionPlan | None = None) -> None:
    """Requires that `graph` is the one that the plan was made for, once its lookups are fused.

    Raises:
      PlanError: it is another, or lacks a node of the plan.
    """
    view = graph_view(fused_definition(graph.as_graph_def(), fusion) if fusion else graph)
    roots = view.mask(view.number(name) for name in plan.roots)
    plan.require_graph(view.fingerprint(view.ancestors(roots)))


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
            stages.append(runner_in(buffer_scope(stage.name), stage.name, stage.options))
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


def _spec(stage: PlannedStage, token: str) -> attr_value_pb2.NameAttrList:
    """One stage as the pass reads it."""
    nodes, take, copies = _widened(stage) if stage.widens else _added(stage, token)
    spec = attr_value_pb2.NameAttrList(name=stage.name)
    spec.attr["moved"].CopyFrom(_texts(stage.moved))
    spec.attr["moved_ops"].CopyFrom(_texts(stage.moved_ops))
    spec.attr["carried"].CopyFrom(_texts(stage.carried))
    spec.attr["take"].s = take.encode()
    spec.attr["device"].s = stage.device.encode()
    spec.attr["nodes"].s = nodes.SerializeToString()
    spec.attr["copies"].list.func.extend(copies)
    return spec


def _added(
    stage: PlannedStage, token: str
) -> tuple[graph_pb2.GraphDef, str, list[attr_value_pb2.NameAttrList]]:
    """The ops of a new buffer, which `runner_in` finds by their names."""
    at = Buffer(
        shared_name=f"{token}/{stage.name}", capacity=stage.options.capacity, stage=stage.name
    )
    with tf.Graph().as_default() as scratch, tf.device(stage.buffer_device):
        stand_ins = _stand_ins(stage, stage.name, {})
        on_host = sum(
            len(kinds)
            for node, kinds in zip(stage.carried, stage.dtypes, strict=True)
            if node in stage.host
        )
        tensors = [tensor for tensor, _ in stand_ins]
        record, host = tensors[: len(tensors) - on_host], tensors[len(tensors) - on_host :]
        with v1.name_scope(f"{buffer_scope(stage.name)}/"):
            taken = at.take(
                [tensor.dtype for tensor in record],
                [tensor.dtype for tensor in host],
                shapes=[tensor.shape for tensor in record],
                host_shapes=[tensor.shape for tensor in host],
                name="take",
            )
            with scratch.colocate_with(taken[0].op):
                build_runner(
                    at, [record], (), stage.options, [host], reserve=bool(stage.stale_lookups)
                )
    return (
        _nodes(scratch, stand_ins),
        f"{buffer_scope(stage.name)}/take",
        [_copy(stage.name, [], [])],
    )


def _widened(
    stage: PlannedStage,
) -> tuple[graph_pb2.GraphDef, str, list[attr_value_pb2.NameAttrList]]:
    """The user's puts and a take of their own buffer, for the longer record."""
    container, _, shared_name = stage.own_buffer.partition("/")
    at = Buffer(
        shared_name=shared_name,
        container=container,
        capacity=stage.options.capacity,
        stage=stage.own_name,
    )
    options = stage.options
    nodes = graph_pb2.GraphDef()
    copies = []
    take = f"{buffer_scope(stage.name)}/take"
    own_take = stage.start[0]
    for i, put in enumerate(stage.widens):
        prefix = stage.name if len(stage.widens) == 1 else f"{stage.name}_{i}"
        given = {f"{own_take}:{place}": name for place, name in enumerate(put.record)}
        copies.append(_copy(prefix, list(given), list(given.values())))
        with tf.Graph().as_default() as scratch, tf.device(stage.buffer_device):
            record = _stand_ins(stage, prefix, given)
            owner = v1.placeholder(tf.int64, [2])
            at.put(
                owner,
                [tensor for tensor, _ in record],
                timeout_millis=options.timeout_millis,
                stream_id=options.stage_subgraph_stream_id,
                name="put",
            )
            if i == 0:
                at.take(
                    [tensor.dtype for tensor, _ in record],
                    shapes=[tensor.shape for tensor, _ in record],
                    name="take",
                )
        definition = _nodes(scratch, [*record, (owner, put.owner)])
        renamed = {"put": put.put, "take": take}
        for node in definition.node:
            node.name = renamed[node.name]
        nodes.node.extend(definition.node)
    return nodes, take, copies


def _stand_ins(
    stage: PlannedStage, prefix: str, given: dict[str, str]
) -> list[tuple[tf.Tensor, str]]:
    """A placeholder for each tensor of the record, and the name of what it stands for."""
    record = []
    for node, kinds, shapes in zip(stage.carried, stage.dtypes, stage.shapes, strict=True):
        for output, (kind, shape) in enumerate(zip(kinds, shapes, strict=True)):
            name = given.get(f"{node}:{output}", f"{prefix}/{node}:{output}")
            sizes = None if shape is None else [None if size < 0 else size for size in shape]
            record.append((v1.placeholder(tf.dtypes.as_dtype(kind), sizes), name))
    return record


def _nodes(graph: tf.Graph, stood_in: Sequence[tuple[tf.Tensor, str]]) -> graph_pb2.GraphDef:
    """The nodes of a graph, with the names of the real tensors in place of the placeholders'."""
    real = {tensor.op.name: name for tensor, name in stood_in}
    definition = graph_pb2.GraphDef(versions=graph.as_graph_def().versions)
    for node in graph.as_graph_def().node:
        if node.name in real:
            continue
        copy: node_def_pb2.NodeDef = definition.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(real.get(text, text) for text in node.input)
    return definition


def _copy(prefix: str, replaced: list[str], by: list[str]) -> attr_value_pb2.NameAttrList:
    copy = attr_value_pb2.NameAttrList(name=prefix)
    copy.attr["from"].CopyFrom(_texts(replaced))
    copy.attr["to"].CopyFrom(_texts(by))
    return copy


def _texts(values: Sequence[str]) -> attr_value_pb2.AttrValue:
    return attr_value_pb2.AttrValue(list=_LIST(s=[value.encode() for value in values]))

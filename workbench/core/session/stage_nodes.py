"""A planned stage → what the graph pass adds for it: a buffer's nodes, and what they replace.

The nodes are built by the ops' own Python in a graph beside, on placeholders for the tensors of the
record, so that nothing of an op is written twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2

from workbench.core.graph.graph_view import Shape
from workbench.core.planning.stage_plan import PlannedStage
from workbench.core.planning.trailing_updates import TrailingUpdates
from workbench.core.session.prefetch_runner import PrefetchRunner, build_runner
from workbench.core.staging.buffer import Buffer
from workbench.core.staging.buffer_scope import buffer_scope

v1 = tf.compat.v1
_LIST = attr_value_pb2.AttrValue.ListValue


def stage_spec(stage: PlannedStage, token: str) -> attr_value_pb2.NameAttrList:
    """One stage as the pass reads it.

    Args:
      stage: what is planned.
      token: tells the buffers of one config from those of any other.
    """
    nodes, take, copies = _widened(stage) if stage.widens else _added(stage, token)
    spec = attr_value_pb2.NameAttrList(name=stage.name)
    spec.attr["moved"].CopyFrom(texts(stage.moved))
    spec.attr["moved_ops"].CopyFrom(texts(stage.moved_ops))
    spec.attr["carried"].CopyFrom(texts(stage.carried))
    spec.attr["take"].s = take.encode()
    spec.attr["device"].s = stage.device.encode()
    spec.attr["nodes"].s = nodes.SerializeToString()
    spec.attr["copies"].list.func.extend(copies)
    trail = [_trail(stage.name, stage.trailing)] if stage.trailing else []
    spec.attr["trail"].list.func.extend(trail)
    return spec


def update_names(stage: PlannedStage) -> tuple[str, ...]:
    """The ops that do the stage's trailing updates, in the session's graph."""
    updates = stage.trailing.updates if stage.trailing else ()
    return tuple(f"{_updates_scope(stage.name)}/{name}" for name in updates)


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
                returns=stage.trailing is not None,
                name="take",
            )
            with scratch.colocate_with(taken[0].op):
                # Runs whose updates trail have a room each.
                reserve = bool(stage.stale_lookups) and stage.trailing is None
                runner = build_runner(at, [record], (), stage.options, [host], reserve=reserve)
                if stage.trailing:
                    stand_ins += _trailing_ops(at, stage.trailing, runner)
    return (
        _nodes(scratch, stand_ins),
        f"{buffer_scope(stage.name)}/take",
        [_copy(stage.name, [], [])],
    )


def _trailing_ops(
    at: Buffer, trailing: TrailingUpdates, runner: PrefetchRunner
) -> list[tuple[tf.Tensor, str]]:
    """Adds what begins a run, returns to it, awaits that, and waits for it to be applied.

    Returns:
      A placeholder for each tensor that is returned, and the name of what it stands for.
    """
    graph = v1.get_default_graph()
    owner = graph.get_tensor_by_name(runner.owner)
    at.begin(owner, name="begin")
    kinds = [tf.dtypes.as_dtype(kind) for kind in trailing.dtypes]
    shapes = [_tensor_shape(shape) for shape in trailing.shapes]
    # Behind the put: what is returned must not come into one message with what the put needs.
    with tf.control_dependencies([graph.get_operation_by_name(runner.puts[0])]):
        at.await_returned(owner, kinds, shapes=shapes, name="await")
    values = [v1.placeholder(*each) for each in zip(kinds, shapes, strict=True)]
    waited = [v1.placeholder(tf.bool, []) for _ in trailing.waits]
    with tf.control_dependencies([each.op for each in waited]):
        at.return_taken(values, name="return")
    at.settle(name="settle")
    return [
        *zip(values, trailing.returned, strict=True),
        *zip(waited, trailing.waits, strict=True),
    ]


def _trail(name: str, trailing: TrailingUpdates) -> attr_value_pb2.NameAttrList:
    """The updates of a stage as the pass reads them."""
    scope = buffer_scope(name)
    awaited = [f"{scope}/await:{i}" for i in range(len(trailing.returned))]
    spec = _copy(_updates_scope(name), list(trailing.returned), awaited)
    for key in ("updates", "moved", "moved_ops", "waits", "variables"):
        spec.attr[key].CopyFrom(texts(getattr(trailing, key)))
    for key in ("begin", "await", "return", "settle"):
        spec.attr[key].s = f"{scope}/{key}".encode()
    return spec


def _updates_scope(name: str) -> str:
    return f"{name}_updates"


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
            record.append((v1.placeholder(tf.dtypes.as_dtype(kind), _tensor_shape(shape)), name))
    return record


def _tensor_shape(shape: Shape) -> tf.TensorShape:
    """A static shape of a plan."""
    return tf.TensorShape(None if shape is None else [None if size < 0 else size for size in shape])


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
        # "^node" waits for it.
        copy.input.extend(
            f"^{real[text[1:]]}" if text[1:] in real else real.get(text, text)
            for text in node.input
        )
    return definition


def _copy(prefix: str, replaced: list[str], by: list[str]) -> attr_value_pb2.NameAttrList:
    copy = attr_value_pb2.NameAttrList(name=prefix)
    copy.attr["from"].CopyFrom(texts(replaced))
    copy.attr["to"].CopyFrom(texts(by))
    return copy


def texts(values: Sequence[str]) -> attr_value_pb2.AttrValue:
    """Texts as an attribute has them."""
    return attr_value_pb2.AttrValue(list=_LIST(s=[value.encode() for value in values]))

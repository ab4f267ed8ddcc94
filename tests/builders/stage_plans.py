"""Stage plans built by hand, sessions that run them, and the graphs that they are for."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2
from tensorflow.core.protobuf import config_pb2

import workbench as wb
from workbench.core.session.prefetch_runner import PrefetchRunner, build_runner
from workbench.core.staging import buffer
from workbench.core.staging.buffer import Buffer

v1 = tf.compat.v1
# All of one length, so that hypothesis may damage the same byte of a plan again.
_NUMBERS = itertools.count(1_000_000)


def attr(value: Any) -> attr_value_pb2.AttrValue:
    """An int, str, bytes, or a list of strings or functions as an attribute."""
    if isinstance(value, int):
        return attr_value_pb2.AttrValue(i=value)
    if isinstance(value, str | bytes):
        return attr_value_pb2.AttrValue(s=value.encode() if isinstance(value, str) else value)
    if value and isinstance(value[0], attr_value_pb2.NameAttrList):
        return attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(func=value))
    strings = [text.encode() for text in value]
    return attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(s=strings))


def function(name: str, parameters: Mapping[str, Any]) -> attr_value_pb2.NameAttrList:
    return attr_value_pb2.NameAttrList(
        name=name, attr={key: attr(value) for key, value in parameters.items()}
    )


def copy_set(prefix: str, substitutes: Mapping[str, str] | None = None) -> Any:
    pairs = substitutes or {}
    return function(prefix, {"from": list(pairs), "to": list(pairs.values())})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A planned stage: its parameters, to be changed by a test, and the runner of its puts."""

    name: str
    parameters: dict[str, Any]
    runner: PrefetchRunner

    def but(self, **changes: Any) -> Stage:
        return dataclasses.replace(self, parameters={**self.parameters, **changes})

    def without(self, key: str) -> Stage:
        kept = {name: value for name, value in self.parameters.items() if name != key}
        return dataclasses.replace(self, parameters=kept)


def plan_stage(
    graph: tf.Graph,
    moved: Sequence[str],
    carried: Sequence[str],
    *,
    name: str = "auto",
    options: wb.StageOptions | None = None,
    device: str = "",
) -> Stage:
    """Plans a stage with one copy of the moved nodes, "<name>/ahead/…", for all threads."""
    options = options or wb.StageOptions()
    outputs = [tensor for node in carried for tensor in graph.get_operation_by_name(node).outputs]
    at = Buffer(
        shared_name=f"{name}{next(_NUMBERS)}", capacity=options.capacity, stage=name, container=""
    )
    with tf.Graph().as_default() as scratch, v1.name_scope(name):
        stand_ins = [v1.placeholder(tensor.dtype, name="stand_in") for tensor in outputs]
        at.take([t.dtype for t in outputs], shapes=[t.shape for t in outputs], name="take")
        runner = build_runner(at, [stand_ins], (), options)
    real = {
        stand_in.name.removesuffix(":0"): f"{name}/ahead/{tensor.name}"
        for stand_in, tensor in zip(stand_ins, outputs, strict=True)
    }
    nodes = graph_pb2.GraphDef()
    for node in scratch.as_graph_def().node:
        if node.name not in real:
            node.input[:] = [real.get(source, source) for source in node.input]
            nodes.node.append(node)
    return Stage(
        name=name,
        runner=runner,
        parameters={
            "moved": list(moved),
            "moved_ops": [graph.get_operation_by_name(node).type for node in moved],
            "carried": list(carried),
            "take": f"{name}/take",
            "copies": [copy_set(f"{name}/ahead")],
            "nodes": nodes.SerializeToString(),
            "device": device,
            "trail": [],
        },
    )


def config_of(*stages: Stage, **parameters: Any) -> config_pb2.ConfigProto:
    """A session's config that carries these stages; a step that hangs fails."""
    config = config_pb2.ConfigProto(operation_timeout_in_ms=30_000)
    optimizer = config.graph_options.rewrite_options.custom_optimizers.add()
    optimizer.name = "WorkbenchStagePlan"
    given = {
        "format": 3,
        "fusion": [],
        "stages": [function(s.name, s.parameters) for s in stages],
        **parameters,
    }
    for key, value in given.items():
        if value is not None:
            optimizer.parameter_map[key].CopyFrom(attr(value))
    return config


def call(
    session: Any, feeds: Mapping[str, Any], fetch: Sequence[str] = (), target: str = ""
) -> Any:
    """Runs nodes by name through a callable: the client's graph lacks what the pass added."""
    spec = config_pb2.CallableOptions(
        feed=list(feeds), fetch=fetch, target=[target] if target else []
    )
    run = session._make_callable_from_options(spec)
    return run(*[np.asarray(value) for value in feeds.values()])


@contextlib.contextmanager
def producing(session: Any, *stages: Stage) -> Iterator[None]:
    """Runs the stages' puts, as a prefetch runner does, until the input or the block ends."""
    owner = [7, -1]
    threads = []

    def cancel(runner: PrefetchRunner, code: int, message: str) -> None:
        values = {runner.owner: owner, runner.cancel_code: np.int32(code)}
        call(session, {**values, runner.message: message}, target=runner.cancel)

    def produce(runner: PrefetchRunner, number: int) -> None:
        mine = [owner[0], number]
        try:
            spec = config_pb2.CallableOptions(feed=[runner.owner], target=[runner.puts[number]])
            put = session._make_callable_from_options(spec)
            while True:
                try:
                    put(np.asarray(mine))
                except tf.errors.OutOfRangeError:
                    ended = {runner.owner: mine, runner.rest_reason: np.int32(buffer.ENDED)}
                    call(session, {**ended, runner.message: ""}, target=runner.rest)
        except tf.errors.OpError as error:
            cancel(runner, error.error_code, error.message)

    for stage in stages:
        call(session, {stage.runner.owner: [7, len(stage.runner.puts)]}, target=stage.runner.resume)
        for number in range(len(stage.runner.puts)):
            threads.append(threading.Thread(target=produce, args=(stage.runner, number)))
            threads[-1].start()
    try:
        yield
    finally:
        for stage in stages:
            cancel(stage.runner, tf.errors.CANCELLED, "the test has ended")
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()


@contextlib.contextmanager
def rewritten(*stages: Stage, target: str = "") -> Iterator[Any]:
    """A session of the default graph with these stages running."""
    with v1.Session(target, config=config_of(*stages)) as session:
        session.run(v1.global_variables_initializer())
        with producing(session, *stages):
            yield session


@contextlib.contextmanager
def plain(target: str = "") -> Iterator[Any]:
    """The same without a plan."""
    with v1.Session(target) as session:
        session.run(v1.global_variables_initializer())
        yield session


def devices(session: Any, fetch: str) -> dict[str, str]:
    """Device of every node that runs for `fetch`, which may be the pass's own."""
    options = config_pb2.RunOptions(output_partition_graphs=True)
    spec = config_pb2.CallableOptions(fetch=[fetch], run_options=options)
    metadata = v1.RunMetadata()
    session._make_callable_from_options(spec)(run_metadata=metadata)
    return {node.name: node.device for part in metadata.partition_graphs for node in part.node}


def numbers(count: int = 1 << 40, name: str = "batch") -> tf.Tensor:
    """0, 1, 2, …, one a run."""
    return v1.data.make_one_shot_iterator(tf.data.Dataset.range(count)).get_next(name=name)


def build_model(count: int = 1 << 40) -> None:
    """batch -> parse -> dense, bucket | -> scaled -> loss, train; all by these names."""
    v1.set_random_seed(1)
    dataset = tf.data.Dataset.range(count).map(
        lambda i: (i, tf.strings.join([tf.strings.as_string(i), ",2.5"]))
    )
    index, text = v1.data.make_one_shot_iterator(dataset).get_next(name="batch")
    columns = tf.io.decode_csv(text, [[0.0], [0.0]], name="parse")
    dense = tf.stack(columns, name="dense")
    bucket = tf.strings.to_hash_bucket_fast(text, 8, name="bucket")
    scaled = tf.multiply(dense, 0.5, name="scaled")
    table = v1.get_variable("table", [8, 2], initializer=v1.random_normal_initializer(seed=3))
    row = tf.gather(table, bucket, name="row")
    loss = tf.reduce_sum(tf.square(row * scaled - tf.cast(index, tf.float32)), name="loss")
    v1.train.GradientDescentOptimizer(1e-4).minimize(loss, name="train")


def model_stage(graph: tf.Graph, **kwargs: Any) -> Stage:
    return plan_stage(
        graph, ["batch", "parse", "dense", "bucket"], ["batch", "dense", "bucket"], **kwargs
    )


def same(one: Any, other: Any) -> None:
    for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
        np.testing.assert_array_equal(a, b)


def with_nodes(stage: Stage, edit: Callable[[Any], Any]) -> Stage:
    """The stage with its own nodes edited in place."""
    nodes = graph_pb2.GraphDef.FromString(stage.parameters["nodes"])
    edit(nodes.node)
    return stage.but(nodes=nodes.SerializeToString())


def error_of(config: config_pb2.ConfigProto, fetch: str = "batch:0") -> str:
    """What session.run says, without the user's stack that TensorFlow adds."""
    with v1.Session(config=config) as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(fetch)
        # A session that was refused once is refused again, and does not run the graph as it was.
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(fetch)
    return str(caught.value)


def build_chains(length: int) -> Stage:
    """Two chains of `length` nodes after a source, of which the first moves."""
    with tf.Graph().as_default() as head:
        tf.cast(numbers(), tf.float32, name="first")
        definition = head.as_graph_def()
    for prefix, start in (("moved", "first"), ("kept", f"moved/{length - 1}")):
        for i in range(length):
            node = definition.node.add(name=f"{prefix}/{i}", op="AddV2")
            node.attr["T"].type = tf.float32.as_datatype_enum
            node.input.extend([f"{prefix}/{i - 1}" if i else start, "first"])
    tf.import_graph_def(definition, name="")
    moved = ["batch", "first", *(f"moved/{i}" for i in range(length))]
    return plan_stage(v1.get_default_graph(), moved, ["batch", "first", f"moved/{length - 1}"])

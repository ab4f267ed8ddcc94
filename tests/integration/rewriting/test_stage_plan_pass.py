"""The graph pass that applies a stage plan: same values, names that still work, clear errors."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import os
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies
from tensorflow.core.framework import attr_value_pb2, function_pb2, graph_pb2, tensor_shape_pb2
from tensorflow.core.protobuf import config_pb2

import workbench as wb
from workbench import _native
from workbench.core.session.prefetch_runner import PrefetchRunner, build_runner
from workbench.core.session.runner_registry import runners
from workbench.core.session.stage_run import StageRun
from workbench.core.session.staged import prefetch_join
from workbench.core.staging import buffer
from workbench.core.staging.buffer import Buffer

v1 = tf.compat.v1
# All of one length, so that hypothesis may damage the same byte of a plan again.
_NUMBERS = itertools.count(1_000_000)

# --- plans, built by hand -------------------------------------------------------------------------


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
        },
    )


def config_of(*stages: Stage, **parameters: Any) -> config_pb2.ConfigProto:
    """A session's config that carries these stages; a step that hangs fails."""
    config = config_pb2.ConfigProto(operation_timeout_in_ms=30_000)
    optimizer = config.graph_options.rewrite_options.custom_optimizers.add()
    optimizer.name = "WorkbenchStagePlan"
    given = {"format": 1, "stages": [function(s.name, s.parameters) for s in stages], **parameters}
    for key, value in given.items():
        if value is not None:
            optimizer.parameter_map[key].CopyFrom(attr(value))
    return config


# --- running them ---------------------------------------------------------------------------------


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


# --- the user's graphs ----------------------------------------------------------------------------


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


def second_stage(graph: tf.Graph, **kwargs: Any) -> Stage:
    """A stage after that of `model_stage`, on the same source; `dense` crosses no more."""
    return plan_stage(
        graph,
        ["batch", "dense", "bucket", "scaled"],
        ["batch", "bucket", "scaled"],
        name="second",
        **kwargs,
    )


EVERY_NODE = ("batch:0", "batch:1", "parse:0", "parse:1", "dense:0", "bucket:0", "scaled:0")


@pytest.fixture(params=["direct", "server"])
def target(request: pytest.FixtureRequest) -> str:
    """Of a direct session, and of one on a server in this process."""
    return "" if request.param == "direct" else v1.train.Server.create_local_server().target


@pytest.fixture(autouse=True)
def library():
    return _native.library()


def same(one: Any, other: Any) -> None:
    for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
        np.testing.assert_array_equal(a, b)


class TestSteps:
    @pytest.mark.parametrize("capacity", [1, 3])
    def test_every_step_has_the_values_it_had(self, graph, target, capacity):
        build_model()
        fetches = ["loss:0", "row:0", *EVERY_NODE, "train"]
        with plain() as session:
            expected = [session.run(fetches) for _ in range(8)]
        stage = model_stage(graph, options=wb.StageOptions(capacity=capacity))
        with rewritten(stage, target=target) as session:
            same([session.run(fetches) for _ in range(8)], expected)

    def test_every_node_fetched_alone_consumes_one_item(self, graph, target):
        build_model()
        fetches = [*EVERY_NODE, "row:0", "loss:0", *EVERY_NODE]
        with plain() as session:
            expected = [session.run(fetch) for fetch in fetches]
        with rewritten(model_stage(graph), target=target) as session:
            same([session.run(fetch) for fetch in fetches], expected)

    def test_a_target_alone_consumes_one_item(self, graph):
        build_model()
        with rewritten(model_stage(graph)) as session:
            for node in ("batch", "parse", "dense", "train"):
                session.run(graph.get_operation_by_name(node))
            assert session.run("batch:0") == 4

    @pytest.mark.parametrize(
        ("fed", "value"), [("batch:0", 40), ("dense:0", [4.0, 5.0]), ("bucket:0", 3)]
    )
    def test_what_is_fed_is_what_is_computed_with(self, graph, target, fed, value):
        build_model()
        fetches = ["loss:0", *EVERY_NODE]
        with plain() as session:
            expected = [session.run(fetches, {fed: value}), session.run("loss:0")]
        with rewritten(model_stage(graph), target=target) as session:
            same([session.run(fetches, {fed: value}), session.run("loss:0")], expected)

    def test_a_feed_does_not_reach_what_was_made_ahead_of_it(self, graph):
        build_model()
        with rewritten(model_stage(graph)) as session:
            parsed, dense = session.run(["parse:0", "dense:0"], {"batch:1": "7,8"})
        assert parsed == 7
        assert dense[0] == 0

    def test_a_step_that_is_fed_its_whole_batch_consumes_none(self, graph):
        build_model()
        feeds = {"batch:0": 1, "batch:1": "7,8"}
        with rewritten(model_stage(graph)) as session:
            session.run("loss:0", {**feeds, "dense:0": [1.0, 2.0], "bucket:0": 1})
            assert session.run("batch:0") == 0

    def test_partial_runs_may_feed_and_fetch_what_is_carried(self, graph):
        build_model()
        dense, bucket, row = (
            graph.get_tensor_by_name(f"{n}:0") for n in ("dense", "bucket", "row")
        )
        with rewritten(model_stage(graph)) as session:
            handle = session.partial_run_setup([dense, row], [bucket])
            np.testing.assert_array_equal(session.partial_run(handle, dense), [0, 2.5])
            session.partial_run(handle, row, {bucket: 3})

    def test_the_end_of_the_input_comes_after_its_last_item(self, graph, target):
        build_model(count=5)
        with rewritten(model_stage(graph, options=wb.StageOptions(capacity=2)), target=target) as s:
            assert [int(s.run("batch:0")) for _ in range(5)] == list(range(5))
            with pytest.raises(tf.errors.OutOfRangeError, match="stage 'auto' has ended"):
                s.run("loss:0")

    def test_several_threads_deliver_each_item_once(self, graph, target):
        build_model(count=60)
        stage = model_stage(graph, options=wb.StageOptions(capacity=4, num_threads=3))
        with rewritten(stage, target=target) as session:
            rows = [session.run(["batch:0", "dense:0"]) for _ in range(60)]
        assert sorted(int(index) for index, _ in rows) == list(range(60))
        assert all(dense[0] == index for index, dense in rows)

    def test_copies_may_be_put_on_a_device_of_their_own(self, graph):
        config = config_pb2.ConfigProto(device_count={"CPU": 2})
        build_model()
        stage = model_stage(graph, device="/device:CPU:1")
        config.MergeFrom(config_of(stage))
        with v1.Session(config=config) as session, producing(session, stage):
            session.run(v1.global_variables_initializer())
            assert devices(session, "dense:0")["dense"].endswith("CPU:0")
            copies = devices(session, "auto/ahead/dense:0")
        assert copies["auto/ahead/dense"].endswith("CPU:1")

    def test_with_it_they_are_colocated_with_nothing(self, graph):
        config = config_pb2.ConfigProto(device_count={"CPU": 2})
        batch = numbers()
        with tf.device("/device:CPU:0"):
            fixed = tf.constant(2, tf.int64, name="fixed")
        with graph.colocate_with(fixed.op):
            tf.multiply(batch, 3, name="double")
        stage = plan_stage(graph, ["batch", "double"], ["batch", "double"], device="/device:CPU:1")
        config.MergeFrom(config_of(stage))
        with v1.Session(config=config) as session, producing(session, stage):
            assert session.run("double:0") == 0
            copies = devices(session, "auto/ahead/double:0")
        assert copies["auto/ahead/double"].endswith("CPU:1")


class TestExtension:
    def test_each_extension_is_rewritten_afresh(self, graph, target):
        build_model()
        with rewritten(model_stage(graph), target=target) as session:
            assert session.run("batch:0") == 0
            for number in (1, 2, 3):
                # The user's names are free to be built upon: moved, carried, and after the stage.
                added = [tf.identity(graph.get_tensor_by_name(name)) for name in EVERY_NODE]
                values = session.run([*added, *EVERY_NODE])
                same(values[: len(EVERY_NODE)], values[len(EVERY_NODE) :])
                assert values[0] == number

    def test_a_session_without_the_graph_yet_is_left_alone(self, graph):
        with tf.Graph().as_default() as later:
            build_model()
            stage = model_stage(later)
        early = tf.constant(5, name="early") + 1
        with v1.Session(config=config_of(stage)) as session:
            assert session.run(early) == 6
            build_model()
            session.run(v1.global_variables_initializer())
            with producing(session, stage):
                assert [int(session.run("batch:0")) for _ in range(3)] == [0, 1, 2]

    def test_half_a_graph_is_an_error_until_the_rest_is_there(self, graph):
        with tf.Graph().as_default() as whole:
            batch = numbers()
            tf.multiply(batch, 2, name="double")
            stage = plan_stage(whole, ["batch", "double"], ["batch", "double"])
        batch = numbers()
        with v1.Session(config=config_of(stage)) as session:
            with pytest.raises(tf.errors.InvalidArgumentError, match="'double' is not in the sess"):
                session.run(batch)
            double = tf.multiply(batch, 2, name="double")
            with producing(session, stage):
                assert [int(session.run(double)) for _ in range(3)] == [0, 2, 4]

    def test_a_session_without_a_plan_is_left_alone(self, graph):
        build_model()
        with plain() as session:
            assert "batch" in devices(session, "dense:0")
            with pytest.raises(tf.errors.InvalidArgumentError, match="auto/take:0.* not found"):
                call(session, {}, fetch=["auto/take:0"])


class TestTwoStages:
    def test_a_stage_on_the_source_of_another_takes_from_it(self, graph, target):
        build_model()
        fetches = ["loss:0", "row:0", *EVERY_NODE, "train"]
        with plain() as session:
            expected = [session.run(fetches) for _ in range(8)]
        stages = (model_stage(graph), second_stage(graph))
        with rewritten(*stages, target=target) as session:
            same([session.run(fetches) for _ in range(8)], expected)

    def test_every_node_fetched_alone_consumes_one_item_of_the_last_stage(self, graph):
        build_model()
        # What the first stage alone carries, `dense`, must not go on taking from its buffer.
        fetches = [*EVERY_NODE, "loss:0"] * 2
        with plain() as session:
            expected = [session.run(fetch) for fetch in fetches]
        with rewritten(model_stage(graph), second_stage(graph)) as session:
            same([session.run(fetch) for fetch in fetches], expected)

    def test_the_end_passes_through_both(self, graph):
        build_model(count=4)
        with rewritten(model_stage(graph), second_stage(graph)) as session:
            assert [int(session.run("batch:0")) for _ in range(4)] == [0, 1, 2, 3]
            with pytest.raises(tf.errors.OutOfRangeError, match="stage 'second' has ended"):
                session.run("batch:0")

    def test_two_sources_have_a_stage_each(self, graph):
        left, right = numbers(name="left"), numbers(name="right") + 100
        total = left + right
        stages = (
            plan_stage(graph, ["left"], ["left"], name="l"),
            plan_stage(graph, ["right"], ["right"], name="r"),
        )
        with rewritten(*stages) as session:
            assert [int(session.run(total)) for _ in range(4)] == [100, 102, 104, 106]


def widened(graph: tf.Graph, moved: Sequence[str], carried: Sequence[str]) -> Stage:
    """Plans to carry more through the user's own stage "clicks": a copy for each of its puts."""
    (runner,) = runners(graph)
    take = graph.get_operation_by_name("clicks/take")
    outputs = [tensor for node in carried for tensor in graph.get_operation_by_name(node).outputs]
    dtypes = [tensor.dtype.as_datatype_enum for tensor in outputs]
    nodes = graph_pb2.GraphDef()
    wide = nodes.node.add()
    wide.CopyFrom(take.node_def)
    wide.name = "clicks/wide/take"
    wide.attr["shapes"].list.ClearField("shape")
    copies = []
    for number, name in enumerate(dict.fromkeys(runner.puts)):
        put = graph.get_operation_by_name(name)
        prefix = f"clicks/wide{number}"
        record = [tensor.name for tensor in put.inputs[1:]]
        substitutes = dict(zip([t.name for t in take.outputs], record, strict=True))
        copies.append(copy_set(prefix, substitutes))
        wider = nodes.node.add()
        wider.CopyFrom(put.node_def)
        reads = [substitutes.get(t.name, f"{prefix}/{t.name}") for t in outputs]
        wider.input[:] = [runner.owner, *reads]
    for node in nodes.node:
        node.attr["dtypes"].list.type[:] = dtypes
    return Stage(
        name="clicks",
        runner=runner,
        parameters={
            "moved": list(moved),
            "moved_ops": [graph.get_operation_by_name(node).type for node in moved],
            "carried": list(carried),
            "take": "clicks/wide/take",
            "copies": copies,
            "nodes": nodes.SerializeToString(),
            "device": "",
        },
    )


class TestWidening:
    def build(self, *texts: tf.Tensor, options: wb.StageOptions | None = None) -> None:
        nests = [[text, tf.size(text)] for text in texts]
        if len(nests) == 1:
            back = wb.staged(nests[0], options, name="clicks")
        else:
            back = prefetch_join(nests, name="clicks")
        value = tf.strings.to_number(back[0], name="value")
        tf.identity(tf.square(value, name="square") + tf.cast(back[1], tf.float32), name="out")

    @pytest.mark.parametrize("threads", [1, 3])
    def test_the_users_own_put_puts_the_wider_record(self, graph, target, threads):
        texts = tf.strings.as_string(numbers())
        self.build(texts, options=wb.StageOptions(num_threads=threads, capacity=2))
        moved = ["clicks/take", "value", "square"]
        stage = widened(graph, moved, moved)
        fetches = ["out:0", "clicks/take:0", "clicks/take:1", "value:0", "square:0"]
        with rewritten(stage, target=target) as session:
            rows = [session.run(fetches) for _ in range(12)]
            alone = [session.run(fetch) for fetch in ("value:0", "clicks/take:0", "out:0")]
        if threads == 1:
            assert [float(value) for _, _, _, value, _ in rows] == list(range(12))
            same(alone, [12.0, b"13", 14.0**2 + 1])
        for out, text, size, value, square in rows:
            assert (float(text), size, square) == (value, 1, value**2)
            assert out == value**2 + 1

    def test_the_users_own_runner_runs_it(self, graph):
        self.build(tf.strings.as_string(numbers(5)))
        stage = widened(graph, ["clicks/take", "value"], ["clicks/take", "value"])
        with v1.Session(config=config_of(stage)) as session:
            run = StageRun(stage.runner, session)
            assert [float(session.run("value:0")) for _ in range(5)] == [0, 1, 2, 3, 4]
            with pytest.raises(tf.errors.OutOfRangeError, match="stage 'clicks' has ended"):
                session.run("value:0")
            run.stop()

    def test_each_put_of_a_join_has_its_own_copy(self, graph):
        self.build(tf.strings.as_string(numbers()), tf.strings.as_string(-1 - numbers(name="n")))
        stage = widened(graph, ["clicks/take", "value"], ["clicks/take", "value"])
        signs = collections.Counter()
        with rewritten(stage) as session:
            while len(signs) < 2 and signs.total() < 10_000:
                value, text = session.run(["value:0", "clicks/take:0"])
                assert float(text) == value
                signs[bool(value < 0)] += 1
        assert len(signs) == 2

    def test_a_planned_stage_feeds_on_the_widened_one(self, graph):
        self.build(tf.strings.as_string(numbers()))
        wide = widened(graph, ["clicks/take", "value"], ["clicks/take", "value"])
        after = plan_stage(
            graph, ["clicks/take", "value", "square"], ["clicks/take", "square"], name="after"
        )
        fetches = ["square:0", "value:0", "out:0", "clicks/take:0"]
        with rewritten(wide, after) as session:
            same(
                [session.run(fetch) for fetch in fetches * 2],
                [0.0, 1.0, 5.0, b"3", 16.0, 5.0, 37.0, b"7"],
            )


class TestGraphsOfAllKinds:
    def run(self, graph: tf.Graph, moved: str, carried: str, fetch: Any, count: int = 3) -> None:
        """A session with this stage gives what one without it gives."""
        with plain() as session:
            expected = [session.run(fetch) for _ in range(count)]
        with rewritten(plan_stage(graph, moved.split(), carried.split())) as session:
            same([session.run(fetch) for _ in range(count)], expected)

    def test_control_edges_in_and_out_of_what_moves(self, graph):
        outside = v1.get_variable("outside", initializer=tf.constant(0, tf.int64), trainable=False)
        two = tf.constant(2, tf.int64)
        batch = numbers()
        with tf.control_dependencies([batch, tf.no_op(name="shared")]):
            group = tf.no_op(name="group")
        with tf.control_dependencies([group]):
            double = tf.multiply(batch, two, name="double")
        with tf.control_dependencies([double, batch]):
            counted = outside.assign_add(1)
        self.run(graph, "batch group double", "batch double", [double, counted])

    def test_what_waits_for_a_carried_node_runs_once_a_step(self, graph):
        outside = v1.get_variable("outside", initializer=tf.constant(0, tf.int64), trainable=False)
        double = tf.multiply(numbers(), 2, name="double")
        with tf.control_dependencies([double]):
            counted = outside.assign_add(1)
        stage = plan_stage(
            graph,
            ["batch", "double"],
            ["batch", "double"],
            options=wb.StageOptions(capacity=3),
        )
        with rewritten(stage) as session:
            for _ in range(5):
                session.run(counted.op)
            assert session.run([outside, "batch:0"]) == [5, 5]

    def test_colocation_with_what_is_carried(self, graph):
        batch = numbers()
        with graph.colocate_with(batch.op):
            double = tf.multiply(batch, 2, name="double")
            after = tf.add(double, 1, name="after")
        with graph.colocate_with(double.op):
            last = tf.add(after, 1, name="last")
        self.run(graph, "batch double after", "batch after", [last, double])
        with rewritten(plan_stage(graph, ["batch", "double"], ["batch", "double"])) as session:
            assert all(device.endswith("CPU:0") for device in devices(session, last.name).values())

    def test_the_stand_in_of_a_node_that_prefers_the_cpu_asks_for_it(self, graph):
        batch = numbers()
        with graph.colocate_with(batch.op), tf.device("/device:GPU:0"):
            elsewhere = tf.add(batch, 1, name="elsewhere")
        stage = plan_stage(graph, ["batch"], ["batch"])
        # Without it, on a machine with a GPU, all of `batch` would be copied there.
        found = error_of(config_of(stage), elsewhere.name)
        assert re.search(r"nodes .*batch.* '/device:CPU:\*'", found)

    def test_a_device_that_the_user_asked_for_stays(self, graph):
        config = config_pb2.ConfigProto(device_count={"CPU": 2})
        batch = numbers()
        with tf.device("/device:CPU:1"):
            double = tf.multiply(batch, 2, name="double")
        stage = plan_stage(graph, ["batch", "double"], ["batch", "double"])
        config.MergeFrom(config_of(stage))
        with v1.Session(config=config) as session, producing(session, stage):
            placed = devices(session, double.name)
            assert placed["double"].endswith("CPU:1")
            assert devices(session, "auto/ahead/double:0")["auto/ahead/double"].endswith("CPU:1")

    def test_ref_variables_are_read_by_both_runs(self, graph):
        table = v1.get_variable("table", initializer=[5.0, 6.0, 7.0, 8.0], use_resource=False)
        batch = numbers()
        row = tf.gather(table, batch % 4, name="row")
        back = tf.add(row, 1.0, name="back")
        moved = [op.name for op in graph.get_operations() if op in _downstream(batch.op, back.op)]
        self.run(graph, " ".join(moved), f"batch {row.op.name}", [back, row, batch])

    @pytest.mark.parametrize("v2", [False, True])
    def test_a_loop_takes_what_is_carried(self, graph, v2):
        with _control_flow(v2):
            double = tf.multiply(numbers(), 2, name="double")
            total = tf.while_loop(
                lambda i, total: i < 3,
                lambda i, total: (i + 1, total + double),
                [0, tf.constant(0, tf.int64)],
            )[1]
        self.run(graph, "batch double", "batch double", total)

    @pytest.mark.parametrize("v2", [False, True])
    def test_a_loop_moves_as_a_whole(self, graph, v2):
        with _control_flow(v2):
            batch = numbers()
            loop = tf.while_loop(
                lambda i, total: i < 3, lambda i, total: (i + 1, total + batch), [0, batch]
            )[1]
            end = tf.identity(loop, name="end")
        moved = [op.name for op in graph.get_operations() if op in _downstream(batch.op, end.op)]
        self.run(graph, " ".join(moved), "batch end", [end, loop, batch])

    @pytest.mark.parametrize("v2", [False, True])
    def test_a_branch_moves_or_takes_what_is_carried(self, graph, v2):
        with _control_flow(v2):
            batch = numbers()
            even = tf.equal(batch % 2, 0)
            chosen = tf.cond(even, lambda: batch * 10, lambda: batch + 1)
            end = tf.identity(chosen, name="end")
            after = tf.cond(end > 5, lambda: end * 3, lambda: end)
        moved = [op.name for op in graph.get_operations() if op in _downstream(batch.op, end.op)]
        self.run(graph, " ".join(moved), "batch end", [after, end, batch])

    def test_a_queue_is_a_source(self, graph):
        queue = v1.FIFOQueue(20, [tf.int64, tf.string], [[], []])
        fill = queue.enqueue_many([list(range(20)), [str(i) for i in range(20)]])
        number, text = queue.dequeue(name="batch")
        double = tf.multiply(number, 2, name="double")
        stage = plan_stage(graph, ["batch", "double"], ["batch", "double"])
        with v1.Session(config=config_of(stage)) as session:
            session.run(fill)
            with producing(session, stage):
                same(session.run([double, text]), [0, b"0"])
                same(session.run([double, text]), [2, b"1"])

    def test_a_functions_body_is_not_the_sessions_graph(self, graph):
        @tf.function(autograph=False)
        def body(x):
            return tf.multiply(x, 3, name="double")

        batch = numbers()
        double = tf.multiply(batch, 2, name="double")
        self.run(graph, "batch double", "batch double", body(double))


def shape_of(*sizes: int) -> attr_value_pb2.AttrValue:
    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in sizes]
    return attr_value_pb2.AttrValue(shape=tensor_shape_pb2.TensorShapeProto(dim=dims))


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


class TestMalformedPlans:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"format": None}, "optimizer 'WorkbenchStagePlan': parameter 'format' is missing"),
            ({"format": "1"}, "parameter 'format' is a string; expected an integer"),
            ({"format": 2}, "the plan has format 2, this library reads format 1; a plan is"),
            ({"stages": None}, "optimizer 'WorkbenchStagePlan': parameter 'stages' is missing"),
            ({"stages": ["s"]}, "'stages' is a list of strings; expected a list of functions"),
        ],
    )
    def test_of_the_plan(self, graph, parameters, message):
        numbers()
        assert message in error_of(config_of(plan_stage(graph, ["batch"], ["batch"]), **parameters))

    @pytest.mark.parametrize(
        "key", ["moved", "moved_ops", "carried", "take", "copies", "nodes", "device"]
    )
    def test_a_missing_parameter_of_a_stage(self, graph, key):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"]).without(key)
        assert f"stage plan, stage 'auto': parameter '{key}' is missing" in error_of(
            config_of(stage)
        )

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"moved": 3}, "'moved' is an integer; expected a list of strings"),
            ({"moved": "batch"}, "'moved' is a string; expected a list of strings"),
            ({"moved": [function("batch", {})]}, "'moved' is a list of functions; expected a list"),
            ({"moved": [], "moved_ops": []}, "'moved' is empty; expected the source first"),
            ({"moved_ops": ["A", "B"]}, "'moved' has 1 names, 'moved_ops' 2; expected as many"),
            ({"carried": ""}, "'carried' is a string; expected a list of strings"),
            ({"take": ["a"]}, "'take' is a list of strings; expected a string"),
            ({"device": []}, "'device' is an empty list; expected a string"),
            ({"device": "somewhere"}, "'device' is 'somewhere'; expected a device's name such as"),
            ({"nodes": 1}, "'nodes' is an integer; expected a string"),
            ({"nodes": b"\xff\xff"}, "'nodes' (2 bytes) is no serialized GraphDef"),
            ({"copies": ["x"]}, "'copies' is a list of strings; expected a list of functions"),
            (
                {
                    "nodes": graph_pb2.GraphDef(
                        library=function_pb2.FunctionDefLibrary()
                    ).SerializeToString()
                },
                "parameter 'nodes' has functions; a stage's own nodes call none",
            ),
            ({"copies": [copy_set("")]}, "stage 'auto', copy '': the prefix is empty"),
            ({"copies": [copy_set("_c")]}, "copy '_c': the prefix cannot begin the name of a node"),
            ({"copies": [copy_set("c")] * 2}, "copy 'c' is there twice"),
            (
                {"copies": [copy_set("c"), copy_set("d")]},
                "the stage has 1 puts and 2 copy sets; expected a put at least, and a put for each",
            ),
            ({"moved": ["batch"] * 2, "moved_ops": ["A"] * 2}, "'batch' is moved twice"),
            ({"carried": ["batch"] * 2}, "'batch' is carried twice"),
            ({"carried": ["batch", "gone"]}, "carried node 'gone' is not moved"),
            ({"carried": []}, "source 'batch' is not carried, so a step would consume a batch"),
            ({"take": "gone"}, "take 'gone' is not among the stage's own nodes"),
            ({"take": "batch"}, "take 'batch' is not among the stage's own nodes"),
            (
                {"take": "auto/put"},
                "take 'auto/put' is a WorkbenchBufferPut; expected a WorkbenchBufferTake",
            ),
            ({"nodes": b""}, "the stage has 0 puts and 1 copy sets; expected a put at least"),
            (
                {"copies": [function("c", {"from": []})]},
                "stage 'auto', copy 'c': parameter 'to' is missing",
            ),
            (
                {"copies": [function("c", {"from": ["batch:0"], "to": []})]},
                "copy 'c': 'from' has 1 tensors, 'to' has 0; expected as many",
            ),
            (
                {"copies": [function("c", {"from": 1, "to": []})]},
                "copy 'c': parameter 'from' is an integer; expected a list of strings",
            ),
        ],
    )
    def test_of_a_stage(self, graph, parameters, message):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"]).but(**parameters)
        found = error_of(config_of(stage))
        assert message in found
        assert "stage plan, stage 'auto'" in found
        assert "the Workbench of the same version" in found

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (
                {"name": "auto/put", "op": "WorkbenchBufferPut"},
                "own node 'auto/put' is there twice",
            ),
            ({"name": "batch", "op": "WorkbenchBufferPut"}, "own node 'batch' is moved too"),
            ({"name": "", "op": "Placeholder"}, "own node '': no node can have that name"),
            ({"name": "a:0", "op": "Placeholder"}, "own node 'a:0': no node can have that name"),
            (
                {"name": "n", "op": "Split"},
                "own node 'n' is a Split; expected an op of a buffer or a Placeholder",
            ),
            (
                {"name": "n", "op": "Placeholder", "device": "/nowhere"},
                "own node 'n' asks for device '/nowhere'; expected a device's name such as",
            ),
            (
                {"name": "n", "op": "Placeholder", "attr": {"shape": shape_of(-7)}},
                "own node 'n': attribute 'shape' has a shape that no tensor has",
            ),
            (
                {"name": "n", "op": "Placeholder", "attr": {"shape": shape_of(1 << 40, 1 << 40)}},
                "own node 'n': attribute 'shape' has a shape that no tensor has",
            ),
        ],
    )
    def test_of_an_own_node(self, graph, fields, message):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"])
        found = error_of(config_of(with_nodes(stage, lambda nodes: nodes.add(**fields))))
        assert f"stage plan, stage 'auto': {message}" in found

    def test_stages_without_a_name_of_their_own(self, graph):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"])
        assert "stage plan, stage 'auto': another stage has this name too" in error_of(
            config_of(stage, stage)
        )
        unnamed = dataclasses.replace(stage, name="")
        assert "stage plan, stage '': the stage has no name" in error_of(config_of(unnamed))

    def test_an_own_node_of_two_stages(self, graph):
        numbers()
        stage = plan_stage(graph, ["batch"], ["batch"])
        second = dataclasses.replace(stage, name="second")
        assert "stage plan, stage 'second': own node 'auto/" in error_of(config_of(stage, second))

    def test_two_plans(self, graph):
        numbers()
        config = config_of(plan_stage(graph, ["batch"], ["batch"]))
        config.MergeFrom(config)
        assert "more than one custom optimizer named 'WorkbenchStagePlan'" in error_of(config)

    def test_a_session_that_places_pruned_graphs(self, graph):
        numbers()
        config = config_of(plan_stage(graph, ["batch"], ["batch"]))
        config.graph_options.place_pruned_graph = True
        assert "unset place_pruned_graph" in error_of(config)


class TestPlansThatDoNotFit:
    """Each names the stage and the node; the graph is batch -> double, square."""

    NODES = ("batch", "double", "square")

    def build(self) -> None:
        batch = numbers()
        tf.multiply(batch, tf.constant(2, tf.int64, name="two"), name="double")
        tf.identity(tf.square(batch, name="square"), name="end")
        tf.no_op(name="none")

    def error(self, *stages: Stage, target: str = "") -> str:
        return error_of(config_of(*stages))

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (
                {"moved": ["batch", "gone", "square"], "carried": ["batch", "square"]},
                "moved node 'gone' is not in the session's graph; make the plan from the graph",
            ),
            (
                {"moved_ops": ["IteratorGetNext", "Add", "Square"]},
                "moved node 'double' is a Mul in the session's graph; the plan was made for a Add",
            ),
            (
                {
                    "moved": ["batch", "none"],
                    "moved_ops": ["IteratorGetNext", "NoOp"],
                    "carried": ["batch", "none"],
                },
                "carried node 'none' (NoOp) has no output that a record could hold",
            ),
            (
                {"copies": [copy_set("c", {"gone:0": "two:0"})]},
                "tensor 'gone:0' names no node of the graph",
            ),
            (
                {"copies": [copy_set("c", {"batch:0": "two:1"})]},
                "tensor 'two:1' does not exist: node 'two' has 1 outputs",
            ),
            (
                {"copies": [copy_set("c", {"batch:4294967296": "two:0"})]},
                "tensor 'batch:4294967296' does not exist: node 'batch' has 1 outputs",
            ),
            (
                {"copies": [copy_set("c", {"^batch": "two:0"})]},
                "tensor '^batch' does not exist: node 'batch' has 1 outputs",
            ),
            (
                {"copies": [copy_set("c", {"two:0": "batch:0"})]},
                "copy 'c' substitutes 'two:0', which is no output of a moved node",
            ),
            (
                {"copies": [copy_set("c", {"batch": "two", "batch:0": "two"})]},
                "copy 'c' substitutes 'batch:0' twice",
            ),
        ],
    )
    def test_it_says_so(self, graph, parameters, message):
        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES).but(**parameters)
        found = self.error(stage)
        assert message in found
        assert "stage plan, stage 'auto': " in found

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (
                {"name": "strange", "op": "WorkbenchBufferStrange"},
                "node 'strange' has op 'WorkbenchBufferStrange', which this process does not know",
            ),
            ({"name": "bad", "op": "WorkbenchBufferTake"}, "node 'bad' is malformed: "),
            ({"name": "bad", "op": "WorkbenchBufferSize"}, "own node 'bad' is malformed: "),
            (
                {"name": "lost", "op": "WorkbenchBufferSize", "input": ["^gone"]},
                "node 'lost' waits for '^gone', which is not in the session's graph",
            ),
            (
                {"name": "lost", "op": "WorkbenchBufferDrain", "input": ["gone:1"]},
                "node 'lost' reads what it cannot: tensor 'gone:1' names no node of the graph",
            ),
            (
                {"name": "lost", "op": "WorkbenchBufferDrain", "input": ["two:3"]},
                "tensor 'two:3' does not exist: node 'two' has 1 outputs",
            ),
            (
                {"name": "lost", "op": "WorkbenchBufferDrain", "input": ["two:4294967295"]},
                "tensor 'two:4294967295' does not exist: node 'two' has 1 outputs",
            ),
            (
                {"name": "full", "op": "WorkbenchBufferSize", "input": ["two"]},
                "node 'full' is given 1 inputs; its op WorkbenchBufferSize has 0",
            ),
            (
                {"name": "odd", "op": "WorkbenchBufferDrain", "input": ["two"]},
                "input 0 of node 'odd' is 'two:0' of type int64; expected type bool",
            ),
            (
                {"name": "self", "op": "WorkbenchBufferSize", "input": ["^self"]},
                "node 'self' would wait for itself",
            ),
            (
                {"name": "self", "op": "WorkbenchBufferDrain", "input": ["self"]},
                "input 0 of node 'self' is its own output",
            ),
            (
                {"name": "two", "op": "Placeholder"},
                "own node 'two', a Placeholder, has the name of a Const of the session's graph",
            ),
            (
                {"name": "auto/ahead/batch", "op": "WorkbenchBufferSize"},
                "own node 'auto/ahead/batch' has the name of a copy",
            ),
        ],
    )
    def test_of_an_own_node(self, graph, fields, message):
        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES)
        found = self.error(with_nodes(stage, lambda nodes: nodes.add(**fields)))
        assert message in found
        assert "stage plan, stage 'auto': " in found

    @pytest.mark.parametrize(
        ("own", "change", "message"),
        [
            (
                "auto/take",
                lambda node: node.attr["dtypes"].list.type.pop(),
                "take 'auto/take' delivers [int64, int64]; the outputs of the carried nodes are",
            ),
            (
                "auto/put",
                lambda node: node.input.__setitem__(2, "auto/ahead/square:0"),
                "put 'auto/put' puts 'auto/ahead/square:0' as tensor 1 of its record; expected "
                "'auto/ahead/double:0'",
            ),
            (
                "auto/put",
                lambda node: node.attr["capacity"].__setattr__("i", 7),
                "'auto/put' has capacity 7, take 'auto/take' 1; the ops of one buffer agree",
            ),
            (
                "auto/cancel",
                lambda node: node.attr["shared_name"].__setattr__("s", b"other"),
                "'auto/cancel' has shared_name \"other\", take 'auto/take' \"auto",
            ),
            (
                "auto/put",
                lambda node: node.attr["container"].__setattr__("s", b"other"),
                "'auto/put' has container \"other\", take 'auto/take' \"\"",
            ),
            (
                "auto/flush",
                lambda node: node.attr["capacity"].__setattr__("i", 0),
                "own node 'auto/flush' is malformed: Value for attr 'capacity' of 0 must be at",
            ),
            (
                "auto/flush",
                lambda node: node.attr["stage"].__setattr__("i", 3),
                "own node 'auto/flush' is malformed: AttrValue had value with type 'int' when",
            ),
        ],
    )
    def test_of_a_buffer(self, graph, own, change, message):
        def edit(nodes: Any) -> None:
            (node,) = (node for node in nodes if node.name == own)
            change(node)

        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES)
        found = self.error(with_nodes(stage, edit))
        assert message in found
        assert "stage plan, stage 'auto': " in found

    def test_a_put_that_fits_none_of_several_copies(self, graph):
        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES)
        copies = [copy_set("auto/ahead"), copy_set("other")]

        def edit(nodes: Any) -> None:
            (put,) = (node for node in nodes if node.name == "auto/put")
            put.input[1] = "other/batch:0"
            nodes.add().CopyFrom(put)
            nodes[-1].name = "put"

        assert (
            "put 'auto/put' puts 3 tensors, which are not what any of the 2 copies makes of the "
            "carried nodes"
        ) in self.error(with_nodes(stage.but(copies=copies), edit))

    def test_what_an_earlier_stage_added_does_not_move(self, graph):
        self.build()
        first = plan_stage(graph, self.NODES, self.NODES)
        second = plan_stage(graph, self.NODES, self.NODES, name="second").but(
            moved=["batch", "double", "square", "auto/ahead/double"], moved_ops=["a"] * 4
        )
        assert (
            "stage plan, stage 'second': moved node 'auto/ahead/double' was added by an earlier"
        ) in self.error(first, second)

    def test_a_copy_with_the_name_of_another_node(self, graph):
        self.build()
        tf.constant(1, name="auto/ahead/double")
        assert "node 'auto/ahead/double' cannot be added: the graph has one of that name" in (
            self.error(plan_stage(graph, self.NODES, self.NODES))
        )

    def test_a_substitute_of_another_type(self, graph):
        self.build()
        tf.constant("text", name="text")
        stage = plan_stage(graph, self.NODES, self.NODES)
        copies = [copy_set("c", {"batch:0": "text:0"})]
        assert "is 'text:0' of type string; expected type int64" in self.error(
            stage.but(copies=copies)
        )

    def test_a_source_that_is_substituted_in_part(self, graph):
        build_model()
        copies = [copy_set("c", {"batch:0": "batch:0"})]
        assert (
            "copy 'c' substitutes 'batch', but not 'batch:1', which moved node 'parse' reads"
            in self.error(model_stage(graph).but(copies=copies))
        )

    def test_a_carried_ref(self, graph):
        batch = numbers()
        with tf.control_dependencies([batch]):
            v1.get_variable("ref", initializer=[1.0], use_resource=False)
            ref = v1.assign_add(graph.get_tensor_by_name("ref:0"), [1.0], name="add")
        assert ref.dtype._is_ref_dtype
        stage = plan_stage(graph, ["batch"], ["batch"]).but(
            moved=["batch", "add"],
            moved_ops=["IteratorGetNext", "AssignAdd"],
            carried=["batch", "add"],
        )
        assert "carried node 'add' (AssignAdd) has output 0 of type float_ref; a record" in (
            self.error(stage)
        )

    def test_a_carried_resource(self, graph):
        with tf.control_dependencies([numbers()]):
            handle = tf.raw_ops.StackV2(max_size=1, elem_type=tf.int32, name="stack")
        del handle
        stage = plan_stage(graph, ["batch", "stack"], ["batch", "stack"])
        assert "carried node 'stack' (StackV2) has output 0 of type resource" in self.error(stage)

    def test_a_carried_variant(self, graph):
        tf.raw_ops.TensorListFromTensor(
            tensor=tf.fill([2], numbers()), element_shape=tf.constant([], tf.int32), name="list"
        )
        stage = plan_stage(graph, ["batch", "list"], ["batch", "list"])
        assert "carried node 'list' (TensorListFromTensor) has output 0 of type variant" in (
            self.error(stage)
        )

    def test_a_put_that_would_wait_for_its_own_take(self, graph):
        batch = numbers()
        not_moved = tf.add(batch, 1, name="not_moved")
        tf.multiply(batch, not_moved, name="double")
        stage = plan_stage(graph, ["batch", "double"], ["batch", "double"])
        assert (
            "stage plan, stage 'auto': put 'auto/put' would wait for take 'auto/take', which waits "
            "for the put: 'auto/take' -> 'batch' -> 'not_moved' -> 'auto/ahead/double' -> "
            "'auto/put' -> 'auto/take'; whatever a moved node reads must be moved too"
        ) in self.error(stage)

    def test_the_same_through_a_control_edge(self, graph):
        batch = numbers()
        two = tf.constant(2, tf.int64)
        with tf.control_dependencies([tf.add(batch, 1, name="not_moved")]):
            tf.multiply(batch, two, name="double")
        stage = plan_stage(graph, ["batch", "double"], ["batch", "double"])
        assert "'not_moved' -> 'auto/ahead/double'" in self.error(stage)

    def test_two_stages_that_would_wait_for_each_other(self, graph):
        left, right = numbers(name="left"), numbers(name="right")
        tf.add(left, right, name="a")
        tf.multiply(left, right, name="b")
        stages = (
            plan_stage(graph, ["left", "a"], ["left", "a"], name="l"),
            plan_stage(graph, ["right", "b"], ["right", "b"], name="r"),
        )
        found = error_of(config_of(*stages), "left:0")
        assert "put 'l/put' would wait for take 'l/take'" in found
        assert "'r/put' -> 'r/take'" in found

    def test_a_cycle_without_a_put(self, graph):
        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES)

        def edit(nodes: Any) -> None:
            (take,) = (node for node in nodes if node.name == "auto/take")
            take.input.append("^end")

        found = self.error(with_nodes(stage, edit))
        assert "stage plan: the graph would have a cycle: " in found
        assert "'square' -> 'end'" in found

    def test_a_long_cycle_is_not_listed_whole(self, graph):
        value = batch = numbers()
        for i in range(100):
            value = tf.negative(value, name=f"not_moved_{i}")
        tf.multiply(batch, value, name="double")
        stage = plan_stage(graph, ["batch", "double"], ["batch", "double"])
        found = self.error(stage)
        assert "'not_moved_9' -> … (92 more) -> 'auto/put' -> 'auto/take'" in found


class TestBesideGrappler:
    def test_the_unknown_optimizer_is_passed_over_in_silence(self):
        script = textwrap.dedent(
            """
            import sys
            import tensorflow as tf
            from tests.integration.rewriting import test_stage_plan_pass as plans

            plans._native.library()
            with tf.Graph().as_default() as graph:
                plans.build_model()
                stages = [plans.model_stage(graph)] if sys.argv[1] == "on" else []
                with plans.rewritten(*stages) if stages else plans.plain() as session:
                    for _ in range(3):
                        session.run(["loss:0", "train"])
            """
        )
        logged = {}
        for setting in ("off", "on"):
            env = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
            done = subprocess.run(
                [sys.executable, "-c", script, setting],
                env=env,
                capture_output=True,
                text=True,
                check=True,
            )
            assert "WorkbenchStagePlan" not in done.stderr
            logged[setting] = set(re.findall(r"(\w+\.cc):\d+\]", done.stderr))
        assert logged["off"]
        # That a put was cancelled is told by TensorFlow, as of every run that ends so.
        assert logged["on"] - logged["off"] <= {"local_rendezvous.cc"}

    def test_switched_off_it_makes_no_difference(self, graph):
        build_model()
        stage = model_stage(graph)
        config = config_of(stage)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with v1.Session(config=config) as session:
            session.run(v1.global_variables_initializer())
            with producing(session, stage):
                assert [int(session.run(["batch:0", "loss:0"])[0]) for _ in range(3)] == [0, 1, 2]


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


class TestLargeGraphs:
    def test_the_last_of_many_nodes_has_its_value(self, graph):
        stage = build_chains(1000)
        with rewritten(stage) as session:
            assert [session.run("kept/999:0") for _ in range(3)] == [0, 2001, 4002]

    def test_what_the_pass_costs_is_printed(self, capsys):
        """10,000 nodes, half of them moved; no time is asserted."""
        script = textwrap.dedent(
            """
            import tensorflow as tf
            from tests.integration.rewriting import test_stage_plan_pass as plans

            plans._native.library()
            with tf.Graph().as_default():
                config = plans.config_of(plans.build_chains(5_000))
                with tf.compat.v1.Session(config=config) as session:
                    session.run(tf.constant(1))
            """
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={
                **os.environ,
                "TF_CPP_MIN_LOG_LEVEL": "0",
                "TF_CPP_VMODULE": "stage_plan_pass=1",
            },
            capture_output=True,
            text=True,
            check=True,
        )
        (line,) = re.findall(r"Applied 1 planned stages to 1\d{4} nodes.*", done.stderr)
        with capsys.disabled():
            print(f"\n{line}")


class TestRandomGraphs:
    @hypothesis.settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
    )
    @hypothesis.given(data=strategies.data())
    def test_every_node_has_its_value_in_a_step_and_alone(self, data):
        """1. a step that fetches all; 2. a step for each node: the next value of each."""
        with tf.Graph().as_default() as graph:
            names = self.build(data)
            fetches = [f"{name}:0" for name in names]
            steps = 2 + len(names)
            with plain() as session:
                expected = [session.run(fetches) for _ in range(steps)]
            stages = [
                self.stage(data, graph, names, f"stage{i}")
                for i in range(data.draw(strategies.integers(1, 3), label="stages"))
            ]
            with rewritten(*stages) as session:
                same([session.run(fetches) for _ in range(2)], expected[:2])
                alone = [session.run(fetch) for fetch in fetches]
                same(alone, [expected[2 + i][i] for i in range(len(names))])

    def build(self, data: Any) -> list[str]:
        """A source and up to 8 nodes, each of two earlier ones or constants."""
        tensors = [numbers()]
        seven = tf.constant(7, tf.int64)
        for i in range(data.draw(strategies.integers(1, 8), label="nodes")):
            one, other = (
                data.draw(strategies.sampled_from([*tensors, seven]), label=f"input of {i}")
                for _ in range(2)
            )
            before = data.draw(strategies.sampled_from(tensors), label=f"{i} waits for")
            with tf.control_dependencies([before]):
                tensors.append(tf.subtract(one * (i + 2), other, name=f"n{i}"))
        graph = v1.get_default_graph()
        return [op.name for op in graph.get_operations() if op in _downstream(tensors[0].op)]

    def stage(self, data: Any, graph: tf.Graph, names: list[str], name: str) -> Stage:
        """Moves a set that is closed: what a moved node reads of the source's is moved."""
        moved = ["batch"]
        downstream = set(names)
        for node in names[1:]:
            op = graph.get_operation_by_name(node)
            before = {tensor.op.name for tensor in op.inputs} | {o.name for o in op.control_inputs}
            if before & downstream <= set(moved) and data.draw(strategies.booleans(), label=node):
                moved.append(node)
        carried = data.draw(strategies.sets(strategies.sampled_from(moved)), label="carried")
        carried |= {"batch"}
        return plan_stage(graph, moved, [node for node in moved if node in carried], name=name)


def _downstream(source: tf.Operation, end: tf.Operation | None = None) -> set[tf.Operation]:
    """Operations that depend on `source`, only those on the way to `end` if there is one."""

    def reached(start: tf.Operation, after: Any) -> set[tf.Operation]:
        found, waiting = {start}, [start]
        while waiting:
            new = set(after(waiting.pop())) - found
            found |= new
            waiting += new
        return found

    def consumers(op: tf.Operation) -> Iterator[tf.Operation]:
        yield from op._control_outputs
        for tensor in op.outputs:
            yield from tensor.consumers()

    def producers(op: tf.Operation) -> Iterator[tf.Operation]:
        yield from op.control_inputs
        yield from (tensor.op for tensor in op.inputs)

    found = reached(source, consumers)
    return found & reached(end, producers) if end else found


@contextlib.contextmanager
def _control_flow(v2: bool) -> Iterator[None]:
    before = v1.control_flow_v2_enabled()
    (v1.enable_control_flow_v2 if v2 else v1.disable_control_flow_v2)()
    try:
        yield
    finally:
        (v1.enable_control_flow_v2 if before else v1.disable_control_flow_v2)()

"""The graph pass that applies a stage plan: same values, names that still work, wider plans."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2

import workbench as wb
from tests.builders.stage_plans import (
    Stage,
    build_model,
    call,
    config_of,
    copy_set,
    devices,
    model_stage,
    numbers,
    plain,
    plan_stage,
    producing,
    rewritten,
    same,
)
from workbench.core.session.runner_registry import runners
from workbench.core.session.running.stage_run import StageRun
from workbench.core.session.staged import prefetch_join

v1 = tf.compat.v1


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

    def test_a_feed_reaches_what_is_made_ahead_of_it_in_other_steps(self, graph):
        build_model()
        with rewritten(model_stage(graph)) as session:
            parsed, dense = session.run(["parse:0", "dense:0"], {"batch:1": "7,8"})
            assert (parsed, dense[0]) == (7, 7)
            # As without the stage, that run needed no batch, and the first one is still there.
            assert session.run("dense:0")[0] == 0

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
            "trail": [],
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

"""Plans applied to graphs of all kinds, to large ones, and to generated ones."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import tensorflow as tf
from hypothesis import strategies
from tensorflow.core.protobuf import config_pb2

import workbench as wb
from tests.builders.examples import few
from tests.builders.stage_plans import (
    Stage,
    build_chains,
    build_model,
    config_of,
    devices,
    error_of,
    model_stage,
    numbers,
    plain,
    plan_stage,
    producing,
    rewritten,
    same,
)

v1 = tf.compat.v1


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


class TestBesideGrappler:
    @pytest.mark.slow
    def test_the_unknown_optimizer_is_passed_over_in_silence(self):
        script = textwrap.dedent(
            """
            import sys
            import tensorflow as tf
            from tests.builders import stage_plans as plans
            from workbench import _native

            _native.library()
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


class TestLargeGraphs:
    def test_the_last_of_many_nodes_has_its_value(self, graph):
        stage = build_chains(1000)
        with rewritten(stage) as session:
            assert [session.run("kept/999:0") for _ in range(3)] == [0, 2001, 4002]


class TestRandomGraphs:
    @few(10, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
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

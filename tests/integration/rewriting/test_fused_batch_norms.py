"""Batch normalizations of a finished graph, each done by one op: its sessions train as they did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.builders.batch_norms import built, layer, loss_of, matrix, normal, variables
from tests.builders.examples import few
from tests.builders.functions import producers
from tests.builders.fused_graphs import OPTIMIZERS, ran, trained
from tests.builders.intra_op_threads import require_same_bits
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.match import Match

v1 = tf.compat.v1
FORWARD, GRADIENT = "WorkbenchBatchNorm", "WorkbenchBatchNormGrad"


def require_alike(graph: tf.Graph, fetches: Any, train_op: Any, norms: int) -> Any:
    """Trains with and without the plan; returns it."""
    plan = wb.plan_fusion(graph)
    assert len(plan.of("batch normalization")) == norms, plan.describe()
    found, ours = trained(graph, fetches, train_op, wb.apply(plan))
    expected, stock = trained(graph, fetches, train_op, None)
    first = zip(tf.nest.flatten(found[0]), tf.nest.flatten(expected[0]), strict=True)
    for one, other in first:
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=3e-4)
    # A step multiplies what the one before is off.
    later = zip(tf.nest.flatten([found, ours]), tf.nest.flatten([expected, stock]), strict=True)
    for one, other in later:
        np.testing.assert_allclose(one, other, rtol=2e-2, atol=2e-2)
    return plan


def stacked(graph: tf.Graph, widths: Any = (5, 16, 3), kind: str = "ref") -> tuple[Any, Any]:
    x = matrix(40, 7)
    for number, units in enumerate(widths):
        x, _, _ = normal(tf.nn.relu(layer(x, units, f"l{number}")), f"n{number}", kind)
    loss = loss_of(x)
    return loss, OPTIMIZERS["adagrad"]().minimize(loss)


def large_norm() -> list[np.ndarray]:
    with built() as graph:
        x = v1.get_variable("x", initializer=np.random.default_rng(1).normal(size=[3000, 200]))
        normed, _, _ = normal(tf.cast(x, tf.float32), "n")
        gradients = tf.gradients(loss_of(normed), v1.trainable_variables())
    with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
        session.run("begin")
        # The loss, which stock sums, has other bits with other threads.
        return session.run([normed, gradients[0]])


class TestSessions:
    @few(6, 40)
    @given(
        rows=st.integers(1, 300),
        widths=st.lists(st.sampled_from((1, 2, 7, 16, 33, 64, 90)), min_size=1, max_size=3),
        kind=st.sampled_from(("ref", "resource")),
        known=st.booleans(),
        on_input=st.booleans(),
        shared=st.booleans(),
        optimizer=st.sampled_from(("adagrad", "descent")),
    )
    def test_train_as_stock_ones_do(
        self,
        rows: int,
        widths: list[int],
        kind: str,
        known: bool,
        on_input: bool,
        shared: bool,
        optimizer: str,
    ) -> None:
        with built() as graph:
            x = matrix(rows, 6, known=known)
            if on_input:
                # Of the input there is no gradient.
                x, _, _ = normal(x, "first", kind)
            for number, units in enumerate(widths):
                below = tf.nn.tanh(layer(x, units, f"l{number}"))
                x, _, _ = normal(below, f"n{number}", kind)
                # Then what is normalized has a gradient from elsewhere too.
                x = x + 0.5 * below if shared else x
            loss = loss_of(x)
            train_op = OPTIMIZERS[optimizer]().minimize(loss)
        plan = require_alike(graph, [loss, x], train_op, len(widths) + on_input)
        assert [each.gradients for each in plan.of("batch normalization")] == [1] * len(
            plan.of("batch normalization")
        )

    @pytest.mark.parametrize("kind", ["ref", "resource"])
    def test_run_one_op_forward_and_one_back(self, kind: str) -> None:
        with built() as graph:
            loss, train_op = stacked(graph, kind=kind)
        ops = ran(graph, [loss, train_op], wb.apply(wb.plan_fusion(graph)))
        assert ops.count(FORWARD) == 3 and ops.count(GRADIENT) == 3
        left = {"SquaredDifference", "Rsqrt", "RsqrtGrad", "StopGradient", "BroadcastTo", "Tile"}
        assert not left.intersection(ops)
        plain = ran(graph, [loss, train_op], None)
        assert len(ops) < len(plain) / 2

    def test_give_the_same_bits_whatever_the_threads(self) -> None:
        require_same_bits(large_norm)

    def test_moments_that_something_else_reads_are_handed_on(self) -> None:
        with built() as graph:
            normed, mean, variance = normal(layer(matrix(30, 4), 5, "l"), "n")
            moving = v1.get_variable("moving", [5], initializer=v1.zeros_initializer())
            with tf.control_dependencies([v1.assign_add(moving, 0.1 * (mean - moving))]):
                loss = loss_of(normed) + tf.reduce_sum(tf.stop_gradient(variance))
            train_op = OPTIMIZERS["descent"]().minimize(loss)
        require_alike(graph, [loss, mean, variance], train_op, 1)
        ops = ran(graph, [train_op, mean, variance], wb.apply(wb.plan_fusion(graph)))
        assert "SquaredDifference" not in ops

    def test_without_a_gradient(self) -> None:
        with built() as graph:
            normed, _, _ = normal(matrix(30, 4), "n")
        plan = require_alike(graph, normed, normed.op, 1)
        assert plan.of("batch normalization")[0].gradients == 0

    def test_two_losses_have_a_gradient_each(self) -> None:
        with built() as graph:
            below = layer(matrix(30, 4), 5, "l")
            normed, _, _ = normal(below, "n")
            wanted = v1.trainable_variables()
            one = tf.gradients(loss_of(normed), wanted)
            other = tf.gradients(tf.reduce_sum(normed**3), wanted)
        plan = require_alike(graph, [one, other], normed.op, 1)
        assert plan.of("batch normalization")[0].gradients == 2

    def test_of_a_server_as_well(self) -> None:
        with built() as graph:
            loss, train_op = stacked(graph)
        target = v1.train.Server.create_local_server().target
        with v1.Session(target, graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
            session.run("begin")
            found = [session.run([loss, train_op])[0] for _ in range(3)]
        expected, _ = trained(graph, loss, train_op, None)
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    def test_a_batch_without_rows_has_no_mean(self) -> None:
        with built() as graph:
            x = v1.placeholder(tf.float32, [None, 3])
            normed, mean, _ = normal(x, "n")
            total = mean + 0.0
        with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
            session.run("begin")
            found, means = session.run([normed, total], {x: np.zeros([0, 3])})
        assert found.shape == (0, 3) and np.isnan(means).all()


class TestRefused:
    def refused(self, graph: tf.Graph) -> str:
        plan = wb.plan_fusion(graph)
        assert not plan.of("batch normalization")
        (refusal,) = plan.refusals
        assert refusal.name in plan.describe()
        return refusal.reason

    def test_where_something_reads_what_is_inside(self) -> None:
        with built() as graph:
            x = layer(matrix(30, 4), 5, "l")
            normal(x, "n")
            scale = graph.get_tensor_by_name("normal_n/batchnorm/mul:0")
            tf.identity(scale * 2.0)
        assert "read what it computes" in self.refused(graph)

    def test_where_something_waits_for_what_is_inside(self) -> None:
        with built() as graph:
            normal(matrix(30, 4), "n")
            with tf.control_dependencies([graph.get_operation_by_name("normal_n/batchnorm/Rsqrt")]):
                tf.constant(1.0)
        assert "wait for what it computes" in self.refused(graph)

    def test_where_gamma_is_computed(self) -> None:
        with built() as graph:
            x = matrix(30, 4)
            mean, variance = tf.nn.moments(x, axes=[0])
            gamma, beta = variables(4, "n")
            tf.nn.batch_normalization(x, mean, variance, beta, gamma * 2.0, 1e-3)
        assert "gamma or beta is computed" in self.refused(graph)

    def test_in_a_branch(self) -> None:
        v1.disable_control_flow_v2()
        with built() as graph:
            x = matrix(30, 4)
            yes = v1.placeholder_with_default(True, [])
            gamma, beta = (tf.constant(np.ones(4, np.float32)) for _ in range(2))

            def normed() -> tf.Tensor:
                mean, variance = tf.nn.moments(x, axes=[0])
                return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)

            v1.cond(yes, normed, lambda: x)
        plan = wb.plan_fusion(graph)
        assert not plan.of("batch normalization")

    def test_a_gradient_that_does_not_come_from_the_result(self) -> None:
        with built() as graph:
            normed, _, _ = normal(layer(matrix(30, 4), 5, "l"), "n")
            outer = v1.placeholder_with_default(np.ones([30, 5], np.float32), [None, 5])
            tf.gradients(normed, v1.trainable_variables(), grad_ys=outer)
        assert "does not come from what it gave" in self.refused(graph)

    def test_two_of_one_matrix(self) -> None:
        with built() as graph:
            x = layer(matrix(30, 4), 5, "l")
            loss = loss_of(normal(x, "one")[0]) + loss_of(normal(x, "other")[0])
            train_op = OPTIMIZERS["descent"]().minimize(loss)
        plan = require_alike(graph, loss, train_op, 1)
        assert "summed with that of another one" in plan.refusals[0].reason

    @pytest.mark.parametrize(
        "other",
        [
            lambda x: tf.nn.moments(x, axes=[1]),
            lambda x: tf.nn.moments(tf.cast(x, tf.float64), axes=[0]),
            lambda x: tf.nn.moments(x + 1.0, axes=[0]),
        ],
    )
    def test_others_are_none(self, other: Any) -> None:
        with built() as graph:
            x = matrix(4, 4)
            mean, variance = other(x)
            x = tf.cast(x, mean.dtype)
            ones = tf.ones([4], mean.dtype)
            tf.nn.batch_normalization(x, mean, variance, ones, ones, 1e-3)
        plan = wb.plan_fusion(graph)
        assert not plan.of("batch normalization") and not plan.refusals


class TestMatch:
    def definition(self, build: Any) -> Definition:
        with tf.Graph().as_default() as graph:
            build()
        return Definition(graph.as_graph_def(add_shapes=True).node)

    def test_adds_nothing_where_something_differs(self) -> None:
        like = self.definition(
            lambda: tf.add(
                tf.square(v1.placeholder(tf.float32, [2], name="a")), [1.0, 2.0], name="end"
            )
        )
        other = self.definition(
            lambda: tf.add(
                tf.square(v1.placeholder(tf.float32, [2], name="b")), [1.0, 3.0], name="end"
            )
        )
        match = Match(like, other)
        assert not match.add("end:0", "end:0")
        assert "a:0" not in match and not match.nodes
        free = Match(like, other, any_number=frozenset({"end/y:0"}))
        assert free.add("end:0", "end:0") and free["a:0"] == "b:0"
        assert free.nodes == {"end", "Square", "end/y"}


def test_the_smart_stage_takes_a_fused_graph() -> None:
    with built() as graph:
        data = np.random.default_rng(0).normal(size=[8, 20, 4]).astype(np.float32)
        dataset = tf.data.Dataset.from_tensor_slices(data).repeat()
        x = v1.data.make_one_shot_iterator(dataset).get_next()
        loss = loss_of(normal(layer(x, 5, "l"), "n")[0])
        train_op = OPTIMIZERS["descent"]().minimize(loss)
    fusion = wb.plan_fusion(graph)
    assert len(fusion.of("batch normalization")) == 1
    config = wb.apply(fusion)
    with v1.Session(graph=graph, config=config) as session:
        session.run("begin")
        found = [session.run([loss, train_op])[0] for _ in range(4)]
    with v1.Session(graph=graph) as session:
        session.run("begin")
        expected = [session.run([loss, train_op])[0] for _ in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert not producers()

"""What batch normalizations wait for, and where they run: fused ones do likewise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.batch_norms import built, layer, loss_of, matrix, normal, variables
from tests.builders.fused_graphs import ran, trained

v1 = tf.compat.v1


def counter(name: str) -> tuple[Any, tf.Tensor]:
    """A variable, and the op that counts in it."""
    count = v1.get_variable(name, initializer=0.0, trainable=False)
    return count, v1.assign_add(count, 1.0).op


def require_counted(graph: tf.Graph, fetch: tf.Tensor, count: Any, norms: int = 1) -> None:
    """A run that fetches this counts, with the plan and without."""
    plan = wb.plan_fusion(graph)
    assert len(plan.of("batch normalization")) == norms, plan.describe()
    for config in (None, wb.apply(plan)):
        with v1.Session(graph=graph, config=config) as session:
            session.run("begin")
            session.run(fetch)
            assert session.run(count) == 1.0


class TestWaits:
    @pytest.mark.parametrize("fetched", ["y", "mean", "loss", "gradient"])
    def test_around_all_of_it(self, fetched: str) -> None:
        with built() as graph:
            x = layer(matrix(20, 4), 5, "l")
            count, counts = counter("count")
            with tf.control_dependencies([counts]):
                y, mean, _ = normal(x, "n")
            loss = loss_of(y)
            (gradient,) = tf.gradients(loss, x)
            fetches = {"y": y, "mean": mean + 0.0, "loss": loss, "gradient": gradient}
        require_counted(graph, fetches[fetched], count)

    def test_of_the_result_for_what_reads_the_moments(self) -> None:
        with built() as graph:
            x = layer(matrix(20, 4), 5, "l")
            gamma, beta = variables(5, "n")
            mean, variance = tf.nn.moments(x, axes=[0])
            moving = v1.get_variable("moving", initializer=np.zeros(5, np.float32))
            with tf.control_dependencies([v1.assign_add(moving, mean)]):
                y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
        plan = wb.plan_fusion(graph)
        assert len(plan.of("batch normalization")) == 1
        for config in (None, wb.apply(plan)):
            with v1.Session(graph=graph, config=config) as session:
                session.run("begin")
                session.run(mean + 0.0)
                assert not session.run(moving).any()
                session.run(y)
                np.testing.assert_allclose(session.run([moving, mean])[0], session.run(mean), 1e-5)

    def test_of_gradients_that_are_given_from_elsewhere(self) -> None:
        with built() as graph:
            y, _, _ = normal(layer(matrix(20, 4), 5, "l"), "n")
            above = tf.cos(y)
            count, counts = counter("count")
            with tf.control_dependencies([counts]):
                kernel, gamma, beta = v1.trainable_variables()
                gradients = tf.gradients(y, [kernel, gamma, beta], grad_ys=above)
        for each in gradients:
            require_counted(graph, each, count)

    def test_of_two_for_moments_of_each_other(self) -> None:
        """One op each, and neither can wait for the other as a whole."""
        with built() as graph:
            one, other = (layer(matrix(20, 4), units, f"l{units}") for units in (5, 6))
            first, second = tf.nn.moments(one, axes=[0]), tf.nn.moments(other, axes=[0])
            for x, moments, waits in ((one, first, second), (other, second, first)):
                gamma, beta = variables(x.shape[1], x.op.name)
                with tf.control_dependencies([waits[0] + 1.0]):
                    tf.nn.batch_normalization(x, *moments, beta, gamma, 1e-3, name="y")
            named = ("y/add_1:0", "y_1/add_1:0")
            results = [graph.get_tensor_by_name(each) for each in named]
            train_op = v1.train.GradientDescentOptimizer(0.1).minimize(
                tf.add_n([loss_of(each) for each in results])
            )
        plan = wb.plan_fusion(graph)
        assert [each.gradients for each in plan.of("batch normalization")] == [1, 1]
        found, _ = trained(graph, results, train_op, wb.apply(plan))
        expected, _ = trained(graph, results, train_op, None)
        for values in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
            np.testing.assert_allclose(*values, rtol=1e-3, atol=1e-3)

    @pytest.mark.parametrize("kind", ["ref", "resource"])
    def test_of_a_training_step_for_moving_moments(self, kind: str) -> None:
        """As TensorFlow 1 asks for it; nothing of the stock ops is left behind."""
        with built() as graph:
            x, updates = matrix(20, 4), []
            for units in (5, 6):
                x, mean, variance = normal(layer(x, units, f"l{units}"), f"n{units}", kind)
                for name, moment in (("mean", mean), ("variance", variance)):
                    with v1.variable_scope(f"n{units}", use_resource=kind == "resource"):
                        zeros = np.zeros(units, np.float32)
                        moving = v1.get_variable(name, initializer=zeros, trainable=False)
                    updates.append(v1.assign_sub(moving, 0.1 * (moving - moment)))
            loss = loss_of(x)
            with tf.control_dependencies(updates):
                train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        plan = wb.plan_fusion(graph)
        assert [each.gradients for each in plan.of("batch normalization")] == [1, 1]
        found, ours = trained(graph, loss, train_op, wb.apply(plan))
        expected, stock = trained(graph, loss, train_op, None)
        for values in zip([found, *ours], [expected, *stock], strict=True):
            np.testing.assert_allclose(*values, rtol=1e-3, atol=1e-3)
        ops = ran(graph, [loss, train_op], wb.apply(plan))
        assert ops.count("WorkbenchBatchNormGrad") == 2
        assert not {"SquaredDifference", "Rsqrt", "RsqrtGrad", "StopGradient"}.intersection(ops)


def require_same(graph: tf.Graph, fetches: Any, reasons: list[str], norms: int) -> None:
    plan = wb.plan_fusion(graph)
    assert (len(plan.of("batch normalization")), [each.reason for each in plan.refusals]) == (
        norms,
        reasons,
    )
    found = []
    for config in (v1.ConfigProto(device_count={"CPU": 2}) for _ in range(2)):
        if found:
            wb.apply(plan, config)
        with v1.Session(graph=graph, config=config) as session:
            session.run("begin")
            found.append(session.run(tf.nest.flatten(fetches)))
    for values in zip(*found, strict=True):
        np.testing.assert_allclose(*values, rtol=1e-3, atol=1e-4)


ELSEWHERE = "it is in a branch or a loop, or on more than one device"


@pytest.fixture
def control_flow(v2: bool) -> Iterator[None]:
    before = v1.control_flow_v2_enabled()
    (v1.enable_control_flow_v2 if v2 else v1.disable_control_flow_v2)()
    yield
    (v1.enable_control_flow_v2 if before else v1.disable_control_flow_v2)()


class TestPlaces:
    def test_of_another_device_than_the_variables(self) -> None:
        with built() as graph:
            x = layer(matrix(20, 4), 5, "l")
            gamma, beta = variables(5, "n")
            with tf.device("/cpu:1"):
                moments = tf.nn.moments(x, axes=[0])
                y = tf.nn.batch_normalization(x, *moments, beta, gamma, 1e-3)
                gradients = tf.gradients(loss_of(y), v1.trainable_variables())
        require_same(graph, [y, gradients], [], 1)

    def test_on_two_devices(self) -> None:
        with built() as graph:
            x = layer(matrix(20, 4), 5, "l")
            gamma, beta = variables(5, "n")
            moments = tf.nn.moments(x, axes=[0])
            with tf.device("/cpu:1"):
                y = tf.nn.batch_normalization(x, *moments, beta, gamma, 1e-3)
        require_same(graph, y, [ELSEWHERE], 0)

    @pytest.mark.parametrize("v2", [False, True])
    @pytest.mark.parametrize("kind", ["branch", "loop"])
    @pytest.mark.usefixtures("control_flow")
    def test_in_branches_and_loops(self, kind: str, v2: bool) -> None:
        with built() as graph:
            # What is around it is fused all the same.
            x, _, _ = normal(layer(matrix(20, 4), 5, "l"), "n")
            gamma, beta = (tf.constant(np.full(5, each, np.float32)) for each in (2, 0.5))

            def once(value: Any) -> tf.Tensor:
                moments = tf.nn.moments(value, axes=[0])
                return tf.nn.batch_normalization(value, *moments, beta, gamma, 1e-3)

            if kind == "branch":
                yes = v1.placeholder_with_default(True, [])
                y = v1.cond(yes, lambda: once(x), lambda: x)
            else:
                count = v1.placeholder_with_default(2, [])
                _, y = v1.while_loop(
                    lambda i, _: i < count, lambda i, value: (i + 1, once(value)), [0, x]
                )
            gradients = tf.gradients(loss_of(y), v1.trainable_variables())
        plan = wb.plan_fusion(graph)
        require_same(graph, [y, gradients], [each.reason for each in plan.refusals], 1)
        assert len(plan.refusals) == (not v2)

    def test_in_functions_of_functions(self) -> None:
        with built() as graph:
            gamma, beta = variables(5, "f", "resource")

            @tf.function(autograph=False)
            def inner(value: Any) -> tf.Tensor:
                moments = tf.nn.moments(value, axes=[0])
                return tf.nn.batch_normalization(value, *moments, beta, gamma, 1e-3)

            @tf.function(autograph=False)
            def outer(value: Any) -> tf.Tensor:
                return inner(value) + inner(2.0 * value)

            y, _, _ = normal(outer(layer(matrix(20, 4), 5, "l")), "n")
            gradients = tf.gradients(loss_of(y), v1.trainable_variables())
        require_same(graph, [y, gradients], [], 1)

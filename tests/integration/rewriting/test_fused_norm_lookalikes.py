"""Graphs that look like batch normalizations, or hold more: whatever is fetched has its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.builders.batch_norms import built, layer, loss_of, matrix, normal, variables
from tests.builders.fused_graphs import EXAMPLES

v1 = tf.compat.v1
# Tensors of a normalization, in its scope.
INNER = (
    *("moments/mean", "moments/SquaredDifference", "moments/variance", "moments/Squeeze"),
    *("moments/Squeeze_1", "batchnorm/add", "batchnorm/Rsqrt", "batchnorm/mul", "batchnorm/mul_1"),
    *("batchnorm/mul_2", "batchnorm/sub"),
)


def inner(name: str) -> tf.Tensor:
    return v1.get_default_graph().get_tensor_by_name(f"normal_n/{name}:0")


def numbers(graph: tf.Graph) -> list[tf.Tensor]:
    """All that can be fetched by name and changes nothing."""
    reads = {"Identity", "ReadVariableOp"}
    tensors = [
        tensor
        for op in graph.get_operations()
        if not op.type.startswith("Assign")
        for tensor in op.outputs
        if graph.is_fetchable(tensor) and tensor.dtype in (tf.float32, tf.int32)
    ]
    return [each for each in tensors if each.op.inputs or each.op.type not in reads]


def require_right(graph: tf.Graph, norms: int, reason: str = "") -> Any:
    """Fetches all tensors at once, and some alone, with and without the plan; returns it."""
    plan = wb.plan_fusion(graph)
    assert len(plan.of("batch normalization")) == norms, plan.describe()
    assert [each.reason for each in plan.refusals if reason not in each.reason] == []
    assert bool(reason) == bool(plan.refusals), plan.describe()
    tensors = numbers(graph)
    alone, found = tensors[:: 1 + len(tensors) // 4], []
    for config in (None, wb.apply(plan)):
        with v1.Session(graph=graph, config=config) as session:
            session.run("begin")
            found.append([*session.run(tensors), *map(session.run, alone)])
    for tensor, one, other in zip([*tensors, *alone], *found, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-3, atol=2e-4, err_msg=tensor.name)
    return plan


class TestFetches:
    @pytest.mark.slow
    @settings(max_examples=max(8, EXAMPLES.max_examples // 4), deadline=None)
    @given(
        wanted=st.lists(st.sampled_from(INNER), max_size=3),
        of_variables=st.booleans(),
        of_x=st.booleans(),
        stopped=st.lists(st.sampled_from(INNER[:-1]), max_size=1),
        is_read=st.lists(st.sampled_from(INNER), max_size=1),
        on_input=st.booleans(),
        times=st.integers(1, 2),
    )
    def test_gradients_of_whatever_is_inside(
        self,
        wanted: list[str],
        of_variables: bool,
        of_x: bool,
        stopped: list[str],
        is_read: list[str],
        on_input: bool,
        times: int,
    ) -> None:
        with built() as graph:
            x = matrix(20, 4)
            x = x if on_input else layer(x, 4, "l")
            normed, _, _ = normal(x, "n")
            targets = [*map(inner, wanted), *[x] * of_x]
            targets += v1.trainable_variables() * of_variables
            if targets:
                loss = loss_of(normed)
                for _ in range(times):
                    tf.gradients(loss, targets, stop_gradients=[*map(inner, stopped)])
            for name in is_read:
                tf.sin(inner(name))
        plan = wb.plan_fusion(graph)
        require_right(
            graph,
            len(plan.of("batch normalization")),
            plan.refusals[0].reason if plan.refusals else "",
        )

    def test_moments_of_two(self) -> None:
        with built() as graph:
            x = layer(matrix(20, 4), 5, "l")
            mean, variance = tf.nn.moments(x, axes=[0])
            for name in ("one", "other"):
                gamma, beta = variables(5, name)
                tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
        require_right(graph, 1, "another one is normalized by the same moments")

    def test_two_gradients_from_one_tensor(self) -> None:
        with built() as graph:
            normed, _, _ = normal(matrix(20, 4), "n")
            above = tf.cos(normed)
            for each in v1.trainable_variables():
                tf.gradients(normed, each, grad_ys=above)
        require_right(graph, 1)
        with graph.as_default():
            tf.gradients(normed, v1.trainable_variables(), grad_ys=above)
        require_right(graph, 0, "other ops read what it computes")

    def test_what_else_is_multiplied_with_the_scale(self) -> None:
        with built() as graph:
            normed, _, _ = normal(layer(matrix(20, 4), 5, "l"), "n")
            tf.multiply(tf.sin(normed), inner("batchnorm/mul"))
        require_right(graph, 0, "other ops read what it computes")

    def test_gradients_of_gradients(self) -> None:
        with built() as graph:
            normed, _, _ = normal(layer(matrix(20, 4), 5, "l"), "n")
            own = v1.trainable_variables()
            first = tf.gradients(loss_of(normed), own)
            tf.gradients([tf.reduce_sum(tf.square(each)) for each in first], own)
        require_right(graph, 0, "other ops read what it computes")

    def test_x_that_is_summed_twice(self) -> None:
        with built() as graph:
            x = layer(matrix(20, 4), 5, "l")
            normed, _, _ = normal(x, "n")
            loss = loss_of(normed + x) + loss_of(normed * tf.sin(x))
            tf.gradients(loss, [x, *v1.trainable_variables()])
        assert require_right(graph, 1).of("batch normalization")[0].gradients == 1

    def test_one_gamma_that_is_beta_too(self) -> None:
        with built() as graph:
            x = layer(matrix(20, 4), 5, "l")
            mean, variance = tf.nn.moments(x, axes=[0])
            both, _ = variables(5, "n")
            normed = tf.nn.batch_normalization(x, mean, variance, both, both, 1e-3)
            tf.gradients(loss_of(normed), v1.trainable_variables())
        require_right(graph, 1)


def other_epsilon(x: Any, gamma: Any, beta: Any) -> Any:
    mean, variance = tf.nn.moments(x, axes=[0])
    epsilon = tf.fill([4], 1e-3)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)


def kept_dimensions(x: Any, gamma: Any, beta: Any) -> Any:
    moments = tf.nn.moments(x, axes=[0], keepdims=True)
    return tf.nn.batch_normalization(x, *moments, beta, gamma, 1e-3)


def stopped(x: Any, gamma: Any, beta: Any) -> Any:
    moments = map(tf.stop_gradient, tf.nn.moments(x, axes=[0]))
    return tf.nn.batch_normalization(x, *moments, beta, gamma, 1e-3)


def stopped_x(x: Any, gamma: Any, beta: Any) -> Any:
    moments = tf.nn.moments(tf.stop_gradient(x), axes=[0])
    return tf.nn.batch_normalization(x, *moments, beta, gamma, 1e-3)


def swapped(x: Any, gamma: Any, beta: Any) -> Any:
    mean, variance = tf.nn.moments(x, axes=[0])
    return tf.nn.batch_normalization(x, variance, mean + 9.0, beta, gamma, 1e-3)


def of_another(x: Any, gamma: Any, beta: Any) -> Any:
    mean, _ = tf.nn.moments(x, axes=[0])
    _, variance = tf.nn.moments(tf.sin(x), axes=[0])
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)


def by_rows(x: Any, gamma: Any, beta: Any) -> Any:
    moments = tf.nn.moments(x, axes=[1])
    return tf.nn.batch_normalization(x, *moments, beta, gamma, 1e-3)


def wide(x: Any, gamma: Any, beta: Any) -> Any:
    gamma, beta = gamma * tf.ones([4, 1]), beta * tf.ones([4, 1])
    moments = tf.nn.moments(x, axes=[0])
    return tf.nn.batch_normalization(x, *moments, beta, gamma, 1e-3)


class TestNone:
    @pytest.mark.parametrize(
        "made",
        [other_epsilon, kept_dimensions, stopped, stopped_x, swapped, of_another, by_rows, wide],
    )
    def test_that_only_looks_alike(self, made: Callable[..., Any]) -> None:
        with built() as graph:
            x = layer(matrix(4, 4), 4, "l")
            normed = made(x, *variables(4, "n"))
            tf.gradients(loss_of(normed), [x, *v1.trainable_variables()])
        require_right(graph, 0)

    def test_whose_gamma_is_fed(self) -> None:
        """The mean can be fetched without it."""
        with built() as graph:
            x = matrix(20, 4)
            mean, variance = tf.nn.moments(x, axes=[0])
            gamma = v1.placeholder(tf.float32, [4])
            tf.nn.batch_normalization(x, mean, variance, tf.zeros([4]), gamma, 1e-3)
            more = mean + 1.0
        plan = wb.plan_fusion(graph)
        assert "gamma or beta is computed" in plan.refusals[0].reason
        with v1.Session(graph=graph, config=wb.apply(plan)) as session:
            session.run(more)

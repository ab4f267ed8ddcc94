"""Interactions of factorization machines in a finished graph, each done by one op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.builders.batch_norms import built, loss_of
from tests.builders.examples import few
from tests.builders.fused_graphs import OPTIMIZERS, ran, require_trains_alike
from tests.builders.fused_parts import interactions_of
from tests.builders.interactions import require_alike, require_alike_in_a_function, vectors_of
from tests.builders.intra_op_threads import require_same_bits

v1 = tf.compat.v1
FORWARD, GRADIENT = "WorkbenchFmInteraction", "WorkbenchFmInteractionGrad"
SQUARES: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "square": tf.square,
    "pow": lambda x: tf.pow(x, 2),
    "product": lambda x: x * x,
}


def interaction(
    x: tf.Tensor, square: str = "square", axis: Any = 1, keepdims: bool = False
) -> tf.Tensor:
    """As models write it."""
    squared = SQUARES[square]
    total = tf.reduce_sum(x, axis, keepdims=keepdims)
    return 0.5 * (squared(total) - tf.reduce_sum(squared(x), axis, keepdims=keepdims))


def large() -> list[np.ndarray]:
    with built() as graph:
        drawn = np.random.default_rng(1).normal(size=[3000, 26, 16]).astype(np.float32)
        x = v1.placeholder_with_default(drawn, [None, 26, 16])
        y = interaction(x)
        (gradient,) = tf.gradients(tf.reduce_sum(y * y), [x])
    with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
        return session.run([y, gradient])


class TestSessions:
    @few(10, 80)
    @given(
        rows=st.integers(0, 40),
        count=st.integers(1, 9),
        dim=st.sampled_from((1, 3, 8, 16, 20)),
        square=st.sampled_from(sorted(SQUARES)),
        axis=st.sampled_from((1, -2, [1])),
        keepdims=st.booleans(),
        known=st.booleans(),
        shared=st.booleans(),
        optimizer=st.sampled_from(("adagrad", "descent")),
    )
    def test_train_as_stock_ones_do(
        self,
        rows: int,
        count: int,
        dim: int,
        square: str,
        axis: Any,
        keepdims: bool,
        known: bool,
        shared: bool,
        optimizer: str,
    ) -> None:
        with built() as graph:
            x = vectors_of(rows, count, dim, known=known)
            y = interaction(x, square, axis, keepdims)
            # Of large numbers a sine is what was rounded off.
            loss = tf.reduce_mean(tf.sin(0.1 * y)) + (tf.reduce_mean(x * x) if shared else 0.0)
            train_op = OPTIMIZERS[optimizer]().minimize(loss)
        plan = require_alike(graph, [loss, y], train_op, "FM")
        assert [each.gradients for each in interactions_of(plan)] == [1]

    @pytest.mark.parametrize("known", [True, False])
    def test_run_one_op_forward_and_one_back(self, known: bool) -> None:
        with built() as graph:
            y = interaction(vectors_of(12, 5, 4, known=known))
            train_op = OPTIMIZERS["adagrad"]().minimize(loss_of(y))
        ops = ran(graph, [y, train_op], wb.apply(wb.plan_fusion(graph)))
        assert (ops.count(FORWARD), ops.count(GRADIENT)) == (1, 1)
        assert "Tile" not in ops

    def test_give_the_same_bits_whatever_the_threads(self) -> None:
        require_same_bits(large)

    def test_without_a_gradient(self) -> None:
        with built() as graph:
            y = interaction(vectors_of(7, 3, 4))
        assert interactions_of(require_alike(graph, y, y.op, "FM"))[0].gradients == 0

    def test_two_losses_have_a_gradient_each(self) -> None:
        with built() as graph:
            y = interaction(vectors_of(7, 3, 4))
            wanted = v1.trainable_variables()
            gradients = [tf.gradients(tf.reduce_sum(each), wanted) for each in (y * y, tf.cos(y))]
        assert interactions_of(require_alike(graph, gradients, y.op, "FM"))[0].gradients == 2

    def test_beside_dots_of_the_same_vectors(self) -> None:
        with built() as graph:
            x = vectors_of(7, 3, 4)
            products = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, 9])
            y = tf.concat([interaction(x), tf.gather(products, [3, 6, 7], axis=1)], 1)
            train_op = OPTIMIZERS["descent"]().minimize(loss_of(y))
        plan = wb.plan_fusion(graph)
        # The gradient of x is one sum: one of the two goes first.
        assert len(interactions_of(plan)) == 1
        assert [each.reason for each in plan.refusals] == [
            "its gradient is summed with that of another one"
        ]
        require_trains_alike(graph, plan, y, train_op, rtol=1e-4, atol=1e-5)

    def test_wait_for_what_stock_ones_waited_for(self) -> None:
        with built() as graph:
            x = vectors_of(9, 4, 4)
            count = v1.get_variable("count", initializer=0.0, trainable=False)
            with tf.control_dependencies([v1.assign_add(count, 1.0).op]):
                y = interaction(x)
            (gradient,) = tf.gradients(tf.reduce_sum(y * y), [x])
        plan = wb.plan_fusion(graph)
        assert len(interactions_of(plan)) == 1
        for fetch in (y, gradient):
            with v1.Session(graph=graph, config=wb.apply(plan)) as session:
                session.run("begin")
                session.run(fetch)
                assert session.run(count) == 1.0


def test_a_plan_says_which_interactions_it_has() -> None:
    with built() as graph:
        loss_of(interaction(vectors_of(7, 3, 4)))
    plan = wb.plan_fusion(graph)
    assert repr(plan) == "FusionPlan(1 FM interaction, 0 stay)"
    assert plan.describe().startswith("1 FM interaction in one op\n  sub")
    assert plan.count == 1


def test_of_a_function() -> None:
    require_alike_in_a_function(interaction)


class TestOthers:
    """What is alike but more: it stays, and says why, or is left alone."""

    def refused(self, graph: tf.Graph) -> list[str]:
        plan = wb.plan_fusion(graph)
        assert not interactions_of(plan), plan.describe()
        return [each.reason for each in plan.refusals]

    def test_a_sum_that_something_else_reads(self) -> None:
        with built() as graph:
            x = vectors_of(7, 3, 4)
            total = tf.reduce_sum(x, 1)
            loss_of(tf.square(total) - tf.reduce_sum(tf.square(x), 1) + total)
        assert self.refused(graph) == ["other ops read what it computes on its way"]

    @pytest.mark.parametrize("kind", ["other vectors", "double", "examples", "columns", "cubes"])
    def test_other_differences(self, kind: str) -> None:
        with built() as graph:
            x = vectors_of(7, 3, 4)
            other = x + 1.0 if kind == "other vectors" else x
            if kind == "double":
                x, other = tf.cast(x, tf.float64), tf.cast(x, tf.float64)
            axis = {"examples": 0, "columns": 2}.get(kind, 1)
            power = 3.0 if kind == "cubes" else 2.0
            squares = tf.reduce_sum(tf.pow(other, power), axis)
            loss_of(tf.cast(tf.pow(tf.reduce_sum(x, axis), power) - squares, tf.float32))
        assert self.refused(graph) == []

"""Dot interactions of a finished graph, each done by one op: its sessions train as they did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.builders.batch_norms import built, loss_of
from tests.builders.examples import few
from tests.builders.fused_graphs import OPTIMIZERS, ran
from tests.builders.fused_parts import interactions_of
from tests.builders.interactions import require_alike, require_alike_in_a_function, vectors_of
from tests.builders.intra_op_threads import require_same_bits

v1 = tf.compat.v1
FORWARD, GRADIENT = "WorkbenchDotInteraction", "WorkbenchDotInteractionGrad"


def below(vectors: int) -> list[int]:
    return [row * vectors + column for row in range(vectors) for column in range(row)]


def dots(x: tf.Tensor, pairs: Sequence[int], dtype: Any = np.int32) -> tf.Tensor:
    """As DLRM takes them."""
    vectors = x.shape[1]
    products = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, vectors * vectors])
    return tf.gather(products, np.array(pairs, dtype), axis=1)


def large_dots() -> list[np.ndarray]:
    with built() as graph:
        drawn = np.random.default_rng(1).normal(size=[3000, 27, 16]).astype(np.float32)
        x = v1.placeholder_with_default(drawn, [None, 27, 16])
        y = dots(x, below(27))
        (gradient,) = tf.gradients(tf.reduce_sum(y * y), [x])
    with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
        return session.run([y, gradient])


class TestSessions:
    @few(8, 60)
    @given(
        rows=st.integers(0, 40),
        count=st.integers(1, 9),
        dim=st.sampled_from((1, 3, 8, 16, 20)),
        picked=st.lists(st.integers(0, 10**6), min_size=1, max_size=30),
        known=st.booleans(),
        shared=st.booleans(),
        optimizer=st.sampled_from(("adagrad", "descent")),
        dtype=st.sampled_from((np.int32, np.int64)),
    )
    def test_train_as_stock_ones_do(
        self,
        rows: int,
        count: int,
        dim: int,
        picked: list[int],
        known: bool,
        shared: bool,
        optimizer: str,
        dtype: Any,
    ) -> None:
        with built() as graph:
            # Of a static batch of nothing TensorFlow knows no shape behind a reshape.
            x = vectors_of(rows, count, dim, known=known and rows > 0)
            # Any pairs, some of them twice, some of a vector with itself.
            y = dots(x, [place % count**2 for place in picked], dtype)
            loss = tf.reduce_mean(tf.sin(y)) + (tf.reduce_mean(x * x) if shared else 0.0)
            train_op = OPTIMIZERS[optimizer]().minimize(loss)
        plan = require_alike(graph, [loss, y], train_op, "dot")
        assert [each.gradients for each in interactions_of(plan)] == [1]

    @pytest.mark.parametrize("known", [True, False])
    def test_run_one_op_forward_and_one_back(self, known: bool) -> None:
        with built() as graph:
            y = dots(vectors_of(12, 5, 4, known=known), below(5))
            train_op = OPTIMIZERS["adagrad"]().minimize(loss_of(y))
        ops = ran(graph, [y, train_op], wb.apply(wb.plan_fusion(graph)))
        assert (ops.count(FORWARD), ops.count(GRADIENT)) == (1, 1)
        assert not {"BatchMatMulV2", "UnsortedSegmentSum", "Transpose", "GatherV2"} & set(ops)

    def test_give_the_same_bits_whatever_the_threads(self) -> None:
        require_same_bits(large_dots)

    def test_without_a_gradient(self) -> None:
        with built() as graph:
            y = dots(vectors_of(7, 3, 4), below(3))
        assert interactions_of(require_alike(graph, y, y.op, "dot"))[0].gradients == 0

    def test_two_losses_have_a_gradient_each(self) -> None:
        with built() as graph:
            y = dots(vectors_of(7, 3, 4), below(3))
            wanted = v1.trainable_variables()
            gradients = [tf.gradients(tf.reduce_sum(each), wanted) for each in (y * y, tf.cos(y))]
        assert interactions_of(require_alike(graph, gradients, y.op, "dot"))[0].gradients == 2

    def test_one_behind_the_other(self) -> None:
        """One step: products of four factors make much of what a step before rounds otherwise."""
        with built() as graph:
            first = dots(vectors_of(9, 4, 4), below(4))
            y = dots(tf.reshape(first, [-1, 3, 2]), below(3))
            train_op = OPTIMIZERS["descent"]().minimize(loss_of(y))
        require_alike(graph, [first, y], train_op, "dot", "dot", steps=1)

    def test_wait_for_what_stock_ones_waited_for(self) -> None:
        with built() as graph:
            x = vectors_of(9, 4, 4)
            count = v1.get_variable("count", initializer=0.0, trainable=False)
            with tf.control_dependencies([v1.assign_add(count, 1.0).op]):
                y = dots(x, below(4))
            (gradient,) = tf.gradients(tf.reduce_sum(y * y), [x])
        plan = wb.plan_fusion(graph)
        assert len(interactions_of(plan)) == 1
        for fetch in (y, gradient):
            with v1.Session(graph=graph, config=wb.apply(plan)) as session:
                session.run("begin")
                session.run(fetch)
                assert session.run(count) == 1.0


def test_of_a_function() -> None:
    require_alike_in_a_function(lambda x: dots(x, below(4)))


class TestOthers:
    """What is alike but more: it stays, and says why, or is left alone."""

    def refused(self, graph: tf.Graph) -> list[str]:
        plan = wb.plan_fusion(graph)
        assert not interactions_of(plan), plan.describe()
        return [each.reason for each in plan.refusals]

    def test_products_that_something_else_reads(self) -> None:
        with built() as graph:
            x = vectors_of(7, 3, 4)
            products = tf.matmul(x, x, transpose_b=True)
            y = tf.gather(tf.reshape(products, [-1, 9]), below(3), axis=1)
            loss_of(y + tf.reduce_sum(products))
        assert self.refused(graph) == ["other ops read what it computes on its way"]

    def test_in_a_branch(self) -> None:
        with built() as graph:
            x = vectors_of(7, 3, 4)
            v1.disable_control_flow_v2()
            taken = v1.placeholder_with_default(True, [])
            v1.cond(taken, lambda: dots(x, below(3)), lambda: tf.zeros([7, 3]))
            v1.enable_control_flow_v2()
        assert self.refused(graph) == ["it is in a branch or a loop, or on more than one device"]

    @pytest.mark.parametrize("kind", ["different", "double", "not turned", "computed", "rows"])
    def test_other_products(self, kind: str) -> None:
        with built() as graph:
            x = vectors_of(7, 3, 3)
            other = x + 1.0 if kind == "different" else x
            x, other = (
                tf.cast(each, tf.float64) if kind == "double" else each for each in (x, other)
            )
            products = tf.reshape(tf.matmul(x, other, transpose_b=kind != "not turned"), [-1, 9])
            pairs: Any = below(3)
            if kind == "computed":
                pairs = v1.placeholder_with_default(pairs, [3])
            loss_of(
                tf.cast(tf.gather(products, pairs, axis=0 if kind == "rows" else 1), tf.float32)
            )
        assert self.refused(graph) == []

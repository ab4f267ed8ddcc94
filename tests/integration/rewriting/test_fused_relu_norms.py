"""Batch normalizations of ReLUs: the op of the gradient makes that of the bias in front too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.core.framework import graph_pb2

import workbench as wb
from tests.builders.batch_norms import built, loss_of, matrix, normal
from tests.builders.examples import few
from tests.builders.fused_graphs import OPTIMIZERS, ran, trained
from tests.builders.fused_parts import relus_of
from tests.builders.intra_op_threads import require_same_bits
from tests.integration.rewriting.test_fused_norm_lookalikes import require_right
from tests.integration.rewriting.test_fused_norm_order import counter, require_same

v1 = tf.compat.v1
GRADIENT = "WorkbenchBatchNormGrad"
BEHIND = {"ReluGrad", "BiasAddGrad"}


def dense(x: Any, units: int, name: str, kind: str = "ref") -> tf.Tensor:
    """What a ReLU is given: of whole numbers it is exactly zero in many places."""
    random = np.random.default_rng(units)
    kernel, bias = random.integers(-1, 2, [x.shape[1], units]), random.integers(-1, 2, [units])
    with v1.variable_scope(name, use_resource=kind == "resource"):
        weights = v1.get_variable("kernel", initializer=kernel.astype(np.float32))
        added = v1.get_variable("bias", initializer=bias.astype(np.float32))
        return tf.nn.bias_add(tf.matmul(x, weights), added)


def whole_numbers(rows: int, columns: int, *, known: bool = False) -> tf.Tensor:
    drawn = np.random.default_rng(rows).integers(-2, 3, [rows, columns]).astype(np.float32)
    return v1.placeholder_with_default(drawn, [rows if known else None, columns])


def relus(graph: tf.Graph) -> list[int]:
    """Of each normalization, of how many ReLUs its ops make the gradients."""
    return [relus_of(each) for each in wb.plan_fusion(graph).of("batch normalization")]


class TestSessions:
    @pytest.mark.slow
    @few(8, 150)
    @given(
        rows=st.integers(1, 300),
        units=st.sampled_from((1, 2, 7, 16, 33, 64, 90)),
        kind=st.sampled_from(("ref", "resource")),
        known=st.booleans(),
        strange=st.lists(
            st.tuples(st.integers(0, 10**6), st.sampled_from((np.nan, np.inf, 1e-40, 1e15))),
            max_size=2,
        ),
    )
    def test_gradients_are_stock_ones(
        self, rows: int, units: int, kind: str, known: bool, strange: Any
    ) -> None:
        """Also where that of the result is no number, and the ReLU is given zero."""
        with built() as graph:
            below = dense(whole_numbers(rows, 5, known=known), units, "l", kind)
            y, _, _ = normal(tf.nn.relu(below), "n", kind)
            target = np.random.default_rng(0).normal(size=[rows, units]).astype(np.float32)
            for at, value in strange:
                target.flat[at % target.size] = value
            loss = tf.reduce_sum(tf.square(y - target))
            gradients = tf.gradients(loss, [below, *v1.trainable_variables()])
        assert relus(graph) == [1]
        found = []
        for config in (None, wb.apply(wb.plan_fusion(graph))):
            with v1.Session(graph=graph, config=config) as session:
                session.run("begin")
                found.append(session.run([below, *gradients]))
        given_, *_ = found[0]
        assert rows * units < 50 or (given_ == 0).any()
        for stock, ours in zip(*found, strict=True):
            finite = np.isfinite(stock)
            np.testing.assert_array_equal(np.isfinite(ours), finite)
            size = np.abs(stock[finite]).max(initial=1.0)
            np.testing.assert_allclose(
                ours[finite] / size, stock[finite] / size, rtol=2e-3, atol=1e-4
            )

    @pytest.mark.parametrize("kind", ["ref", "resource"])
    def test_run_one_op_back(self, kind: str) -> None:
        with built() as graph:
            x = matrix(40, 7)
            for number, units in enumerate((5, 16, 3)):
                x, _, _ = normal(tf.nn.relu(dense(x, units, f"l{number}", kind)), f"n{number}")
            loss = loss_of(x)
            train_op = OPTIMIZERS["descent"]().minimize(loss)
        plan = wb.plan_fusion(graph)
        assert [relus_of(each) for each in plan.of("batch normalization")] == [1, 1, 1]
        assert "normal_n0/batchnorm, with the gradient of the ReLU in front" in plan.describe()
        ops, plain = (ran(graph, [loss, train_op], each) for each in (wb.apply(plan), None))
        assert ops.count(GRADIENT) == 3 and not BEHIND.intersection(ops)
        assert set(plain) > BEHIND
        # All that is read of an op's outputs are the outputs themselves.
        assert ops.count("Identity") <= plain.count("Identity")
        ours, stock = (trained(graph, loss, train_op, each)[0] for each in (wb.apply(plan), None))
        np.testing.assert_allclose(ours[0], stock[0], rtol=1e-5)
        np.testing.assert_allclose(ours, stock, rtol=2e-2)

    def test_everything_can_be_fetched(self) -> None:
        with built() as graph:
            y, _, _ = normal(tf.nn.relu(dense(whole_numbers(30, 4), 5, "l")), "n")
            tf.gradients(loss_of(y), v1.trainable_variables())
        assert relus_of(require_right(graph, 1).of("batch normalization")[0]) == 1

    def test_without_a_bias(self) -> None:
        with built() as graph:
            below = dense(whole_numbers(30, 4), 5, "l").op.inputs[0]
            y, _, _ = normal(tf.nn.relu(below), "n")
            tf.gradients(loss_of(y), below)
        assert relus_of(require_right(graph, 1).of("batch normalization")[0]) == 1

    def test_two_losses(self) -> None:
        with built() as graph:
            y, _, _ = normal(tf.nn.relu(dense(whole_numbers(30, 4), 5, "l")), "n")
            for loss in (loss_of(y), tf.reduce_sum(y**3)):
                tf.gradients(loss, v1.trainable_variables())
        assert relus_of(require_right(graph, 1).of("batch normalization")[0]) == 2

    def test_through_identities(self) -> None:
        with built() as graph:
            x = tf.identity(tf.nn.relu(dense(whole_numbers(30, 4), 5, "l")))
            y, _, _ = normal(x, "n")
            (of_x,) = tf.gradients(loss_of(y), x)
            of_input = tf.raw_ops.ReluGrad(gradients=tf.identity(of_x), features=tf.identity(x))
            tf.raw_ops.BiasAddGrad(out_backprop=tf.identity(of_input))
        plan = require_right(graph, 1)
        assert relus_of(plan.of("batch normalization")[0]) == 1 and of_x.op.name in plan.bypassed

    @pytest.mark.slow
    def test_give_the_same_bits_whatever_the_threads(self) -> None:
        require_same_bits(large_gradients)


def large_gradients() -> list[np.ndarray]:
    with built() as graph:
        drawn = np.random.default_rng(1).normal(size=[3000, 200]).astype(np.float32)
        x = v1.get_variable("x", initializer=drawn)
        bias = v1.get_variable("bias", initializer=np.zeros(200, np.float32))
        y, _, _ = normal(tf.nn.relu(tf.nn.bias_add(x, bias)), "n")
        gradients = tf.gradients(tf.square(y), [x, bias])
    assert relus(graph) == [1]
    with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
        session.run("begin")
        return session.run(gradients)


def relu_grad(gradients: tf.Tensor, features: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.ReluGrad(gradients=gradients, features=features)


def read_before(of_x: tf.Tensor, x: tf.Tensor) -> None:
    tf.sin(of_x)
    relu_grad(of_x, x)


def waited_for(of_x: tf.Tensor, x: tf.Tensor) -> None:
    with tf.control_dependencies([of_x]):
        tf.sin(x)
    relu_grad(of_x, x)


def waited_for_an_identity(of_x: tf.Tensor, x: tf.Tensor) -> None:
    same = tf.identity(of_x)
    with tf.control_dependencies([same]):
        tf.sin(x)
    relu_grad(same, x)


def waiting_in_between(of_x: tf.Tensor, x: tf.Tensor) -> None:
    with tf.control_dependencies([tf.sin(x)]):
        same = tf.identity(of_x)
    relu_grad(same, x)


def of_another(of_x: tf.Tensor, x: tf.Tensor) -> None:
    relu_grad(of_x, tf.nn.relu(x.op.inputs[0] + 1.0))


def of_another_alike(of_x: tf.Tensor, x: tf.Tensor) -> None:
    relu_grad(of_x, tf.nn.relu(x.op.inputs[0]))


def of_what_the_relu_is_given(of_x: tf.Tensor, x: tf.Tensor) -> None:
    relu_grad(of_x, x.op.inputs[0])


def swapped(of_x: tf.Tensor, x: tf.Tensor) -> None:
    relu_grad(x, of_x)


def both(of_x: tf.Tensor, x: tf.Tensor) -> None:
    del x
    relu_grad(of_x, of_x)


def twice(of_x: tf.Tensor, x: tf.Tensor) -> None:
    relu_grad(of_x, x)
    relu_grad(of_x, x)


def of_relu6(of_x: tf.Tensor, x: tf.Tensor) -> None:
    tf.raw_ops.Relu6Grad(gradients=of_x, features=x)


class TestStay:
    @pytest.mark.parametrize(
        "reads",
        [
            *(read_before, waited_for, waited_for_an_identity, waiting_in_between, of_another),
            *(of_another_alike, of_what_the_relu_is_given, swapped, both, twice, of_relu6),
        ],
    )
    def test_where_something_differs(self, reads: Callable[..., None]) -> None:
        with built() as graph:
            x = tf.nn.relu(dense(whole_numbers(30, 4), 5, "l"))
            y, _, _ = normal(x, "n")
            reads(tf.gradients(loss_of(y), x)[0], x)
        plan = require_right(graph, 1)
        (norm,) = plan.of("batch normalization")
        assert (norm.gradients, relus_of(norm)) == (1, 0)

    @pytest.mark.parametrize("activation", [tf.nn.relu6, tf.nn.leaky_relu, tf.nn.selu])
    def test_of_other_activations(self, activation: Any) -> None:
        with built() as graph:
            y, _, _ = normal(activation(dense(whole_numbers(30, 4), 5, "l")), "n")
            tf.gradients(loss_of(y), v1.trainable_variables())
        assert relus_of(require_right(graph, 1).of("batch normalization")[0]) == 0

    def test_where_x_has_a_gradient_from_elsewhere(self) -> None:
        with built() as graph:
            x = tf.nn.relu(dense(whole_numbers(30, 4), 5, "l"))
            y, _, _ = normal(x, "n")
            tf.gradients(loss_of(y + x), v1.trainable_variables())
        assert relus_of(require_right(graph, 1).of("batch normalization")[0]) == 0

    def test_on_another_device(self) -> None:
        with built() as graph:
            x = tf.nn.relu(dense(whole_numbers(30, 4), 5, "l"))
            y, _, _ = normal(x, "n")
            (of_x,) = tf.gradients(loss_of(y), x)
            with tf.device("/cpu:1"):
                of_input = relu_grad(of_x, x)
        assert relus(graph) == [0]
        require_same(graph, of_input, [], 1)

    def test_sums_on_another_device(self) -> None:
        with built() as graph:
            x = tf.nn.relu(dense(whole_numbers(30, 4), 5, "l"))
            y, _, _ = normal(x, "n")
            of_input = relu_grad(tf.gradients(loss_of(y), x)[0], x)
            with tf.device("/cpu:1"):
                of_bias = tf.raw_ops.BiasAddGrad(out_backprop=of_input)
        assert relus(graph) == [1] and of_bias.op.name not in replaced(graph)
        require_same(graph, [of_input, of_bias], [], 1)


def replaced(graph: tf.Graph) -> set[str]:
    nodes = graph_pb2.GraphDef.FromString(wb.plan_fusion(graph).replaced).node
    return {node.name for node in nodes}


class TestWaits:
    @pytest.mark.parametrize("around", ["x", "input", "bias"])
    def test_stay(self, around: str) -> None:
        """What counts runs with what waits for it, and only then."""
        with built() as graph:
            x = tf.nn.relu(dense(whole_numbers(30, 4), 5, "l"))
            y, _, _ = normal(x, "n")
            count, counts = counter("count")

            def waits(name: str) -> Any:
                return tf.control_dependencies([counts] if name == around else [])

            (of_x,) = tf.gradients(loss_of(y), x)
            if around == "x":
                of_x.op._add_control_input(counts)
            with waits("input"):
                of_input = relu_grad(of_x, x)
            with waits("bias"):
                of_bias = tf.raw_ops.BiasAddGrad(out_backprop=of_input)
        assert relus(graph) == [1]
        for config in (None, wb.apply(wb.plan_fusion(graph))):
            with v1.Session(graph=graph, config=config) as session:
                session.run("begin")
                session.run(of_input)
                assert session.run(count) == (around != "bias")
                session.run("begin")
                session.run(of_bias)
                assert session.run(count) == 1

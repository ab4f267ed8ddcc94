"""Products of matrices in a finished graph that Workbench's kernel does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st
from tensorflow.python.eager import context

import workbench as wb
from tests.builders.batch_norms import built, layer, loss_of, matrix
from tests.builders.examples import few
from tests.builders.fused_graphs import OPTIMIZERS, ran, trained
from tests.builders.intra_op_threads import require_same_bits
from workbench import _native
from workbench.core.fusion import matmuls
from workbench.core.fusion.placement import Placement
from workbench.experiments.worker.steps.graph_session import fused_lookups

v1 = tf.compat.v1
# About those of tiles, panels and blocks, and none.
SIZES = st.sampled_from((0, 1, 5, 6, 7, 15, 16, 17, 33, 96, 193, 300))


@pytest.fixture(autouse=True)
def made_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the processor be one that the kernel is made for."""
    monkeypatch.setattr(matmuls, "kernel_is_faster", lambda: True)


def product(a: Any, b: Any, *, transposed: tuple[bool, bool], own: bool) -> np.ndarray:
    """By Workbench's kernel, or by TensorFlow's, of shapes that the graph does not know."""
    multiply = _native.library().workbench_mat_mul if own else tf.raw_ops.MatMul
    with tf.Graph().as_default() as graph:
        factors = [v1.placeholder(tf.float32) for _ in range(2)]
        made = multiply(
            a=factors[0], b=factors[1], transpose_a=transposed[0], transpose_b=transposed[1]
        )
        with v1.Session(graph=graph) as session:
            return session.run(made, dict(zip(factors, (a, b), strict=True)))


def drawn(seed: int, shape: Sequence[int]) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def large_products() -> list[np.ndarray]:
    each = ((False, True), (True, False), (True, True))
    a, b = drawn(1, [333, 333]), drawn(2, [333, 333])
    return [product(a, b, transposed=one, own=True) for one in each]


def dense(rows: int = 40, *, known: bool = False, units: int = 48) -> tf.Tensor:
    """Three dense layers, of which the last gives one number."""
    x = matrix(rows, 64, known=known)
    return layer(tf.tanh(layer(tf.tanh(layer(x, units, "a")), units, "b")), 1, "c")


class TestKernel:
    @few(60, 600)
    @given(
        rows=SIZES,
        columns=SIZES,
        inner=SIZES,
        transposed=st.tuples(st.booleans(), st.booleans()),
        seed=st.integers(0, 99),
    )
    @example(rows=0, columns=3, inner=5, transposed=(True, False), seed=0)
    @example(rows=3, columns=5, inner=0, transposed=(False, True), seed=0)
    def test_multiplies_as_the_stock_one(
        self, rows: int, columns: int, inner: int, transposed: tuple[bool, bool], seed: int
    ) -> None:
        shapes = [rows, inner], [inner, columns]
        factors = [
            drawn(seed + i, shape[::-1] if turned else shape)
            for i, (shape, turned) in enumerate(zip(shapes, transposed, strict=True))
        ]
        expected, found = (product(*factors, transposed=transposed, own=own) for own in (0, 1))
        assert found.shape == (rows, columns)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)

    def test_keeps_what_is_no_number_to_its_row(self) -> None:
        a, b = drawn(1, [20, 40]), drawn(2, [50, 20])
        a[3, 7], a[4, 9] = np.inf, np.nan
        found = product(a, b, transposed=(True, True), own=True)
        others = np.delete(found, [7, 9], axis=0)
        assert np.isfinite(others).all() and not np.isfinite(found[[7, 9]]).any()

    def test_gives_the_same_bits_whatever_the_threads(self) -> None:
        require_same_bits(large_products)

    @pytest.mark.parametrize(
        ("a", "b"), [([3, 4], [5, 6]), ([3], [3, 4]), ([3, 4], [4, 5, 6]), ([], [3, 4])]
    )
    def test_refuses_what_the_stock_one_refuses(self, a: list[int], b: list[int]) -> None:
        for own in (False, True):
            with pytest.raises(tf.errors.InvalidArgumentError):
                product(drawn(1, a), drawn(2, b), transposed=(False, False), own=own)


class TestPlan:
    @few(8, 60)
    @given(
        rows=st.sampled_from((0, 1, 31, 64, 200)),
        units=st.sampled_from((32, 48, 100)),
        known=st.booleans(),
        optimizer=st.sampled_from(("adagrad", "descent")),
    )
    def test_trains_as_the_stock_graph_does(
        self, rows: int, units: int, known: bool, optimizer: str
    ) -> None:
        """One step: in later ones, as with Adam, what is rounded otherwise grows."""
        with built() as graph:
            y = dense(rows, known=known, units=units)
            train_op = OPTIMIZERS[optimizer]().minimize(loss_of(y))
        plan = wb.plan_fusion(graph)
        assert plan.matmuls
        expected, found = (
            trained(graph, y, train_op, config, steps=1) for config in (None, wb.apply(plan))
        )
        for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

    def test_has_the_gradients_of_dense_layers_and_nothing_else(self) -> None:
        with built() as graph:
            train_op = OPTIMIZERS["descent"]().minimize(loss_of(dense()))
        plan = wb.plan_fusion(graph)
        # Both of the two wide layers, and the one of what the narrow layer reads.
        assert sorted(plan.matmuls) == [
            "gradients/MatMul_1_grad/MatMul",
            "gradients/MatMul_1_grad/MatMul_1",
            "gradients/MatMul_2_grad/MatMul",
            "gradients/MatMul_grad/MatMul",
            "gradients/MatMul_grad/MatMul_1",
        ]
        assert plan.count == 5 and repr(plan) == "FusionPlan(0 lookups, 5 matrix products, 0 stay)"
        assert plan.describe().splitlines()[0] == "5 matrix products by Workbench's kernel"
        products = [op for op in ran(graph, train_op, wb.apply(plan)) if "MatMul" in op]
        assert len(products) == 8

    @pytest.mark.parametrize(
        ("dtype", "device", "gpu", "count"),
        [
            ("float32", "", False, 1),
            ("float64", "", False, 0),
            ("float32", "/device:GPU:0", False, 0),
            ("float32", "", True, 0),
            ("float32", "/job:ps/task:1", False, 1),
            ("float32", "/job:ps/task:1/device:CPU:0", True, 1),
        ],
    )
    def test_is_of_floats_on_a_cpu(self, dtype: str, device: str, gpu: bool, count: int) -> None:
        with tf.Graph().as_default() as graph, tf.device(device):
            x = v1.placeholder(dtype, [None, 64])
            tf.matmul(x, x, transpose_a=True)
        nodes = matmuls.Definition(graph.as_graph_def(add_shapes=True).node)
        assert len(matmuls.find_matmuls(nodes, Placement(gpu=gpu))) == count

    @pytest.mark.parametrize(
        ("rows", "columns", "count"),
        [(31, 64, 0), (64, 31, 0), (32, 32, 1), (None, 32, 1), (None, 1, 0)],
    )
    def test_leaves_narrow_products(self, rows: int | None, columns: int, count: int) -> None:
        with tf.Graph().as_default() as graph:
            a, b = v1.placeholder(tf.float32, [8, rows]), v1.placeholder(tf.float32, [8, columns])
            tf.matmul(a, b, transpose_a=True)
        assert len(wb.plan_fusion(graph).matmuls) == count

    def test_is_empty_where_the_stock_kernel_is_faster(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(matmuls, "kernel_is_faster", lambda: False)
        with built() as graph:
            OPTIMIZERS["descent"]().minimize(loss_of(dense()))
        assert not wb.plan_fusion(graph).count

    def test_leaves_those_that_have_a_kernel_by_name(self) -> None:
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [None, 64])
            made = tf.matmul(x, x, transpose_a=True)
            made.op._set_attr("_kernel", v1.AttrValue(s=b"eigen"))
        assert not wb.plan_fusion(graph).matmuls

    def test_runs_beside_onednn_which_does_products_by_itself(self) -> None:
        """A plan made elsewhere; oneDNN is a matter of the whole process."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.builders.products_beside_onednn"],
            env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["0", "4", "alike"]

    def test_waits_for_what_the_product_waited_for(self) -> None:
        with built() as graph:
            count = v1.get_variable("count", initializer=0.0, trainable=False)
            x = matrix(40, 64)
            with tf.control_dependencies([v1.assign_add(count, 1.0).op]):
                y = tf.matmul(x, x, transpose_a=True)
        with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
            session.run("begin")
            session.run(y)
            assert session.run(count) == 1.0

    def test_of_a_function(self) -> None:
        with context.eager_mode():
            weights = tf.Variable(drawn(1, [64, 48]))

            @tf.function(input_signature=[tf.TensorSpec([None, 64])])
            def step(x: tf.Tensor) -> tf.Tensor:
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.tanh(x @ weights))
                return tape.gradient(loss, weights)

            own = step.get_concrete_function()
            plan = wb.plan_fusion(own)
            fused = wb.fuse_function(own, plan)
            x = tf.constant(drawn(2, [30, 64]))
            assert len(plan.matmuls) == 1 and fused is not own
            assert fused_lookups(fused.graph.as_graph_def()) == 1
            np.testing.assert_allclose(fused(x), own(x), rtol=1e-4, atol=1e-4)

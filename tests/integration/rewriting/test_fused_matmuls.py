"""Products of matrices in a finished graph that Workbench's kernel does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
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
from tests.builders.fused_graphs import OPTIMIZERS, ran, require_trains_alike, trained
from tests.builders.fused_parts import names_of
from tests.builders.intra_op_threads import require_same_bits
from workbench import _native
from workbench.core.fusion.pattern.placement import Placement
from workbench.core.fusion.rules import dense_layer
from workbench.experiments.worker.steps.graph_session import fused_parts

v1 = tf.compat.v1
# About those of tiles, panels and blocks, and none.
SIZES = st.sampled_from((0, 1, 5, 6, 7, 15, 16, 17, 33, 96, 193, 300))


@pytest.fixture(autouse=True)
def made_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the processor be one that the kernel is made for where a factor lies transposed."""
    monkeypatch.setattr(dense_layer, "kernel_is_faster", lambda *, transposed: transposed)


@pytest.fixture
def made_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has it be one that the kernel is made for whatever is transposed."""
    monkeypatch.setattr(dense_layer, "kernel_is_faster", lambda **_: True)


def product(
    *values: np.ndarray,
    own: bool,
    transposed: tuple[bool, bool] = (False, False),
    relu: bool = False,
) -> np.ndarray:
    """Of two factors, and a bias: by Workbench's kernel, or by TensorFlow's.

    The graph does not know the shapes.
    """
    turned = dict(zip(("transpose_a", "transpose_b"), transposed, strict=True))
    with tf.Graph().as_default() as graph:
        given = [v1.placeholder(tf.float32) for _ in values]
        a, b, *bias = given
        if own:
            made = _native.library().workbench_mat_mul(a=a, b=b, bias=bias, relu=relu, **turned)
        else:
            made = tf.raw_ops.MatMul(a=a, b=b, **turned)
            made = tf.nn.bias_add(made, bias[0]) if bias else made
            made = tf.nn.relu(made) if relu else made
        with v1.Session(graph=graph) as session:
            return session.run(made, dict(zip(given, values, strict=True)))


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
        biased=st.booleans(),
        relu=st.booleans(),
        seed=st.integers(0, 99),
    )
    @example(rows=0, columns=3, inner=5, transposed=(True, False), biased=True, relu=True, seed=0)
    @example(rows=3, columns=5, inner=0, transposed=(False, True), biased=True, relu=True, seed=0)
    def test_multiplies_as_the_stock_one(
        self,
        rows: int,
        columns: int,
        inner: int,
        transposed: tuple[bool, bool],
        biased: bool,
        relu: bool,
        seed: int,
    ) -> None:
        shapes = [rows, inner], [inner, columns]
        given = [
            drawn(seed + i, shape[::-1] if turned else shape)
            for i, (shape, turned) in enumerate(zip(shapes, transposed, strict=True))
        ]
        if biased:
            given.append(drawn(seed + 2, [columns]))
        # What is joined with a product without an inner size ends the process in oneDNN.
        expected = product(*given[:2], transposed=transposed, own=False) + sum(given[2:])
        expected = np.maximum(expected, 0) if relu else expected
        found = product(*given, transposed=transposed, relu=relu, own=True)
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
                product(drawn(1, a), drawn(2, b), own=own)

    @pytest.mark.parametrize("shape", [[4], [5, 1], []])
    def test_refuses_a_bias_that_is_no_row(self, shape: list[int]) -> None:
        with pytest.raises(tf.errors.InvalidArgumentError, match="as many biases"):
            product(drawn(1, [3, 4]), drawn(2, [4, 5]), drawn(3, shape), own=True)


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
        assert names_of(plan, "matrix product")
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
        assert sorted(names_of(plan, "matrix product")) == [
            "gradients/MatMul_1_grad/MatMul",
            "gradients/MatMul_1_grad/MatMul_1",
            "gradients/MatMul_2_grad/MatMul",
            "gradients/MatMul_grad/MatMul",
            "gradients/MatMul_grad/MatMul_1",
        ]
        assert plan.count == 5 and repr(plan) == "FusionPlan(5 matrix products, 0 stay)"
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
        nodes = dense_layer.Definition(graph.as_graph_def(add_shapes=True).node)
        assert len(dense_layer.RULE.find(nodes, Placement(gpu=gpu))[0]) == count

    @pytest.mark.parametrize(
        ("rows", "columns", "count"),
        [(31, 64, 0), (64, 31, 0), (32, 32, 1), (None, 32, 1), (None, 1, 0)],
    )
    def test_leaves_narrow_products(self, rows: int | None, columns: int, count: int) -> None:
        with tf.Graph().as_default() as graph:
            a, b = v1.placeholder(tf.float32, [8, rows]), v1.placeholder(tf.float32, [8, columns])
            tf.matmul(a, b, transpose_a=True)
        assert len(names_of(wb.plan_fusion(graph), "matrix product")) == count

    def test_is_empty_where_the_stock_kernel_is_faster(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(dense_layer, "kernel_is_faster", lambda **_: False)
        with built() as graph:
            OPTIMIZERS["descent"]().minimize(loss_of(dense()))
        assert not wb.plan_fusion(graph).count

    def test_leaves_those_that_have_a_kernel_by_name(self) -> None:
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [None, 64])
            made = tf.matmul(x, x, transpose_a=True)
            made.op._set_attr("_kernel", v1.AttrValue(s=b"eigen"))
        assert not names_of(wb.plan_fusion(graph), "matrix product")

    @pytest.mark.slow
    def test_runs_beside_onednn_which_does_products_by_itself(self) -> None:
        """A plan made elsewhere; oneDNN is a matter of the whole process."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.builders.products_beside_onednn"],
            env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        processor = Path("/proc/cpuinfo").read_text("utf-8")
        is_faster = "AuthenticAMD" in processor and " avx512f" in processor
        assert done.stdout.split() == ["6" if is_faster else "0", "4", "alike"]

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
            assert len(names_of(plan, "matrix product")) == 1 and fused is not own
            assert fused_parts(fused.graph.as_graph_def()) == 1
            np.testing.assert_allclose(fused(x), own(x), rtol=1e-4, atol=1e-4)


def deep(added: Any = tf.nn.bias_add, behind: Any = tf.nn.relu, columns: int = 48) -> Any:
    """A dense layer, of which the result and what is trained are given."""
    bias = v1.get_variable("bias", initializer=drawn(3, [columns]))
    y = behind(added(layer(matrix(40, 64, known=True), columns, "a"), bias))
    return y, OPTIMIZERS["descent"]().minimize(loss_of(y))


def add_first(product: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.AddV2(x=bias, y=product)


@pytest.mark.usefixtures("made_for_all")
class TestDenseLayer:
    """What is behind a product is done with it."""

    @pytest.mark.parametrize("added", [tf.nn.bias_add, tf.add, add_first])
    @pytest.mark.parametrize(("behind", "last"), [(tf.nn.relu, "Relu"), (tf.sin, "")])
    def test_is_one_op(self, added: Any, behind: Any, last: str) -> None:
        with built() as graph:
            y, train_op = deep(added, behind)
        plan = wb.plan_fusion(graph)
        forward = [
            name for name in names_of(plan, "matrix product") if not name.startswith("gradients")
        ]
        assert forward == [last or y.op.inputs[0].op.name]
        ops = ran(graph, y, wb.apply(plan))
        assert ops.count("WorkbenchMatMul") == 1
        assert not {"MatMul", "BiasAdd", "AddV2", "Relu"} & set(ops)
        require_trains_alike(graph, plan, y, train_op, rtol=1e-4, atol=1e-5)

    def test_without_a_bias_has_its_relu(self) -> None:
        with built() as graph:
            y = tf.nn.relu(layer(matrix(40, 64), 48, "a"))
        plan = wb.plan_fusion(graph)
        assert names_of(plan, "matrix product") == (y.op.name,)
        assert "Relu" not in ran(graph, y, wb.apply(plan))

    @pytest.mark.parametrize("behind", [tf.tanh, tf.sigmoid, tf.nn.elu, tf.nn.relu6])
    def test_stays_where_tensorflow_joins_more(self, behind: Any) -> None:
        with built() as graph:
            deep(behind=behind)
        assert all(
            name.startswith("gradients")
            for name in names_of(wb.plan_fusion(graph), "matrix product")
        )

    @pytest.mark.parametrize(
        "other", [lambda y: tf.sin(y), lambda y: v1.assign(v1.get_variable("kept", [40, 48]), y)]
    )
    @pytest.mark.parametrize("of", ["product", "sum"])
    def test_leaves_apart_what_others_read(self, of: str, other: Any) -> None:
        with built() as graph:
            product = layer(matrix(40, 64, known=True), 48, "a")
            added = tf.nn.bias_add(product, v1.get_variable("bias", initializer=drawn(3, [48])))
            read = other({"product": product, "sum": added}[of])
            y = tf.nn.relu(added)
        plan = wb.plan_fusion(graph)
        assert names_of(plan, "matrix product") == ({"product": product, "sum": added}[of].op.name,)
        require_trains_alike(graph, plan, [y, read], y.op, rtol=1e-4, atol=1e-5)

    def test_leaves_apart_what_others_wait_for(self) -> None:
        with built() as graph:
            product = layer(matrix(40, 64), 48, "a")
            with tf.control_dependencies([product]):
                tf.constant(1.0)
            tf.nn.relu(product)
        assert names_of(wb.plan_fusion(graph), "matrix product") == (product.op.name,)

    @pytest.mark.parametrize("shape", [[1], [], [40, 1], [40, 48]])
    def test_adds_by_itself_what_is_no_row(self, shape: list[int]) -> None:
        with built() as graph:
            product = layer(matrix(40, 64, known=True), 48, "a")
            y = product + v1.get_variable("added", initializer=drawn(3, shape))
        plan = wb.plan_fusion(graph)
        assert names_of(plan, "matrix product") == (product.op.name,)
        require_trains_alike(graph, plan, y, y.op, rtol=1e-4, atol=1e-5)

    def test_waits_for_what_each_of_its_nodes_waited_for(self) -> None:
        with built() as graph:
            counts = [v1.get_variable(f"count{i}", initializer=0.0) for i in range(3)]
            y = matrix(40, 64)
            for count, step in zip(
                counts,
                (
                    lambda y: layer(y, 48, "a"),
                    lambda y: tf.nn.bias_add(y, v1.get_variable("bias", [48])),
                    tf.nn.relu,
                ),
                strict=True,
            ):
                with tf.control_dependencies([v1.assign_add(count, 1.0).op]):
                    y = step(y)
        plan = wb.plan_fusion(graph)
        assert names_of(plan, "matrix product") == (y.op.name,)
        with v1.Session(graph=graph, config=wb.apply(plan)) as session:
            session.run("begin")
            session.run(y)
            assert session.run(counts) == [1.0, 1.0, 1.0]

"""What of a graph that may run on a GPU is fused: plans, made on a machine that has none."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.eager import context

import workbench as wb
from tests.builders import batch_norms
from tests.builders.gpu_graphs import (
    batch,
    losses,
    safe,
    shortened,
    trained_on,
    weighted,
    weighted_by_variables,
)
from tests.builders.lookup_features import ROWS
from workbench import _native
from workbench.core.fusion import plan as planning
from workbench.core.fusion.pattern.placement import Placement, placement_of

v1 = tf.compat.v1
CPU, GPU = "/device:CPU:0", "/device:GPU:0"


def softly() -> Any:
    return v1.ConfigProto(allow_soft_placement=True)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are made as where the kernels for GPUs are loaded."""
    monkeypatch.setattr(_native, "_GPU_KERNELS", [object()])


@pytest.fixture
def not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are made as where they are not, whatever this process has loaded."""
    monkeypatch.setattr(_native, "_GPU_KERNELS", [])


@pytest.fixture
def has_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are made as on a machine with a GPU."""
    monkeypatch.setattr(
        planning, "placement_of", lambda g: dataclasses.replace(placement_of(g), gpu=True)
    )


def added(plan: Any) -> dict[str, str]:
    """The devices of the ops of Workbench that a plan adds, by their types."""
    nodes = graph_pb2.GraphDef.FromString(plan.added).node
    return {
        node.op.removeprefix("Workbench").removeprefix("Resource"): node.device
        for node in nodes
        if node.op.startswith("Workbench")
    }


def require_alike(
    graph: tf.Graph, plan: Any, fetches: Sequence[Any], *, rtol: float, atol: float
) -> None:
    """Losses, and variables within these, are those without the plan: placed softly, on a CPU."""
    expected, variables = losses(graph, fetches, softly())
    found, ours = losses(graph, fetches, wb.apply(plan, softly()))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for one, other in zip(ours, variables, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


class TestWithKernels:
    def test_lookups_and_updates_are_fused_on_their_gpu(self, loaded: None) -> None:
        graph, loss, train_op = trained_on(GPU, safe)
        plan = wb.plan_fusion(graph)
        assert added(plan) == {"GroupedLookUp": GPU, "GroupedApply": GPU}
        assert [each.updates for each in plan.of("lookup")] == [True, True]
        require_alike(graph, plan, [loss, train_op], rtol=1e-5, atol=1e-6)

    @pytest.mark.usefixtures("has_gpu")
    def test_so_are_those_of_no_device(self, loaded: None) -> None:
        graph, *_ = trained_on("", safe, "descent")
        assert added(wb.plan_fusion(graph)) == {"GroupedLookUp": "", "GroupedApply": ""}

    @pytest.mark.parametrize("dense", [False, True])
    def test_an_update_without_a_kernel_stays(self, loaded: None, dense: bool) -> None:
        def look_up(table: Any, ids: tf.SparseTensor) -> tf.Tensor:
            rows = tf.math.floormod(ids.indices[:, 1], ROWS)
            return tf.nn.embedding_lookup(table, rows) if dense else safe(table, ids, default_id=3)

        graph, loss, train_op = trained_on(GPU, look_up, "adam")
        plan = wb.plan_fusion(graph)
        made = {"GroupedLookUp": GPU} if dense else {"GroupedLookUp": GPU, "GroupedLookUpGrad": GPU}
        assert added(plan) == made
        assert [each.updates for each in plan.of("lookup")] == [False, False]
        assert "updates 2 tables as before" in plan.describe()
        require_alike(graph, plan, [loss, train_op], rtol=1e-4, atol=1e-5)

    @pytest.mark.usefixtures("has_gpu")
    def test_on_a_cpu_by_name_all_is_fused(self, loaded: None) -> None:
        graph, *_ = trained_on(CPU, plain, "adam")
        assert added(wb.plan_fusion(graph)) == {"GroupedLookUp": CPU, "GroupedApplyAll": CPU}

    @pytest.mark.parametrize(
        ("look_up", "made"),
        [
            (weighted, ("GroupedLookUp", "GroupedApply")),
            (weighted_by_variables, ("GroupedLookUp", "GroupedLookUpWeightGrad", "GroupedApply")),
            (shortened, ("GroupedLookUp", "GroupedLookUpGrad")),
        ],
    )
    def test_so_are_those_with_weights_or_a_norm(
        self, loaded: None, look_up: Any, made: tuple[str, ...]
    ) -> None:
        graph, loss, train_op = trained_on(GPU, look_up)
        plan = wb.plan_fusion(graph)
        assert added(plan) == dict.fromkeys(made, GPU)
        require_alike(graph, plan, [loss, train_op], rtol=1e-4, atol=1e-5)


def plain(table: Any, ids: tf.SparseTensor) -> tf.Tensor:
    within = tf.SparseTensor(ids.indices, tf.abs(ids.values), ids.dense_shape)
    return v1.nn.embedding_lookup_sparse(table, within, None, combiner="sum")


def of_six_dimensions(table: Any, ids: tf.SparseTensor) -> tf.Tensor:
    return safe(table, batch(1, rank=6))


class TestRefusals:
    def test_without_kernels_name_what_loads_them(self, not_loaded: None) -> None:
        plan = wb.plan_fusion(trained_on(GPU, safe)[0])
        assert not plan.of("lookup")
        assert {each.reason for each in plan.refusals} == {
            "it may run on a GPU, and kernels of lookups for GPUs are not loaded; "
            "wb.load_gpu_kernels() loads them"
        }

    @pytest.mark.parametrize(
        ("look_up", "reason"),
        [
            (
                plain,
                "its embeddings end with its last id, which a grouped lookup does not know there; "
                "tf.nn.safe_embedding_lookup_sparse is fused",
            ),
            (of_six_dimensions, "a grouped lookup takes ids of 5 dimensions at most there"),
        ],
    )
    @pytest.mark.parametrize("device", ["", GPU])
    @pytest.mark.usefixtures("has_gpu", "loaded")
    def test_of_what_kernels_lack_say_so(self, look_up: Any, reason: str, device: str) -> None:
        plan = wb.plan_fusion(trained_on(device, look_up)[0])
        assert not plan.of("lookup")
        assert {each.reason for each in plan.refusals} == {f"it may run on a GPU, and {reason}"}

    @pytest.mark.usefixtures("loaded")
    def test_of_other_layers_say_that_they_have_kernels_for_cpus_alone(self) -> None:
        with tf.Graph().as_default() as graph, tf.device(GPU):
            x = batch_norms.matrix(8, 64)
            normed, *_ = batch_norms.normal(x, "one")
            vectors = tf.reshape(normed, [-1, 8, 8])
            products = tf.reshape(tf.matmul(vectors, vectors, transpose_b=True), [-1, 64])
            tf.gather(products, [8, 16, 17], axis=1)
        plan = wb.plan_fusion(graph)
        assert not plan.count
        one, other = sorted(each.reason for each in plan.refusals)
        said = "it may run on a GPU, and Workbench's op of {} has a kernel for CPUs alone"
        assert one == said.format("batch normalizations")
        assert other == said.format("dot interactions")


class TestFunctions:
    @pytest.mark.usefixtures("has_gpu", "loaded")
    def test_variables_tell_where_lookups_run(self) -> None:
        function = of_two_variables()
        plan = wb.plan_fusion(function)
        # TensorFlow may place what reads no variable elsewhere.
        assert added(plan)["GroupedLookUpGrad"].endswith(CPU)
        assert len(plan.of("lookup")) == 2

    @pytest.mark.usefixtures("loaded")
    def test_lookups_in_variables_on_two_devices_are_apart(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        function = of_two_variables()
        inside = [own.op.name for _, own in function.graph.captures]
        places = dict(zip(inside, [CPU, GPU], strict=True))
        monkeypatch.setattr(
            planning, "placement_of", lambda _: Placement(gpu=True, captured=places)
        )
        plan = wb.plan_fusion(function)
        assert [each.name for each in plan.refusals] == ["embedding_lookup_1"]
        monkeypatch.setattr(
            planning,
            "placement_of",
            lambda _: Placement(gpu=True, kernels=True, captured=places),
        )
        assert len({each.op for each in wb.plan_fusion(function).of("lookup")}) == 2


def of_two_variables() -> Any:
    """A function of the gradients of lookups in two variables, that names no device."""
    with context.eager_mode():
        tables = [tf.Variable(tf.ones([ROWS, 4]), name=name) for name in "ab"]

    @tf.function(input_signature=[tf.SparseTensorSpec([None, None], tf.int64)])
    def step(ids: tf.SparseTensor) -> Any:
        with tf.GradientTape() as tape:
            found = [tf.nn.safe_embedding_lookup_sparse(table, ids) for table in tables]
            loss = tf.add_n([tf.reduce_sum(tf.square(each)) for each in found])
        return [each.values for each in tape.gradient(loss, tables)]

    # They live as long as what captures them does.
    with context.eager_mode():
        made = step.get_concrete_function()
    made.tables = tables
    return made


@pytest.mark.parametrize(
    ("devices", "gpu", "may_be"),
    [
        ([""], False, False),
        ([""], True, True),
        (["/gpu:1"], False, True),
        (["/job:ps/task:0/device:CPU:0"], True, False),
        (["/job:ps/task:0"], True, True),
        (["/job:ps/task:0", "/job:ps/task:0/device:CPU:0"], True, False),
        (["/cpu:0", "/gpu:0"], False, False),
    ],
)
def test_the_first_device_that_is_named_counts(devices: list[str], gpu: bool, may_be: bool) -> None:
    assert Placement(gpu=gpu).may_be_on_gpu(*devices) is may_be

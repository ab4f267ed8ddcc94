"""Finished graphs on a GPU whose stock lookups are fused there, against the same as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import workbench as wb
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

v1 = tf.compat.v1
GPU = "/device:GPU:0"
STOCK = ("SparseSegment", "SparseFillEmptyRows", "Unique", "Where")


def dense(table: Any, ids: tf.SparseTensor) -> tf.Tensor:
    return tf.nn.embedding_lookup(table, tf.math.floormod(ids.values, ROWS))


def filled(table: Any, ids: tf.SparseTensor) -> tf.Tensor:
    return safe(table, ids, default_id=3)


def softly() -> Any:
    return v1.ConfigProto(allow_soft_placement=True)


def places(graph: tf.Graph, step: Any, config: Any) -> dict[str, str]:
    """The device of each op type of a step; of Workbench's ops without what comes before it."""
    metadata = v1.RunMetadata()
    options = v1.RunOptions(output_partition_graphs=True)
    with v1.Session(graph=graph, config=config) as session:
        session.run(graph.get_operation_by_name("begin"))
        session.run(step, options=options, run_metadata=metadata)
    return {
        node.op.removeprefix("Workbench").removeprefix("Resource"): node.device[-5:]
        for part in metadata.partition_graphs
        for node in part.node
    }


@pytest.mark.parametrize("device", [GPU, ""])
@pytest.mark.parametrize(
    ("look_up", "optimizer", "back"),
    [
        (safe, "adagrad", "GroupedApply"),
        (safe, "descent", "GroupedApply"),
        (filled, "ftrl", "GroupedApply"),
        (filled, "adam", "GroupedLookUpGrad"),
        (weighted, "adagrad", "GroupedApply"),
        (weighted_by_variables, "descent", "GroupedApply"),
        (shortened, "adagrad", "GroupedLookUpGrad"),
        (dense, "adagrad", "GroupedApply"),
        (dense, "adam", ""),
    ],
)
def test_losses_and_variables_are_those_of_the_stock_graph(
    device: str, look_up: Any, optimizer: str, back: str
) -> None:
    graph, loss, train_op = trained_on(device, look_up, optimizer)
    plan = wb.plan_fusion(graph)
    assert len(plan.of("lookup")) == 2 and not plan.refusals, plan.describe()
    assert all(each.updates is (back == "GroupedApply") for each in plan.of("lookup"))
    of_step = places(graph, [loss, train_op], wb.apply(plan, softly()))
    for op in filter(None, ("GroupedLookUp", back)):
        assert of_step[op] == "GPU:0", of_step
    assert not [op for op in of_step if op.startswith(STOCK) and look_up is not dense]
    expected, variables = losses(graph, [loss, train_op], softly())
    found, ours = losses(graph, [loss, train_op], wb.apply(plan, softly()))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert len(set(found)) > 1
    for one, other in zip(ours, variables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_function_looks_up_where_its_variables_are() -> None:
    with tf.Graph().as_default():
        ids = [v1.Session().run(batch(seed)) for seed in range(2)]
    with context.eager_mode():
        values = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
        tables = []
        for device in (GPU, "/device:CPU:0", GPU):
            with tf.device(device):
                tables.append(tf.Variable(values))

        @tf.function(input_signature=[tf.SparseTensorSpec([None, None], tf.int64)] * 2)
        def step(one: tf.SparseTensor, other: tf.SparseTensor) -> Any:
            with tf.GradientTape() as tape:
                found = [
                    tf.nn.safe_embedding_lookup_sparse(table, each)
                    for table, each in zip(tables, (one, other, other), strict=True)
                ]
                loss = tf.add_n([tf.reduce_sum(tf.sin(each)) for each in found])
            for table, gradient in zip(tables, tape.gradient(loss, tables), strict=True):
                table.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
            return loss

        function = step.get_concrete_function()
        plan = wb.plan_fusion(function)
        # Those in the memory of one device are one op.
        assert len(plan.of("lookup")) == 3 and len({each.op for each in plan.of("lookup")}) == 2
        fused = wb.fuse_function(function, plan)
        given = [tf.SparseTensor(*map(tf.constant, each)) for each in ids]
        flat = [part for each in given for part in (each.indices, each.values, each.dense_shape)]
        trained = []
        for run in (lambda: step(*given), lambda: fused(*flat)):
            for table in tables:
                table.assign(values)
            trained.append([[float(run()) for _ in range(5)], *[table.numpy() for table in tables]])
    for one, other in zip(*trained, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_without_its_kernels_a_graph_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wb._native, "_GPU_KERNELS", [])
    graph, *_ = trained_on(GPU, safe)
    plan = wb.plan_fusion(graph)
    assert not plan.count and len(plan.refusals) == 2

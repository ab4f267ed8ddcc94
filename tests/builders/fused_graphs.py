"""Graphs whose stock lookups are fused, and sessions that train with them and without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.examples import few

v1 = tf.compat.v1
EXAMPLES = few(6)


class HalvedOptimizer(v1.train.AdagradOptimizer):
    """One that changes gradients, summed by row, before it applies them."""

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return super()._apply_sparse(tf.IndexedSlices(0.5 * grad.values, grad.indices), var)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return super()._resource_apply_sparse(0.5 * grad, var, indices)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adagrad": lambda: v1.train.AdagradOptimizer(0.1),
    "descent": lambda: v1.train.GradientDescentOptimizer(0.1),
    "adam": lambda: v1.train.AdamOptimizer(0.01),
    "ftrl": lambda: v1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.02),
    "shrinking": lambda: v1.train.FtrlOptimizer(
        0.1, l2_regularization_strength=0.1, l2_shrinkage_regularization_strength=0.05
    ),
    "halved": lambda: HalvedOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.05, 0.9),
}


def each_optimizer(*optimizers: str) -> pytest.MarkDecorator:
    """Each with variables of one kind, the kinds in turn; slow with those of the other one."""
    kinds = ("ref", "resource")
    cases = [
        pytest.param(kind, each, marks=() if kind == kinds[number % 2] else pytest.mark.slow)
        for number, each in enumerate(optimizers)
        for kind in kinds
    ]
    return pytest.mark.parametrize(("kind", "optimizer"), cases)


def fed(ids: tf.SparseTensor) -> tf.SparseTensor:
    """The same ids, which nothing can fold into constants."""
    parts = [(ids.indices, [None, ids.shape.rank]), (ids.values, [None])]
    indices, values = (v1.placeholder_with_default(part, shape) for part, shape in parts)
    shape = v1.placeholder_with_default(ids.dense_shape, [ids.shape.rank])
    return tf.SparseTensor(indices, values, shape)


def loss_of(embeddings: Sequence[tf.Tensor]) -> tf.Tensor:
    parts = []
    for number, each in enumerate(embeddings):
        wide = tf.cast(each, tf.float32)
        parts.append(tf.reduce_sum(wide * tf.sin(wide + number)))
    return tf.add_n(parts)


def trained(graph: tf.Graph, fetches: Any, train_op: Any, config: Any, steps: int = 3) -> Any:
    with v1.Session(graph=graph, config=config) as session:
        session.run(graph.get_operation_by_name("begin"))
        values = [session.run([fetches, train_op])[0] for _ in range(steps)]
        variables = session.run(graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES))
    return values, variables


def require_trains_alike(
    graph: tf.Graph,
    plan: Any,
    fetches: Any,
    train_op: Any,
    *,
    rtol: float,
    atol: float,
    steps: int = 3,
) -> None:
    """Fetches of all steps, and variables, are those without the plan."""
    expected, found = (
        trained(graph, fetches, train_op, config, steps) for config in (None, wb.apply(plan))
    )
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


def ran(graph: tf.Graph, fetches: Any, config: Any) -> list[str]:
    """Types of the ops of a step, after all of TensorFlow's own rewriting."""
    metadata = v1.RunMetadata()
    with v1.Session(graph=graph, config=config) as session:
        session.run(graph.get_operation_by_name("begin"))
        options = v1.RunOptions(output_partition_graphs=True)
        session.run(fetches, options=options, run_metadata=metadata)
    return [node.op for part in metadata.partition_graphs for node in part.node]


def fetched(
    graph: tf.Graph, fetches: Any, feeds: dict[Any, Any], plan: wb.FusionPlan | None = None
) -> list[np.ndarray]:
    """What a run fetches, flat; with a plan, of the fused graph."""
    config = None if plan is None else wb.apply(plan)
    with v1.Session(graph=graph, config=config) as session:
        found: list[np.ndarray] = tf.nest.flatten(session.run(fetches, feeds))
    return found


def require_same(graph: tf.Graph, fetches: Any, feeds: dict[Any, Any]) -> wb.FusionPlan:
    """The plan of a graph that gives what the stock one gives."""
    plan = wb.plan_fusion(graph)
    expected, found = (fetched(graph, fetches, feeds, each) for each in (None, plan))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    return plan

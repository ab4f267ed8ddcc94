"""Adam's updates of whole variables in a finished graph, which a kernel of Workbench's does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.python.eager import context

import workbench as wb
from tests.builders.examples import few
from tests.builders.fused_parts import names_of
from tests.builders.intra_op_threads import require_same_bits
from workbench import _native

v1 = tf.compat.v1


def adam_graph(
    shapes: list[list[int]], *, resource: bool = False, dtype: str = "float32", **options: Any
) -> tuple[tf.Graph, Any, list[Any]]:
    """The graph of some variables, its train op, and what there is of variables."""
    random = np.random.default_rng(sum(map(sum, shapes)))
    with tf.Graph().as_default() as graph:
        losses = []
        for number, shape in enumerate(shapes):
            drawn = random.normal(size=shape).astype(dtype)
            x = v1.get_variable(f"x{number}", initializer=drawn, use_resource=resource)
            losses.append(tf.reduce_sum(tf.sin(x * 3) * x))
        train_op = v1.train.AdamOptimizer(0.01, **options).minimize(tf.add_n(losses))
        tf.group(v1.global_variables_initializer(), name="begin")
        found = [
            tf.identity(each, name=f"read_{i}") for i, each in enumerate(v1.global_variables())
        ]
    return graph, train_op, found


def trained(graph: tf.Graph, train_op: Any, found: Any, plan: Any, steps: int) -> list[np.ndarray]:
    config = None if plan is None else wb.apply(plan)
    with v1.Session(graph=graph, config=config) as session:
        session.run("begin")
        for _ in range(steps):
            session.run(train_op)
        values: list[np.ndarray] = session.run(found)
    return values


@few(12)
@given(
    shapes=st.lists(
        st.lists(st.sampled_from((0, 1, 3, 17, 64, 400)), max_size=2), min_size=1, max_size=3
    ),
    resource=st.booleans(),
    locks=st.booleans(),
    steps=st.sampled_from((1, 20)),
)
def test_trains_as_stock_does_to_the_bit(
    shapes: list[list[int]], resource: bool, locks: bool, steps: int
) -> None:
    made = adam_graph(shapes, resource=resource, use_locking=locks)
    plan = wb.plan_fusion(made[0])
    assert len(names_of(plan, "update")) == len(shapes) == plan.count
    expected, found = (trained(*made, each, steps) for each in (None, plan))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_says_what_it_does() -> None:
    plan = wb.plan_fusion(adam_graph([[3], [4, 5]])[0])
    assert repr(plan) == "FusionPlan(2 updates, 0 stay)"
    assert plan.describe().splitlines() == [
        "2 variables updated as by Adam by Workbench's kernel",
        "  Adam/update_x0/ApplyAdam",
        "  Adam/update_x1/ApplyAdam",
    ]


@pytest.mark.parametrize(
    ("dtype", "device", "count"),
    [
        ("float32", "/device:CPU:0", 1),
        ("float64", "", 0),
        ("float32", "/device:GPU:0", 0),
    ],
)
def test_is_of_floats_on_a_cpu(dtype: str, device: str, count: int) -> None:
    with tf.device(device):
        graph, *_ = adam_graph([[3]], dtype=dtype)
    definition = graph.as_graph_def(add_shapes=True)
    for node in definition.node:
        node.device = device
    assert len(names_of(wb.plan_fusion(definition), "update")) == count


def applied(values: dict[str, Any], *, own: bool, resource: bool, nesterov: bool) -> Any:
    """The variable and its moments after one update, or the error."""
    kind = "resource_" if resource else ""
    with tf.Graph().as_default() as graph:
        held = [
            v1.get_variable(name, initializer=values[name], use_resource=resource)
            for name in ("var", "m", "v")
        ]
        handles = [each.handle if resource else each._ref() for each in held]
        numbers = [values[name] for name in ("power1", "power2", "lr", "beta1", "beta2", "epsilon")]
        make = getattr(_native.library(), f"workbench_{kind}apply_adam") if own else None
        if make is None:
            make = tf.raw_ops.ResourceApplyAdam if resource else tf.raw_ops.ApplyAdam
            names = ("var", "m", "v", "beta1_power", "beta2_power", "lr", "beta1", "beta2")
            given_ = dict(zip((*names, "epsilon"), (*handles, *numbers), strict=True))
            update = make(**given_, grad=values["grad"], use_nesterov=nesterov)
        else:
            update = make(*handles, *numbers, values["grad"], use_nesterov=nesterov)
        with v1.Session(graph=graph) as session:
            session.run(v1.global_variables_initializer())
            session.run(update)
            return session.run(held)


@few(20)
@given(
    size=st.sampled_from((1, 15, 16, 1000, 70_000)),
    seed=st.integers(0, 2**32 - 1),
    resource=st.booleans(),
    nesterov=st.booleans(),
    strange=st.sampled_from((None, np.nan, np.inf, 0.0, 1e-42, 3e38)),
)
def test_an_update_is_stocks_to_the_bit(
    size: int, seed: int, resource: bool, nesterov: bool, strange: float | None
) -> None:
    random = np.random.default_rng(seed)
    values: dict[str, Any] = {
        name: random.normal(size=size).astype(np.float32) for name in ("var", "m", "grad")
    }
    values["v"] = random.uniform(size=size).astype(np.float32)
    if strange is not None:
        values["grad"][size // 2] = strange
    numbers = {"power1": 0.9, "power2": 0.99, "lr": 0.1, "beta1": 0.9, "beta2": 0.99}
    values |= {name: np.float32(each) for name, each in numbers.items()}
    values["epsilon"] = np.float32(1e-8)
    found, expected = (
        applied(values, own=own, resource=resource, nesterov=nesterov) for own in (True, False)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def large_variables() -> list[np.ndarray]:
    made = adam_graph([[300, 700]])
    return trained(*made, wb.plan_fusion(made[0]), 3)


def test_results_do_not_depend_on_the_threads() -> None:
    require_same_bits(large_variables)


@few(40)
@given(
    shapes=st.lists(st.lists(st.sampled_from((0, 1, 3)), max_size=2), min_size=4, max_size=4),
    scalar=st.lists(st.integers(0, 2), max_size=1),
)
def test_the_op_refuses_what_does_not_fit(shapes: list[list[int]], scalar: list[int]) -> None:
    fits = all(each == shapes[0] for each in shapes) and not scalar
    with context.eager_mode():
        held = [tf.Variable(tf.zeros(shape)) for shape in shapes[:3]]
        numbers = [tf.fill(scalar, 0.5), *[tf.constant(0.5)] * 5]
        try:
            _native.library().workbench_resource_apply_adam(
                *(each.handle for each in held), *numbers, tf.zeros(shapes[3])
            )
        except tf.errors.InvalidArgumentError:
            assert not fits
        else:
            assert fits


def test_the_op_refuses_variables_that_hold_none() -> None:
    with tf.Graph().as_default() as graph:
        held = [v1.get_variable(name, [3], use_resource=False) for name in ("var", "m", "v")]
        update = _native.library().workbench_apply_adam(
            *(each._ref() for each in held), *[0.5] * 6, tf.zeros([3])
        )
        with v1.Session(graph=graph) as session, pytest.raises(tf.errors.FailedPreconditionError):
            session.run(update)


@pytest.mark.parametrize("dtype", [tf.float64, tf.int32])
def test_the_op_refuses_variables_of_another_type(dtype: tf.DType) -> None:
    with context.eager_mode():
        held = [tf.Variable(tf.zeros([3], each)) for each in (dtype, tf.float32, tf.float32)]
        numbers = [tf.constant(0.5)] * 6
        with pytest.raises(tf.errors.InvalidArgumentError):
            _native.library().workbench_resource_apply_adam(
                *(each.handle for each in held), *numbers, tf.zeros([3])
            )

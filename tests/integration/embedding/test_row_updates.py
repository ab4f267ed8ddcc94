"""Native updates of a table's rows against TensorFlow's own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from workbench import _native

v1 = tf.compat.v1
ROWS = 90


def variables(name: str, resource: bool, dim: int, slots: int) -> list[Any]:
    """A table, and slots that have grown already."""
    random = np.random.default_rng(0)
    values = random.normal(size=(ROWS, dim)).astype(np.float32)
    grown = [random.uniform(0.1, 3.0, size=(ROWS, dim)).astype(np.float32) for _ in range(slots)]
    return [
        v1.get_variable(f"{name}{i}", initializer=made, use_resource=resource)
        for i, made in enumerate((values, *grown))
    ]


def gradients(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in no order, once each, and a gradient for each."""
    random = np.random.default_rng(dim)
    rows = random.permutation(np.flatnonzero(random.integers(0, 2, ROWS)).astype(np.int64))
    return rows, random.normal(size=(rows.size, dim)).astype(np.float32)


def update(held: list[Any], rule: str, scalars: list[float], grads: Any, rows: Any) -> Any:
    library = _native.library()
    if hasattr(held[0], "handle"):
        table, *slots = [each.handle for each in held]
        return library.workbench_resource_rows_apply(table, slots, scalars, grads, rows, rule=rule)
    table, *slots = [each._ref() for each in held]
    return library.workbench_rows_apply(table, slots, scalars, grads, rows, rule=rule)


@pytest.mark.parametrize("dim", [1, 3, 8, 16, 64])
@pytest.mark.parametrize("resource", [False, True])
def test_native_adagrad_is_stocks_to_the_bit(dim: int, resource: bool) -> None:
    rows, grads = gradients(dim)
    ours, stock = (variables(name, resource, dim, slots=1) for name in ("ours", "stock"))
    made = update(ours, "adagrad", [0.1, 0.0], grads, rows)
    if resource:
        reference = tf.raw_ops.ResourceSparseApplyAdagrad(
            var=stock[0].handle, accum=stock[1].handle, lr=0.1, grad=grads, indices=rows
        )
    else:
        reference = tf.raw_ops.SparseApplyAdagrad(
            var=stock[0]._ref(), accum=stock[1]._ref(), lr=0.1, grad=grads, indices=rows
        )
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run([made, reference])
        for mine, theirs in zip(*session.run([ours, stock]), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("power", [-0.5, -0.3])
@pytest.mark.parametrize("resource", [False, True])
def test_native_ftrl_is_stocks(resource: bool, power: float) -> None:
    rows, grads = gradients(8)
    ours, stock = (variables(name, resource, 8, slots=2) for name in ("ours", "stock"))
    scalars = [0.1, 0.05, 0.02, 0.01, power]
    made = update(ours, "ftrl", scalars, grads, rows)
    held = [each.handle if resource else each._ref() for each in stock]
    names = ("lr", "l1", "l2", "l2_shrinkage", "lr_power")
    op = tf.raw_ops.ResourceSparseApplyFtrlV2 if resource else tf.raw_ops.SparseApplyFtrlV2
    reference = op(
        **dict(zip(("var", "accum", "linear"), held, strict=True)),
        **dict(zip(names, scalars, strict=True)),
        grad=grads,
        indices=rows,
    )
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run([made, reference])
        for mine, theirs in zip(*session.run([ours, stock]), strict=True):
            # A value near 0 is the difference of larger ones.
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


@pytest.mark.parametrize("resource", [False, True])
def test_native_adam_is_stocks_where_every_row_has_a_gradient(resource: bool) -> None:
    ours, stock = (variables(name, resource, 8, slots=2) for name in ("ours", "stock"))
    rows = np.random.default_rng(1).permutation(ROWS).astype(np.int64)
    grads = np.random.default_rng(2).normal(size=(ROWS, 8)).astype(np.float32)
    made = update(ours, "adam", [0.81, 0.98, 0.1, 0.9, 0.99, 1e-6, 0.1, 0.01], grads, rows)
    held = [each.handle if resource else each._ref() for each in stock]
    op = tf.raw_ops.ResourceApplyAdam if resource else tf.raw_ops.ApplyAdam
    reference = op(
        **dict(zip(("var", "m", "v"), held, strict=True)),
        beta1_power=0.81,
        beta2_power=0.98,
        lr=0.1,
        beta1=0.9,
        beta2=0.99,
        epsilon=1e-6,
        grad=grads[np.argsort(rows)],
    )
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run([made, reference])
        for mine, theirs in zip(*session.run([ours, stock]), strict=True):
            # A value near 0 is the difference of larger ones.
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


@pytest.mark.parametrize(
    ("slots", "scalars", "said"),
    [
        (0, [0.1, 0.0], "rule 'adagrad' is given 0 slots and 2 scalars; expected 1 and 2"),
        (1, [0.1], "rule 'adagrad' is given 1 slots and 1 scalars; expected 1 and 2"),
        (1, [0.1, [0.0]], r"one of scalars has shape \[1\]; expected \[\]"),
    ],
)
def test_what_a_rule_does_not_take(slots: int, scalars: list[Any], said: str) -> None:
    held = variables("held", resource=True, dim=2, slots=slots)
    grads, rows = np.ones([1, 2], np.float32), np.array([3], np.int64)
    made = update(held, "adagrad", scalars, grads, rows)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=said):
            session.run(made)

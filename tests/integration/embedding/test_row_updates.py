"""Native updates of a table's rows against TensorFlow's own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from workbench import _native

v1 = tf.compat.v1


@pytest.mark.parametrize("dim", [1, 3, 8, 16, 64])
@pytest.mark.parametrize("resource", [False, True])
def test_native_adagrad_is_stocks_to_the_bit(dim: int, resource: bool) -> None:
    random = np.random.default_rng(dim)
    rows = np.flatnonzero(random.integers(0, 2, 90)).astype(np.int64)
    grads = random.normal(size=(rows.size, dim)).astype(np.float32)

    def variables(name: str) -> list[Any]:
        random = np.random.default_rng(0)
        values = random.normal(size=(90, dim)).astype(np.float32)
        sums = random.uniform(0.1, 3.0, size=(90, dim)).astype(np.float32)
        return [
            v1.get_variable(f"{name}{i}", initializer=made, use_resource=resource)
            for i, made in enumerate((values, sums))
        ]

    library, ours, stock = _native.library(), variables("ours"), variables("stock")
    if resource:
        update = library.workbench_resource_rows_apply_adagrad(
            ours[0].handle, ours[1].handle, 0.1, grads, rows
        )
        reference = tf.raw_ops.ResourceSparseApplyAdagrad(
            var=stock[0].handle, accum=stock[1].handle, lr=0.1, grad=grads, indices=rows
        )
    else:
        update = library.workbench_rows_apply_adagrad(
            ours[0]._ref(), ours[1]._ref(), 0.1, grads, rows
        )
        reference = tf.raw_ops.SparseApplyAdagrad(
            var=stock[0]._ref(), accum=stock[1]._ref(), lr=0.1, grad=grads, indices=rows
        )
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run([update, reference])
        for mine, theirs in zip(*session.run([ours, stock]), strict=True):
            np.testing.assert_array_equal(mine, theirs)

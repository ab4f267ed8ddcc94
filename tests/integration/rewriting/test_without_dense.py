"""A library that was built without the kernels of native/dense: lookups alone are fused."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from workbench import _native

v1 = tf.compat.v1


def test_layers_and_whole_updates_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.Graph().as_default() as graph:
        ids = v1.placeholder_with_default(np.arange(8), [8])
        table = v1.get_variable("table", initializer=np.ones((9, 4), np.float32))
        rows = tf.nn.embedding_lookup(table, ids)
        mean, variance = tf.nn.moments(rows, [0])
        gamma, beta = (v1.get_variable(name, [4]) for name in ("gamma", "beta"))
        layer = tf.nn.batch_normalization(rows, mean, variance, beta, gamma, 1e-3)
        factor = v1.get_variable("factor", initializer=np.ones((4, 4), np.float32))
        loss = tf.reduce_sum(tf.square(layer @ factor))
        v1.train.AdamOptimizer().minimize(loss)
    whole = wb.plan_fusion(graph)
    assert {"lookup", "batch normalization", "update"} <= {each.kind for each in whole.fused}
    monkeypatch.setattr(_native, "has_dense_kernels", lambda: False)
    assert {each.kind for each in wb.plan_fusion(graph).fused} == {"lookup"}

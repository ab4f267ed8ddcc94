"""Weights of a model change as `updates` says: tables by Adagrad, the rest by Adam, clipped."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from workbench.models.building.optimizers import minimize
from workbench.ops.lookup.fusion import fused_embeddings, safe_embedding_lookup_sparse

v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Rates:
    learning_rate: float = 0.5
    table_learning_rate: float = 0.25


def step_once(clip_norm=None, version=None):
    """One step of a table of two rows, a weight of two and one that has no part in the loss."""
    with tf.Graph().as_default():
        names = ("table", "weight", "idle")
        table, weight, _ = (
            v1.get_variable(name, [2, 2], initializer=v1.ones_initializer(), use_resource=False)
            for name in names
        )
        ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 1], tf.int64), [2, 1])
        with fused_embeddings(version):
            found = safe_embedding_lookup_sparse(table, ids)
        loss = tf.reduce_sum(3.0 * found) + tf.reduce_sum([[30.0, 40.0], [0.0, 0.0]] * weight)
        op = minimize(loss, Rates(), clip_norm=clip_norm)
        variables = {v.op.name: v for v in v1.global_variables()}
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(op)
            return session.run(variables)


@pytest.mark.parametrize("version", [None, "v1", "v2"])
def test_tables_move_by_adagrad_and_only_in_the_rows_of_the_batch(version):
    found = step_once(version=version)
    # Row 1 is looked up twice: its gradient is 6 in each column.
    np.testing.assert_allclose(found["table/Adagrad"], [[0.1, 0.1], [36.1, 36.1]], rtol=1e-6)
    moved = 1 - 0.25 * 6 / np.sqrt(36.1)
    np.testing.assert_allclose(found["table"], [[1, 1], [moved, moved]], rtol=1e-6)


def test_other_weights_move_by_adam():
    found = step_once()
    np.testing.assert_allclose(found["weight/Adam"], [[3.0, 4.0], [0.0, 0.0]], rtol=1e-5)
    np.testing.assert_allclose(found["weight"], [[0.5, 0.5], [1.0, 1.0]], rtol=1e-5)
    assert "table/Adam" not in found


def test_a_step_is_counted_once_and_what_has_no_part_in_the_loss_stays():
    found = step_once()
    assert found["global_step"] == 1
    assert (found["idle"] == 1).all()


@pytest.mark.parametrize("version", [None, "v1"])
def test_gradients_are_clipped_except_those_of_tables(version):
    found = step_once(clip_norm=5.0, version=version)
    np.testing.assert_allclose(found["weight/Adam"], [[0.3, 0.4], [0.0, 0.0]], rtol=1e-5)
    np.testing.assert_allclose(found["table/Adagrad"][1], 36.1, rtol=1e-6)

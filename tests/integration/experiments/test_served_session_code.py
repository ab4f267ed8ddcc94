"""The code of a report loads a SavedModel into a session that answers as stock TensorFlow does."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.serving import save_scores
from workbench.experiments.serving.results import ServedVariant
from workbench.viz.serving.code import session_code

v1 = tf.compat.v1


def answer(session):
    """The scores of one request of two rows."""
    feeds = {"x:0": np.ones([2, 3], np.float32)}
    for number in range(4):
        name = f"c{number}"
        feeds[f"{name}/indices:0"] = [[0, 0], [1, 0]]
        feeds[f"{name}/values:0"] = [number, 7]
        feeds[f"{name}/shape:0"] = [2, 1]
    return session.run("scores:0", feeds)


@pytest.mark.executors
def test_the_code_serves_what_stock_serves(tmp_path):
    folder = str(save_scores(tmp_path / "model"))
    with tf.Graph().as_default(), v1.Session() as stock:
        v1.saved_model.loader.load(stock, ["serve"], folder)
        expected = answer(stock)
    setting = wb.Optimizations(
        fused_embeddings="auto",
        executor="inline",
        intra_op_threads=1,
        chosen=(wb.toggles.STEPS_AT_ONCE.at(2),),
    )
    names = {"folder": folder}
    variant = ServedVariant(
        label="fused", optimizations=setting, points=(), sessions=2, steps_at_once=2
    )
    exec(session_code(variant, "serving_default", 4), names)
    with names["session"] as session:
        np.testing.assert_allclose(answer(session), expected, rtol=1e-6)
    assert names["plan"].count > 0
    assert names["config"].experimental.executor_type == "WORKBENCH_INLINE"
    assert names["config"].intra_op_parallelism_threads == 1
    assert names["config"].inter_op_parallelism_threads == 2

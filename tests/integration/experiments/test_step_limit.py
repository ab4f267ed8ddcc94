"""The reference program of `make bench NAME=limit` trains as TensorFlow does."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests.bench import limit_file
from tests.bench.limit_model import build, start_of
from tests.bench.step_limit import StepLimit

v1 = tf.compat.v1
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ compiles it")
# Not a multiple of what its products and stripes take at a time.
BATCH, STEPS = 70, 20


@pytest.mark.parametrize("model", limit_file.MODELS)
def test_losses_are_those_of_tensorflow(model, tmp_path):
    path = str(tmp_path / "start.bin")
    with tf.Graph().as_default(), v1.Session() as session:
        built = build(model, BATCH)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        start = start_of(model, BATCH, session)
        limit_file.write(start, path)
        losses = [session.run([built.train_op, built.loss])[1] for _ in range(STEPS)]
    again = limit_file.read(path)
    np.testing.assert_array_equal(again.ids, start.ids)
    np.testing.assert_array_equal(again.tables[3], start.tables[3])
    found = {}
    for threads in (1, 3):
        reference = StepLimit(path, threads)
        found[threads] = reference.losses(STEPS)
        reference.close()
    np.testing.assert_allclose(found[3], losses, rtol=1e-5)
    np.testing.assert_allclose(found[1], found[3], rtol=1e-6)
    # Without updates the same batches give other losses, by far more than that.
    rates = limit_file.RATES[model]
    limit_file.RATES[model] = (0.0, 0.0)
    try:
        limit_file.write(start, path)
    finally:
        limit_file.RATES[model] = rates
    reference = StepLimit(path, 2)
    assert np.max(np.abs(reference.losses(STEPS) / found[1] - 1)) > 1e-3
    reference.close()


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(SystemExit, match="no file of limit_file"):
        StepLimit(str(tmp_path / "none"), 1)

"""The reference program of `make bench NAME=limit` trains as TensorFlow does."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import workbench as wb
from tests.bench import limit_file, limit_parts
from tests.bench.limit_model import build, start_of
from tests.bench.step_limit import StepLimit
from tests.builders.limits import PEAKS
from workbench.core.analysis.limit.limit import limit_of

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


@pytest.mark.parametrize("model", limit_file.MODELS)
@pytest.mark.executors
def test_the_view_counts_what_the_reference_does(model):
    with tf.Graph().as_default() as graph:
        built = build(model, BATCH)
        capture = wb.CaptureHook()
        config = wb.executor_options("normal", config=wb.apply(wb.plan_fusion(graph)))
        with v1.train.MonitoredTrainingSession(hooks=[capture], config=config) as session:
            session.run(built.train_op)
            capture.start(shapes=True)
            for _ in range(3):
                session.run(built.train_op)
            trace = capture.stop()
    found = limit_parts.of_view(limit_of(trace, PEAKS).df)
    for part, (flops, moved) in limit_parts.counts(model, BATCH).items():
        if flops:
            assert found.loc[part, "flops"] == pytest.approx(flops, rel=0.1), part
        assert found.loc[part, "bytes"] == pytest.approx(moved, rel=0.1), part


def test_the_reference_tells_its_parts(tmp_path):
    path = str(tmp_path / "start.bin")
    with tf.Graph().as_default(), v1.Session() as session:
        build("deepfm", BATCH)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        limit_file.write(start_of("deepfm", BATCH, session), path)
    reference = StepLimit(path, 2)
    parts = reference.parts(3)
    reference.close()
    assert all(seconds > 0 for seconds in parts.values()), parts
    heads = limit_parts.table("deepfm", parts, limit_parts.counts("deepfm", BATCH), no_nodes())
    assert len(heads.splitlines()) == 2 + len(parts)


def no_nodes():
    columns = ["op", "flops", "bytes", "least_ns", "took_ns"]
    return limit_parts.of_view(pd.DataFrame(columns=columns))


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(SystemExit, match="no file of limit_file"):
        StepLimit(str(tmp_path / "none"), 1)

"""Shapes of real steps, and the limit of the six models."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.core.analysis.limit.limit import knows_shapes
from workbench.core.graph.tensor_shapes import parsed_shapes
from workbench.errors import TraceError
from workbench.experiments.comparison.machine_peaks import machine_peaks

pytestmark = pytest.mark.executors
BATCH, WIDTH, UNITS = 32, 12, 8


@pytest.fixture(scope="module", autouse=True)
def measured(tmp_path_factory):
    """The peaks of this machine, in a cache directory of this module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield machine_peaks(progress=False)


def build(optimizations):
    """A dense layer on a batch whose size the graph does not know."""
    import tensorflow as tf

    v1 = tf.compat.v1
    data = tf.data.Dataset.range(10**6).map(lambda i: tf.fill([WIDTH], tf.cast(i % 7, tf.float32)))
    batch = v1.data.make_one_shot_iterator(data.batch(BATCH)).get_next()
    if optimizations.stage:
        batch = wb.staged(tf.math.log1p(batch, name="log"), optimizations.stage)
    kernel = v1.get_variable("kernel", [WIDTH, UNITS], use_resource=True)
    table = v1.get_variable("table", [50, 4], use_resource=False)
    ids = tf.cast(batch[:, 0], tf.int64) % 50
    vectors = tf.gather(table, ids, name="rows")
    loss = tf.reduce_mean(tf.matmul(batch, kernel, name="product") ** 2)
    loss += tf.reduce_mean(vectors**2)
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.AdagradOptimizer(0.01).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss)


def shapes_of(trace):
    columns = (trace.nodes[name].tolist() for name in ("name", "inputs", "outputs"))
    return {
        name: (parsed_shapes(read), parsed_shapes(made))
        for name, read, made in zip(*columns, strict=True)
    }


@pytest.fixture(scope="module")
def trace():
    program = wb.Program(name="dense", build=build)
    return wb.trace(program, steps=4, warm_up_steps=2, progress=False)


def test_shapes_of_a_program(trace):
    assert len(trace.steps()) == 4
    shapes = shapes_of(trace)
    read, made = shapes["product"]
    assert [each.shape for each in read] == [(BATCH, WIDTH), (WIDTH, UNITS)]
    assert [(each.dtype, each.shape) for each in made] == [("float32", (BATCH, UNITS))]
    # A variable is known by its handle, and by its reference.
    handles = [each for read, _ in shapes.values() for each in read if each.is_variable]
    assert {each.shape for each in handles} >= {(WIDTH, UNITS), (50, 4)}
    found = wb.limit(trace, progress=False)
    products = found.df[found.df["op"].str.contains("MatMul")]
    # Forward, and the gradient of the kernel.
    assert products["flops"].sum() == 2 * 2 * BATCH * WIDTH * UNITS


def test_shapes_of_a_stage():
    program = wb.Program(name="staged", build=build)
    setting = wb.Optimizations(stage=wb.StageOptions())
    trace = wb.trace(program, setting, steps=4, warm_up_steps=2, progress=False)
    (read, made), product = shapes_of(trace)["log"], shapes_of(trace)["product"]
    assert read[0].shape == made[0].shape == product[0][0].shape == (BATCH, WIDTH)


@pytest.mark.parametrize("staged", [False, True])
def test_a_session_of_ones_own(staged):
    import tensorflow as tf

    v1 = tf.compat.v1
    setting = wb.Optimizations(stage=wb.StageOptions() if staged else None)
    with tf.Graph().as_default():
        built = build(setting)
        capture = wb.CaptureHook()
        hooks = [wb.make_prefetch_hook(), capture] if staged else [capture]
        config = wb.executor_options("normal")
        with v1.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
            for _ in range(12):
                session.run(built.train_op)
            losses = [float(session.run([built.train_op, built.loss])[1])]
            capture.start(shapes=True)
            losses += [float(session.run([built.train_op, built.loss])[1]) for _ in range(12)]
            trace = capture.stop()
            capture.start()
            session.run(built.train_op)
            without = capture.stop()
    assert np.isfinite(losses).all()
    steps = len(trace.steps())
    # The first step tells them; behind a stage a few more may.
    assert steps == 11 if not staged else 4 <= steps <= 11
    assert shapes_of(trace)["product"][1][0].shape == (BATCH, UNITS)
    assert not knows_shapes(without)
    limit = wb.limit(trace, progress=False)
    assert 0 < limit.floor_ns <= limit.step_ns == limit.parts()["ns"].sum()
    with pytest.raises(TraceError, match=r"CaptureHook\.start\(shapes=True\)"):
        wb.limit(without, progress=False)


def test_no_step_is_left_for_the_trace():
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        built = build(wb.Optimizations())
        capture = wb.CaptureHook()
        config = wb.executor_options("normal")
        with v1.train.MonitoredTrainingSession(hooks=[capture], config=config) as session:
            capture.start(shapes=True)
            session.run(built.train_op)
            with pytest.raises(TraceError, match="no step was run"):
                capture.stop()
            session.run(built.train_op)


def test_shapes_are_kept_in_a_file(trace, tmp_path):
    trace.save(tmp_path / "trace.parquet")
    again = wb.load_trace(tmp_path / "trace.parquet")
    assert again.nodes["inputs"].tolist() == trace.nodes["inputs"].tolist()
    assert wb.limit(again, progress=False).floor_ns == wb.limit(trace, progress=False).floor_ns


def models():
    """Each model fused and as it is; one of them proves the same in little time."""
    for name in ("dlrm", "deepfm", "wdl", "dssm", "din", "dien"):
        for fused in (None, "auto"):
            quick = (name, fused) == ("dlrm", "auto")
            yield pytest.param(name, fused, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("name", "fused"), models())
def test_the_six_models(name, fused):
    program = getattr(wb.models, name)(batch_size=128)
    setting = wb.Optimizations(fused_embeddings=fused)
    trace = wb.trace(program, setting, steps=5, warm_up_steps=5, progress=False)
    found = wb.limit(trace, progress=False)
    assert found.parts()["ns"].sum() == found.step_ns and (found.parts()["ns"] >= 0).all()
    assert 0 < found.floor_ns <= found.step_ns
    assert found.unknown_share < 0.2
    assert found.by_family().set_index("family").loc["Dense matmul", "flops"] > 1e6
    with_shapes = (trace.nodes["inputs"] != "") | (trace.nodes["outputs"] != "")
    assert with_shapes.mean() > 0.5
    assert "of these cores need" in str(wb.limit(trace, progress=False)._repr_mimebundle_())

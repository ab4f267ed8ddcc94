"""What a capture notes of the rules of fusion, and what the findings make of it."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.batch_norms import layer, loss_of, normal
from workbench.core.capture import fusable
from workbench.core.capture.session_capture import capture_steps

v1 = tf.compat.v1
ROWS, VECTORS, DIM = 512, 8, 16
PAIRS = np.flatnonzero(np.tril(np.ones((VECTORS, VECTORS)), -1)).astype(np.int32)


def dots(x: tf.Tensor, name: str, *, read_elsewhere: bool = False) -> tf.Tensor:
    """Pairs of an example's vectors, whose products something else may read, too."""
    with v1.name_scope(name):
        vectors = tf.reshape(layer(x, VECTORS * DIM, name), [-1, VECTORS, DIM])
        products = tf.matmul(vectors, vectors, transpose_b=True)
        flat = tf.reshape(products, [-1, VECTORS * VECTORS])
        pairs = tf.gather(flat, PAIRS, axis=1, name="pairs")
        return pairs + tf.reduce_max(products) if read_elsewhere else pairs


def build() -> tf.Operation:
    """A normalization, and two interactions of which the rules refuse one."""
    drawn = np.random.default_rng(0).normal(size=[ROWS, 24]).astype(np.float32)
    x = v1.placeholder_with_default(drawn, [ROWS, 24])
    normed, _, _ = normal(layer(x, 512, "dense"), "norm")
    losses = [loss_of(dots(normed, "free")), loss_of(dots(x, "read", read_elsewhere=True))]
    return v1.train.GradientDescentOptimizer(1e-3).minimize(tf.add_n(losses))


def captured(train_op: tf.Operation, *, fused: bool = False) -> wb.Trace:
    config = wb.executor_options("normal")
    if fused:
        config = wb.apply(wb.plan_fusion(train_op.graph), config)
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(train_op)
        return capture_steps(session, train_op, 4)


def kinds_of(trace: wb.Trace) -> dict[str, set[str]]:
    """By kind, what of it ran that could be fused."""
    parts = trace.nodes.groupby("fusable")["fusable_part"]
    return {kind: set(names) for kind, names in parts if kind}


@pytest.mark.executors
def test_a_trace_knows_what_the_rules_would_fuse_and_what_they_refuse(tmp_path):
    trace = captured(build())
    kinds = kinds_of(trace)
    assert len(kinds["batch normalization"]) == 1
    assert kinds["dot interaction"] == {"free/pairs"}
    assert "read/pairs" in trace.meta.not_fusable

    of_kind = trace.nodes.set_index("name")["fusable"]
    assert of_kind["free/MatMul_1"] == of_kind["free/pairs"] == "dot interaction"
    assert {of_kind[name] for name in of_kind.index if name.startswith("read/")} <= {
        "",
        "matrix product",
    }

    by_key = {each.key: each for each in wb.findings(trace)}
    for key, one in (("many_op_norms", "1 batch norm"), ("many_op_interactions", "1 dot inter")):
        assert one in by_key[key].title and by_key[key].toggle == "auto_fused"
    assert not any(name.startswith("read/") for name in by_key["many_op_interactions"].nodes)

    trace.save(tmp_path / "x.parquet")
    read = wb.load_trace(tmp_path / "x.parquet")
    assert read.nodes.equals(trace.nodes) and read.meta.not_fusable == trace.meta.not_fusable


@pytest.mark.executors
def test_what_is_fused_already_is_not_fusable_any_more():
    kinds = kinds_of(captured(build(), fused=True))
    assert not kinds.keys() & {"batch normalization", "dot interaction"}


@pytest.mark.executors
def test_a_hook_may_leave_the_rules_alone():
    train_op = build()
    capture = wb.CaptureHook()
    config = wb.executor_options("normal")
    with v1.train.MonitoredTrainingSession(hooks=[capture], config=config) as session:
        for ask_rules in (False, True):
            capture.start(ask_rules=ask_rules)
            session.run(train_op)
            trace = capture.stop()
            assert (trace.meta.not_fusable is not None) == bool(kinds_of(trace)) == ask_rules


@pytest.mark.executors
def test_an_error_of_a_rule_loses_no_trace(monkeypatch, caplog):
    def fails(graph):
        raise RuntimeError("no such rule")

    monkeypatch.setattr(fusable, "fusable_nodes", fails)
    with caplog.at_level(logging.WARNING, "workbench"):
        trace = captured(build())
    assert len(trace.steps()) == 4 and not kinds_of(trace) and trace.meta.not_fusable is None
    assert "does not say what of its graph could be fused: RuntimeError: no such" in caplog.text
    assert "many_op_norms" not in [each.key for each in wb.findings(trace)]


def make():
    import numpy as np
    import tensorflow as tf

    weight = tf.Variable(np.random.default_rng(0).normal(size=[24, 64]).astype(np.float32))
    beta, gamma = tf.Variable(tf.zeros([64])), tf.Variable(tf.ones([64]))

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            x = tf.matmul(batch, weight)
            mean, variance = tf.nn.moments(x, [0])
            normed = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
            loss = tf.reduce_mean(tf.sin(normed))
        kernel, offset, scale = tape.gradient(loss, [weight, beta, gamma])
        weight.assign_sub(0.1 * kernel)
        beta.assign_sub(0.1 * offset)
        gamma.assign_sub(0.1 * scale)
        return loss

    return step, tf.data.Dataset.from_tensors(tf.ones([512, 24])).repeat()


@pytest.mark.slow
@pytest.mark.executors
def test_a_function_is_asked_about_too():
    program = wb.FunctionProgram(name="normed", make=make)
    trace = wb.trace(program, steps=4, warm_up_steps=2, progress=False)
    assert len(kinds_of(trace)["batch normalization"]) == 1
    assert "many_op_norms" in [each.key for each in wb.findings(trace)]

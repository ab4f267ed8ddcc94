"""Bytes of outputs, as Workbench's executors note them, on graphs whose sizes are known."""

from __future__ import annotations

import pytest
import tensorflow as tf

import workbench as wb
from tests.integration.capture.test_capture_native import captured, every_executor, on

v1 = tf.compat.v1
ROWS = 512
BYTES = ROWS * ROWS * 4


def traced(executor: str, fetched) -> wb.Trace:
    capture = wb.CaptureHook("bytes")
    config = on(executor)
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with v1.train.MonitoredTrainingSession(hooks=[capture], config=config) as session:
        session.run(fetched)
        capture.start()
        for _ in range(3):
            session.run(fetched)
        return capture.stop()


def sizes(trace: wb.Trace) -> dict[str, tuple[int, int]]:
    """The most that an op of each name made and passed on."""
    named = trace.events.assign(name=trace.nodes["name"].to_numpy()[trace.events["node"]])
    most = named.groupby("name")[["made_bytes", "passed_bytes"]].max()
    return {name: (int(made), int(passed)) for name, made, passed in most.itertuples()}


@pytest.mark.executors
@every_executor
def test_what_ops_make_and_pass_on(executor):
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", [ROWS, ROWS], use_resource=True)
        noise = tf.random.uniform([ROWS, ROWS], name="noise")
        flat = tf.reshape(noise, [-1], name="flat")
        double = tf.multiply(flat, 2.0, name="double")
        product = tf.matmul(tf.reshape(double, [ROWS, ROWS]), weight, name="product")
        text = tf.as_string(tf.range(10), name="text")
        loss = tf.reduce_sum(product) + tf.strings.to_number(tf.strings.reduce_join(text))
        trace = traced(executor, loss)
    found = sizes(trace)
    assert found["noise/RandomUniform"] == (BYTES, 0)
    assert found["flat"] == (0, BYTES)
    # It writes over its input, which nothing else reads.
    assert found["double"] == (0, BYTES)
    assert found["product"] == (BYTES, 0)
    # 24 bytes a string, in lines of 64.
    assert found["text"] == (256, 0)
    # A variable's own memory is nobody's output.
    assert all(made == 0 for name, (made, _) in found.items() if name.startswith("weight"))
    assert trace.meta.variables["weight"] == BYTES
    memory = wb.memory(trace)
    assert 2 * BYTES <= memory.peak_bytes < 3 * BYTES
    assert memory.variable_bytes >= BYTES
    assert memory.curve["op_bytes"].iloc[-1] == 0


@pytest.mark.executors
@pytest.mark.parametrize("executor", ["WORKBENCH_NORMAL", "WORKBENCH_INLINE"])
def test_items_of_a_stage_have_their_size(executor):
    with tf.Graph().as_default():
        trace = captured(executor, wb.StageOptions(capacity=2))
    item = 64 * 64 * 4
    taken = trace.items[trace.items["take_step"] >= 0]
    assert set(taken["bytes"]) == {item}
    (row,) = wb.memory(trace).buffers.to_dict("records")
    assert row["item_bytes"] == item and 0 < row["mean_bytes"] < 4 * item

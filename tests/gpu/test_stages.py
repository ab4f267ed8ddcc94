"""Stages of a step that computes on a GPU: where nodes run, and that the step is the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.stage_puts import put_beside
from workbench.core import smart_stage

v1 = tf.compat.v1
GPU = "/device:GPU:0"
ROWS, STEPS = 500, 30


def model() -> tuple[tf.Tensor, tf.Operation]:
    """The loss and the train op of a small model, which is placed as TensorFlow likes."""
    random = np.random.default_rng(0)
    ids = random.integers(0, 1 << 40, [STEPS * 8, 64])
    dense = random.normal(size=[STEPS * 8, 64, 13]).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((ids, dense))
    iterator = v1.data.make_initializable_iterator(dataset)
    v1.add_to_collection("initializers", iterator.initializer)
    keys, numbers = iterator.get_next()
    buckets = tf.strings.to_hash_bucket_fast(tf.strings.as_string(keys), ROWS, name="buckets")
    scaled = tf.math.log1p(tf.abs(numbers), name="scaled")
    table = v1.get_variable("table", [ROWS, 16], initializer=v1.random_normal_initializer(seed=1))
    weight = v1.get_variable("weight", [29, 1], initializer=v1.random_normal_initializer(seed=2))
    looked_up = tf.nn.embedding_lookup(table, buckets)
    logits = tf.matmul(tf.concat([looked_up, scaled], 1), weight, name="logits")
    loss = tf.reduce_mean(tf.square(logits - 1.0), name="loss")
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss)


def losses_of(config: Any, loss: Any, train: Any) -> list[float]:
    with v1.Session(config=config) as session:
        session.run([v1.get_collection("initializers"), v1.global_variables_initializer()])
        with wb.prefetching(session):
            return [float(session.run([loss, train])[0]) for _ in range(STEPS)]


def places(run: Callable[[Any, Any], Any]) -> dict[str, str]:
    """The device of each node that a run had."""
    metadata = v1.RunMetadata()
    run(v1.RunOptions(output_partition_graphs=True), metadata)
    return {n.name: n.device[-5:] for part in metadata.partition_graphs for n in part.node}


def placed(config: Any, step: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Devices of the nodes of a step, and of those of the last stage's put."""
    with v1.Session(config=config) as session:
        session.run([v1.get_collection("initializers"), v1.global_variables_initializer()])
        with wb.prefetching(session) as runs:
            of_step = places(lambda o, m: session.run(step, options=o, run_metadata=m))
            return of_step, places(lambda o, m: put_beside(session, runs[-1], step, o, m))


def test_a_smart_stage_moves_what_the_gpu_reads_ahead_of_the_step() -> None:
    loss, train = model()
    given = v1.ConfigProto()
    # It would give nodes other names.
    given.graph_options.rewrite_options.disable_meta_optimizer = True
    config, plan = smart_stage.prepare_config(
        loss.graph, given, wb.SmartStageOptions(on_cpu=True), targets=[train]
    )
    assert plan.stages[-1].buffer_device == GPU
    of_step, ahead = placed(config, train)
    assert of_step["smart_stage_buffer/take"] == of_step["logits"] == "GPU:0"
    assert ahead["smart_stage_buffer/put"] == "GPU:0"
    assert ahead["smart_stage/scaled"] == ahead["smart_stage/buckets"] == "CPU:0"
    assert not [name for name in of_step if name.startswith("smart_stage/")]


@pytest.mark.parametrize("on_cpu", [True, False])
def test_losses_are_those_without_a_smart_stage(on_cpu: bool) -> None:
    loss, train = model()
    config, _ = smart_stage.prepare_config(
        loss.graph, None, wb.SmartStageOptions(on_cpu=on_cpu), targets=[train]
    )
    np.testing.assert_allclose(
        losses_of(config, loss, train), losses_of(None, loss, train), rtol=1e-5
    )


def test_a_stage_on_the_gpu_gives_every_batch_once() -> None:
    with tf.device(GPU):
        numbers = v1.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
        squares = tf.cast(numbers, tf.float32) * tf.ones([1 << 16])
        taken = wb.staged(squares, wb.StageOptions(capacity=3, num_threads=1), name="input")
        total = tf.reduce_sum(taken) / (1 << 16)
    with (
        v1.Session(config=v1.ConfigProto(allow_soft_placement=True)) as session,
        wb.prefetching(session),
    ):
        found = [float(session.run(total)) for _ in range(300)]
    assert found == list(range(300))


# Logical devices are a process's first session's.
_STREAM = """
import tensorflow as tf
import workbench as wb
from tests.gpu import test_stages
v1 = tf.compat.v1
with tf.Graph().as_default():
    iterator = v1.data.make_one_shot_iterator(tf.data.Dataset.range(1000))
    with tf.device("/GPU:0"):
        numbers = tf.cast(iterator.get_next(), tf.float32) * tf.ones([64, 64])
        scaled = tf.matmul(numbers, tf.eye(64), name="scaled")
        taken = wb.staged(scaled, wb.StageOptions(stage_subgraph_stream_id=1), name="input")
        step = tf.reduce_mean(tf.matmul(taken, tf.eye(64)), name="step")
    config = v1.ConfigProto(allow_soft_placement=True)
    # It would give nodes other names.
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.gpu_options.experimental.virtual_devices.add(memory_limit_mb=[2000, 1000])
    of_step, ahead = test_stages.placed(config, step)
    assert ahead["scaled"] == "GPU:1", ahead
    assert of_step[step.op.name] == of_step["input/take"] == ahead["input/put"] == "GPU:0"
    with v1.Session(config=config) as session, wb.prefetching(session):
        found = [float(session.run(step)) for _ in range(200)]
    assert found == sorted(found) and len(set(found)) == 200, found
    print("streams are there")
"""


def test_a_stage_of_another_stream_runs_on_the_logical_device() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _STREAM], capture_output=True, text=True, timeout=200, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout.strip() == "streams are there"

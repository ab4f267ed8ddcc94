"""A stream of a tf.function's stage: where the staged half runs, on logical CPU devices."""

from __future__ import annotations

import pytest

from tests.builders.scripts import run_script

SCRIPT = """
import sys
import tensorflow as tf
import workbench as wb
from tensorflow.python.eager import context

devices, stream = map(int, sys.argv[1:])
logical = [tf.config.LogicalDeviceConfiguration()] * devices
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)
# It would give nodes other names.
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
weight = tf.Variable(1.0)

@tf.function
def step(number):
    scaled = tf.multiply(number, 2.0, name="scaled")
    return tf.multiply(scaled, weight, name="step")

data = tf.data.Dataset.range(5).map(lambda number: tf.cast(number, tf.float32))
context.context().enable_run_metadata()
options = wb.SmartStageOptions(stage_subgraph_stream_id=stream)
print([float(value) for value in wb.smart_stage(step, data, options)])
graphs = context.context().export_run_metadata().function_graphs
nodes = {n.name: n.device for graph in graphs for part in graph.partition_graphs for n in part.node}
for name in ("smart_stage/scaled", "WorkbenchBufferPut", "workbench_take", "step"):
    print(name, nodes[name][-5:])
"""


@pytest.mark.parametrize(("devices", "stream", "where"), [(2, 1, 1), (2, 0, 0), (1, 1, 0)])
def test_the_staged_half_runs_on_the_device_of_its_stream(devices, stream, where, tmp_path):
    done = run_script(SCRIPT, tmp_path, str(devices), str(stream))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-5:] == [
        "[0.0, 2.0, 4.0, 6.0, 8.0]",
        f"smart_stage/scaled CPU:{where}",
        "WorkbenchBufferPut CPU:0",
        "workbench_take CPU:0",
        "step CPU:0",
    ]


def test_a_stream_that_is_missing_says_how_to_make_it(tmp_path):
    done = run_script(SCRIPT, tmp_path, "2", "2")
    assert done.returncode == 1
    assert "stage 'smart_stage' has stage_subgraph_stream_id=2" in done.stderr
    assert "tf.config.set_logical_device_configuration, one for each stream" in done.stderr

"""The device of a buffer: its kernels for GPUs, and which run moves an item's tensors."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.kernels import get_registered_kernels_for_op

from workbench import _native
from workbench.core.staging import buffer

v1 = tf.compat.v1

OWNER = [11, 0]
FIRST, SECOND = "/job:localhost/replica:0/task:0/device:CPU:0", "/device:CPU:1"
TWO_CPUS = v1.ConfigProto(device_count={"CPU": 2})

# What stays in the host's memory when the op is on a GPU.
ON_HOST = {
    "Put": {"owner", "host_record"},
    "Flush": {"owner"},
    "Take": {"host_record"},
    "Resume": {"owner"},
    "Cancel": {"owner", "code", "message"},
    "Close": {"owner"},
    "Size": {"size"},
    "Drain": {"enable", "events"},
}


@pytest.mark.parametrize("op", ON_HOST)
def test_every_op_has_a_kernel_for_a_gpu(op):
    _native.library()
    kernels = get_registered_kernels_for_op(f"WorkbenchBuffer{op}").kernel
    on = {kernel.device_type: kernel for kernel in kernels}
    assert sorted(on) == ["CPU", "GPU"]
    assert set(on["GPU"].host_memory_arg) == ON_HOST[op]
    assert not on["GPU"].constraint


def run_on_each_device(session: Any, run: Any, feeds: Any = None) -> dict[str, Any]:
    """Runs it, and counts the ops of each type that this took on each device."""
    metadata = v1.RunMetadata()
    session.run(run, feeds, v1.RunOptions(output_partition_graphs=True), metadata)
    return {
        graph.node[0].device[-5:]: collections.Counter(node.op for node in graph.node)
        for graph in metadata.partition_graphs
    }


def test_the_run_of_the_put_moves_what_the_step_takes():
    with tf.device(FIRST):
        number = v1.placeholder(tf.float32, [2])
        made, made_on_host = number * 2.0, tf.strings.as_string(number)
    with tf.device(SECOND):
        owner = tf.constant(OWNER, tf.int64)
        at = buffer.Buffer(capacity=1, shared_name="moved")
        put, resume = at.put(owner, [made], [made_on_host]), at.resume(owner)
        taken, text = at.take([tf.float32], [tf.string], shapes=[[2]], host_shapes=[[2]])
        total = v1.get_variable("total", [2], initializer=v1.zeros_initializer())
        read = v1.get_variable("read", [2], tf.string, v1.constant_initializer(""))
        step = tf.group(v1.assign_add(total, taken), v1.assign(read, text))
    with v1.Session(config=TWO_CPUS) as session:
        session.run([resume, v1.global_variables_initializer()])
        produced = run_on_each_device(session, put, {number: [1.0, 4.0]})
        assert sorted(produced) == ["CPU:0", "CPU:1"]
        assert produced["CPU:0"]["Mul"] == produced["CPU:1"]["WorkbenchBufferPut"] == 1
        # Strings never leave the host: between two devices, too, they go the host's way.
        for sent, received in (("_Send", "_Recv"), ("_HostSend", "_HostRecv")):
            assert produced["CPU:0"][sent] == produced["CPU:1"][received] == 1
            assert received not in produced["CPU:0"]
        consumed = run_on_each_device(session, step)
        assert list(consumed) == ["CPU:1"]
        assert consumed["CPU:1"]["WorkbenchBufferTake"] == 1
        assert not {op for op in consumed["CPU:1"] if op.endswith(("Send", "Recv"))}
        np.testing.assert_array_equal(session.run(total), [2.0, 8.0])
        assert session.run(read).tolist() == [b"1.000000", b"4.000000"]


def test_each_device_has_buffers_of_its_own():
    at = buffer.Buffer(capacity=1, shared_name="one name")
    owner = tf.constant(OWNER, tf.int64)
    sizes = []
    for device in (FIRST, SECOND):
        with tf.device(device):
            sizes.append(at.size())
    with tf.device(SECOND):
        resume, put = at.resume(owner), at.put(owner, [tf.constant(1.0)])
    with v1.Session(config=TWO_CPUS) as session:
        session.run(resume)
        session.run(put)
        assert session.run(sizes) == [0, 1]


def test_a_buffer_asked_for_on_a_gpu_works_with_and_without_one():
    with tf.device("/GPU:0"):
        at = buffer.Buffer(capacity=2, shared_name="perhaps on a GPU")
        owner = v1.placeholder(tf.int64, [2])
        code, message = v1.placeholder(tf.int32, []), v1.placeholder(tf.string, [])
        enable = v1.placeholder(tf.bool, [])
        value = v1.placeholder(tf.float32, [2])
        put = at.put(owner, [value, value * 2.0], [tf.range(3), tf.constant("a")])
        taken = at.take([tf.float32, tf.float32], [tf.int32, tf.string])
        tripled = taken[0] + taken[1]
        flush, resume, close = at.flush(owner), at.resume(owner), at.close(owner)
        cancel, size, drain = at.cancel(owner, code, message), at.size(), at.drain(enable)
    with v1.Session(config=v1.ConfigProto(allow_soft_placement=True)) as session:
        session.run(resume, {owner: OWNER})
        session.run(drain, {enable: True})
        session.run(put, {owner: OWNER, value: [1.0, 2.0]})
        session.run(put, {owner: OWNER, value: [3.0, 4.0]})
        session.run(flush, {owner: OWNER})
        assert session.run(size) == 2
        for expected in ([3.0, 6.0], [9.0, 12.0]):
            first, numbers, text = session.run([tripled, *taken[2:]])
            np.testing.assert_array_equal(first, expected)
            assert numbers.tolist() == [0, 1, 2]
            assert text == b"a"
        assert session.run(drain, {enable: False})[:, 0].tolist() == [0, 0, 1, 1]
        session.run(close, {owner: OWNER})
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(taken)
        session.run(resume, {owner: OWNER})
        session.run(cancel, {owner: OWNER, code: tf.errors.DATA_LOSS, message: "shard 3"})
        with pytest.raises(tf.errors.DataLossError, match="shard 3"):
            session.run(taken)

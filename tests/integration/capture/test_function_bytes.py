"""Bytes of outputs in a trace of a tf.function, whose elements Python reads."""

from __future__ import annotations

import pytest

import workbench as wb

ROWS = 256


def make():
    import tensorflow as tf

    weight = tf.Variable(tf.ones([ROWS, ROWS]))

    @tf.function
    def step(batch):
        loss = tf.reduce_sum(tf.matmul(batch, weight, name="product"))
        weight.assign_sub(0.1 * weight)
        return loss

    return step, tf.data.Dataset.from_tensors(tf.ones([ROWS, ROWS])).repeat()


@pytest.mark.slow
@pytest.mark.executors
def test_a_function_knows_the_size_of_its_tensors():
    program = wb.FunctionProgram(name="bytes", make=make)
    trace = wb.trace(program, steps=4, warm_up_steps=2, progress=False)
    memory = wb.memory(trace)
    assert ROWS * ROWS * 4 <= memory.peak_bytes < 4 * ROWS * ROWS * 4
    assert memory.curve["op_bytes"].iloc[-1] == 0 and memory.variable_bytes is None

"""Stale lookups of a step's function: how stale they are, and what stays exact."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.stale_models import Reads

BATCHES = 12


def counting_step(steps: int):
    """A step that returns its row of a table, which is how many steps have updated that."""
    table = tf.Variable([[0.0]])
    reads, number = Reads(BATCHES), iter(range(1 << 30))

    def wait(row):
        reads.wait_for(next(number) + steps + 1)
        return row

    @tf.function
    def step(ids):
        row = tf.gather(table, ids)
        read = tf.numpy_function(reads.noted, [row], tf.float32, name="note")
        waited = tf.ensure_shape(tf.numpy_function(wait, [read], tf.float32), [1, 1])
        # The update waits as well.
        table.assign_add(1 + 0 * waited)
        return waited

    return step


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_rows_are_as_stale_as_was_asked(steps):
    data = tf.data.Dataset.from_tensors(np.zeros([1], np.int64)).repeat(BATCHES)
    options = wb.SmartStageOptions(stale_lookups=steps, move=("note",), capacity=5)
    staged = wb.smart_stage(counting_step(steps), data, options)
    (stage,) = staged.plan.stages
    assert stage.stale_lookups == stage.options.capacity == steps
    assert stage.options.num_threads == 1
    assert f"{steps} step{'s' * (steps > 1)} stale" in staged.plan.describe()
    seen = [float(row[0, 0]) for row in staged]
    assert [number - value for number, value in enumerate(seen)] == [
        min(number, steps) for number in range(BATCHES)
    ]


def test_without_the_option_a_function_is_exact():
    data = tf.data.Dataset.from_tensors(np.zeros([1], np.int64)).repeat(BATCHES)
    table = tf.Variable([[0.0]])

    @tf.function
    def step(ids):
        row = tf.gather(table, ids)
        table.assign_add(tf.ones_like(row))
        return row

    assert [float(row[0, 0]) for row in wb.smart_stage(step, data)] == list(range(BATCHES))

"""Ids of a step's function: a copy of it that returns them, and has none of its effects."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import workbench as wb
from workbench.experiments.worker.sampled_ids import sample_ids

ROWS, DIM, BATCH = 50, 4, 8


class Steps:
    """A step that counts itself, ahead of its lookup, and trains its table."""

    def __init__(self):
        self.count = tf.Variable(0, dtype=tf.int64)
        self.table = tf.Variable(tf.ones([ROWS, DIM]))
        self.hashed = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.range(BATCH + 2, dtype=tf.int64), tf.range(20, 22 + BATCH, dtype=tf.int64)
            ),
            -1,
        )

    def make(self):
        @tf.function
        def train_step(words):
            self.count.assign_add(1)
            # Waits for the count.
            ids = self.hashed[words] + self.count
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(self.table, ids)))
            gradient = tape.gradient(loss, self.table)
            self.table.scatter_sub(tf.IndexedSlices(gradient.values, gradient.indices))
            return loss

        words = tf.data.Dataset.range(2).map(lambda i: i + tf.range(BATCH, dtype=tf.int64))
        return train_step, words


def test_fetching_ids_has_no_effect():
    steps = Steps()
    sampled = sample_ids(wb.FunctionProgram(name="counts", make=steps.make), 10)
    (table,), (ids,) = sampled.tables, sampled.ids.values()
    assert (table.rows, table.dim) == (ROWS, DIM)
    # Two batches, of 20 to 27 and 21 to 28.
    assert (ids.batches, ids.per_batch, ids.seen) == (2, BATCH, 9)
    assert steps.count.numpy() == 0
    np.testing.assert_array_equal(steps.table.numpy(), 1)

"""A lens of a program: its tables and ids come from a child process, its times from traces."""

from __future__ import annotations

import pytest

import workbench as wb
from tests.builders.embedding_lenses import stock_trace
from workbench.errors import OptionError, RunError

ROWS, DIM, BATCH = 50, 4, 8


def build(optimizations, batches=None):
    import tensorflow as tf

    v1 = tf.compat.v1
    data = tf.data.Dataset.range(10**6).map(lambda i: tf.range(BATCH, dtype=tf.int64) + i % 2)
    data = data if batches is None else data.take(batches)
    ids = v1.data.make_one_shot_iterator(data).get_next()
    sparse = tf.sparse.from_dense(tf.reshape(ids, [BATCH, 1]))
    table = v1.get_variable("table", [ROWS, DIM])
    vectors = wb.safe_embedding_lookup_sparse(table, sparse, name="embedding_lookup")
    loss = tf.reduce_mean(vectors)
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss)


def ends_at_once(optimizations):
    return build(optimizations, batches=0)


@pytest.mark.executors
def test_a_program():
    program = wb.Program(name="lens", build=build)
    trace = wb.trace(program, steps=3, warm_up_steps=2, progress=False)
    lens = wb.embedding_lens(trace, program=program, batches=4, progress=False)
    (row,) = lens.df.to_dict("records")
    assert row["table"] == "table" and (row["rows"], row["dim"]) == (ROWS, DIM)
    assert (row["bytes"], row["slot_bytes"]) == (800, 800) and row["batches"] == 4
    # The batches are 0 to 7, of which `from_dense` leaves the 0 out, and 1 to 8.
    assert (row["ids_per_batch"], row["unique_share"], row["ids_seen"]) == (7.5, 1.0, 8)
    assert row["gathered_bytes"] == 7.5 * 16
    assert row["lookup_ops"] > 3 and row["lookup_ns"] > 0 and row["update_ns"] > 0


def test_data_that_ends_before_the_first_batch():
    program = wb.Program(name="lens", build=ends_at_once)
    with pytest.raises(RunError, match="no ids to sample"):
        wb.embedding_lens(stock_trace(), program=program, progress=False)


def make():
    """A step of two tables; of the second one every other id is looked up."""
    import tensorflow as tf

    first, second = (tf.Variable(tf.ones([rows, DIM])) for rows in (ROWS, 2 * ROWS))

    @tf.function
    def train_step(ids):
        with tf.GradientTape() as tape:
            ids = tf.maximum(ids, 0)
            found = tf.nn.embedding_lookup(first, ids)
            found += tf.nn.embedding_lookup(second, 2 * ids)
            loss = tf.reduce_mean(tf.square(found))
        tables = [first, second]
        for table, gradient in zip(tables, tape.gradient(loss, tables), strict=True):
            table.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
        return loss

    def batch(i):
        return i % 2 + tf.range(4, 12, dtype=tf.int64)

    return train_step, tf.data.Dataset.range(10**6).map(batch)


@pytest.mark.executors
def test_a_function():
    program = wb.FunctionProgram(name="lens", make=make)
    trace = wb.trace(program, steps=3, warm_up_steps=2, progress=False)
    lens = wb.embedding_lens(trace, program=program, batches=4, progress=False)
    rows = {row["table"]: row for row in lens.df.to_dict("records")}
    assert set(rows) == {"embedding_lookup", "embedding_lookup_1"}
    assert [rows[name]["rows"] for name in sorted(rows)] == [ROWS, 2 * ROWS]
    for row in rows.values():
        # The batches are 4 to 11 and 5 to 12.
        assert (row["dim"], row["ids_per_batch"], row["ids_seen"]) == (DIM, 8, 9)
        assert row["lookup_ns"] > 0


def test_batches_are_counted_from_one():
    with pytest.raises(OptionError, match="batches is 0"):
        wb.embedding_lens(stock_trace(), batches=0)

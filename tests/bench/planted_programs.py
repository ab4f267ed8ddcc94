"""Programs that are each slow for one known reason, and some of them without it."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
import tensorflow as tf

import workbench as wb
from workbench.core.optimizations import Optimizations

v1 = tf.compat.v1
# PR_SET_THP_DISABLE of linux/prctl.h, and of malloc.h M_TRIM_THRESHOLD, M_TOP_PAD and
# M_MMAP_THRESHOLD; they hold for the process that builds the program.
_NO_HUGE_PAGES, _TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = 41, -1, -2, -3


def _trained(loss: Any, optimizer: Any = None, **more: Any) -> wb.Built:
    step = v1.train.get_or_create_global_step()
    optimizer = optimizer or v1.train.GradientDescentOptimizer(0.01)
    return wb.Built(train_op=optimizer.minimize(loss, global_step=step), loss=loss, **more)


def _staged(batch: Any, on: Optimizations) -> Any:
    """Behind the user's own stage, where there is one."""
    return wb.staged(batch, on.stage) if on.stage else batch


def _numbers(shape: tuple[int, ...] = (256, 64)) -> Any:
    """Batches that cost next to nothing."""
    data = tf.data.Dataset.from_tensors(np.ones(shape, np.float32)).repeat()
    return v1.data.make_one_shot_iterator(data).get_next()


def _dense(x: Any, width: int = 128) -> Any:
    weight = v1.get_variable("w", [x.shape[-1], width])
    return tf.reduce_mean(tf.square(tf.matmul(x, weight)))


def _beside(loss: Any) -> Any:
    """A loss with that of two layers beside it: some milliseconds of other work.

    What a step takes that is left with next to nothing depends on caches more than on its ops.
    """
    x = _numbers((256, 512))
    with v1.variable_scope("layers"):
        for number in range(2):
            x = tf.nn.relu(tf.matmul(x, v1.get_variable(f"w_{number}", [512, 512])))
    return loss + tf.reduce_mean(tf.square(x))


def _table(rows: int, dim: int, name: str = "table", **more: Any) -> Any:
    drawn = v1.random_uniform_initializer(seed=1)
    return v1.get_variable(name, [rows, dim], initializer=drawn, use_resource=True, **more)


def _ids(rows: int, batch: int = 512, count: int = 1) -> Any:
    drawn = np.random.default_rng(0).integers(0, rows, (64, batch, count))
    data = tf.data.Dataset.from_tensor_slices(drawn).repeat()
    return v1.data.make_one_shot_iterator(data).get_next()


def _sleeping(seconds: float, at_once: int | None = None) -> Any:
    """Batches that wait so long each; several at a time where that is said."""

    def rest(i: Any) -> Any:
        time.sleep(seconds)
        return np.full((256, 64), 1.0 + 0.0 * float(i), np.float32)

    def batch(i: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(rest, [i], tf.float32), [256, 64])

    # TensorFlow's own prefetch would be a stage, of an unknown size.
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    data = tf.data.Dataset.range(10**9).map(batch, at_once).with_options(options)
    return v1.data.make_one_shot_iterator(data).get_next()


def _lines(count: int = 1024) -> Any:
    line = ",".join(f"{number}.5" for number in range(60))
    data = tf.data.Dataset.from_tensors(np.array([line] * count, object)).repeat()
    return v1.data.make_one_shot_iterator(data).get_next()


def _parsed(lines: Any, fields: int = 60) -> Any:
    return tf.stack(tf.io.decode_csv(lines, [[0.0]] * fields), 1)


def waiting_input(on: Optimizations) -> wb.Built:
    return _trained(_dense(_staged(_sleeping(0.02), on)))


def parse_in_the_step(on: Optimizations) -> wb.Built:
    return _trained(_dense(_staged(_parsed(_lines()), on)))


def parse_behind_a_stage(on: Optimizations) -> wb.Built:
    return _trained(_dense(_parsed(_staged(_lines(), on))))


def slow_input_behind_a_stage(on: Optimizations) -> wb.Built:
    return waiting_input(on)


def input_of_two_calls(on: Optimizations) -> wb.Built:
    return _trained(_dense(_staged(_sleeping(0.02, at_once=2), on)))


def input_that_computes_too_long(on: Optimizations, products: int = 3) -> wb.Built:
    x = _numbers((1200, 1200))
    for number in range(products):
        with tf.name_scope(f"product_{number}"):
            x = tf.matmul(x, x) * 1e-3
    return _trained(_dense(_staged(x[:256, :64], on)))


def input_of_one_product(on: Optimizations) -> wb.Built:
    return input_that_computes_too_long(on, products=1)


def lookups_of_many_ops(_: Optimizations) -> wb.Built:
    found = []
    for number in range(20):
        ids = tf.sparse.from_dense(_ids(5000, 512, 3))
        table = _table(5000, 16, f"table_{number}")
        found.append(v1.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean"))
    return _trained(tf.reduce_mean(tf.square(tf.concat(found, 1))))


def normalized_op_by_op(_: Optimizations) -> wb.Built:
    x = _numbers((512, 64))
    for number in range(12):
        with v1.variable_scope(f"layer_{number}"):
            x = tf.matmul(x, v1.get_variable("w", [64, 64]))
            mean, variance = tf.nn.moments(x, [0])
            beta, gamma = (v1.get_variable(name, [64]) for name in ("beta", "gamma"))
            x = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
    return _trained(tf.reduce_mean(tf.square(x)))


def all_dot_products(_: Optimizations) -> wb.Built:
    x = tf.reshape(_numbers((4096, 27 * 16)), [-1, 27, 16]) * v1.get_variable("s", [27, 16])
    flat = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, 27 * 27])
    pairs = np.flatnonzero(np.tril(np.ones((27, 27)), -1)).astype(np.int32)
    return _trained(tf.reduce_mean(tf.square(tf.gather(flat, pairs, axis=1))))


def factorization_of_many_ops(_: Optimizations) -> wb.Built:
    x = tf.reshape(_numbers((2048, 39 * 16)), [-1, 39, 16]) * v1.get_variable("s", [39, 16])
    both = tf.square(tf.reduce_sum(x, 1)) - tf.reduce_sum(tf.square(x), 1)
    # A loss whose gradient needs the interaction, or no rule fuses it.
    return _trained(tf.reduce_mean(tf.square(both)))


def copied_table(_: Optimizations) -> wb.Built:
    # Updates of rows in place, and a read of the whole: TensorFlow copies it.
    table = _table(1_000_000, 32)
    rows = tf.nn.embedding_lookup(table, _ids(1_000_000)[:, 0])
    with tf.name_scope("norm"):
        norm = tf.reduce_sum(tf.stop_gradient(table.read_value())[:8])
    return _trained(_beside(tf.reduce_mean(tf.square(rows)) + 1e-9 * norm))


def table_of_which_rows_are_read(_: Optimizations) -> wb.Built:
    table = _table(1_000_000, 32)
    rows = tf.nn.embedding_lookup(table, _ids(1_000_000)[:, 0])
    with tf.name_scope("norm"):
        norm = tf.reduce_sum(tf.stop_gradient(tf.nn.embedding_lookup(table, tf.range(8))))
    return _trained(_beside(tf.reduce_mean(tf.square(rows)) + 1e-9 * norm))


def dense_gradient(_: Optimizations) -> wb.Built:
    table = _table(300_000, 32)
    rows = tf.nn.embedding_lookup(tf.math.l2_normalize(table, 1), _ids(300_000)[:, 0])
    return _trained(_beside(tf.reduce_mean(tf.square(rows))))


def gradient_of_rows(_: Optimizations) -> wb.Built:
    table = _table(300_000, 32)
    rows = tf.nn.embedding_lookup(table, _ids(300_000)[:, 0])
    return _trained(_beside(tf.reduce_mean(tf.square(tf.math.l2_normalize(rows, 1)))))


def adam_over_the_whole_table(_: Optimizations) -> wb.Built:
    table = _table(400_000, 32)
    rows = tf.nn.embedding_lookup(table, _ids(400_000)[:, 0])
    return _trained(tf.reduce_mean(tf.square(rows)), v1.train.AdamOptimizer(0.01))


def many_small_ops(_: Optimizations) -> wb.Built:
    x = tf.unstack(_numbers((40,)) * v1.get_variable("w", [40]), axis=0)
    for _ in range(40):
        x = [tf.sin(each) * 0.5 for each in x]
    return _trained(tf.reduce_sum(tf.stack(x)))


def one_long_op(_: Optimizations, parts: int = 1) -> wb.Built:
    x = _numbers((2_000_000,))
    noise = tf.random.uniform([2_000_000], seed=1)
    pieces = tf.split(tf.cast(noise * 1e6, tf.int32), parts)
    first = tf.concat([tf.unique(piece, name="order")[0][:8] for piece in pieces], 0)
    weight = v1.get_variable("w", [8 * parts])
    return _trained(tf.reduce_mean(tf.cast(first, tf.float32) * weight) + 0.0 * x[0])


def two_ops_side_by_side(on: Optimizations) -> wb.Built:
    return one_long_op(on, parts=2)


def too_many_threads(_: Optimizations) -> wb.Built:
    x = _numbers((400, 400))
    parts = []
    for number in range(24):
        with v1.variable_scope(f"part_{number}"):
            weight = v1.get_variable("w", [400, 400])
            parts.append(tf.reduce_mean(tf.math.erf(tf.math.sin(tf.matmul(x, weight)))))
    config = v1.ConfigProto(inter_op_parallelism_threads=24, intra_op_parallelism_threads=1)
    return _trained(tf.add_n(parts), config=config)


class _Rests(v1.train.SessionRunHook):
    """A hook that takes its time."""

    def after_run(self, run_context: Any, run_values: Any) -> None:
        time.sleep(0.02)


def slow_hook(_: Optimizations) -> wb.Built:
    return _trained(_beside(_dense(_numbers())), hooks=[_Rests()])


def no_hook(_: Optimizations) -> wb.Built:
    return _trained(_beside(_dense(_numbers())))


def fresh_pages(on: Optimizations) -> wb.Built:
    # The C library takes each block of this size from the kernel, and gives it back at once.
    for setting, value in ((_TRIM_THRESHOLD, 0), (_TOP_PAD, 0), (_MMAP_THRESHOLD, 131_072)):
        ctypes.CDLL(None).mallopt(setting, value)
    return kept_pages(on)


def kept_pages(_: Optimizations) -> wb.Built:
    # A machine may have huge pages for all memory, of which few are cleared. TensorFlow with oneDNN
    # keeps blocks above 256 kB to itself.
    ctypes.CDLL(None).prctl(_NO_HUGE_PAGES, 1, 0, 0, 0)
    weight = v1.get_variable("w", [1])
    x = tf.fill([60_000], 0.5) * weight
    for _ in range(120):
        x = tf.reverse(x, [0]) + 1.0
    return _trained(tf.reduce_mean(x))


def long_chain_behind_side_work(_: Optimizations) -> wb.Built:
    # What needs the batch alone could run ahead.
    x = _numbers((220, 220)) * v1.get_variable("scale", [220])
    side = [tf.reduce_sum(tf.matmul(x, x + float(number))) for number in range(10)]
    chain = x
    for number in range(14):
        with v1.variable_scope(f"link_{number}"):
            chain = tf.matmul(chain, v1.get_variable("w", [220, 220])) * 1e-2
    loss = tf.reduce_mean(chain) + 1e-9 * tf.add_n(side)
    config = v1.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=1)
    return _trained(loss, config=config)


def one_thread_waits_and_parses(on: Optimizations) -> wb.Built:
    # Lines that wait for the batch.
    x = _sleeping(0.02)
    lines = tf.strings.join([_lines(2048), tf.strings.as_string(x[0, 0])], ",")
    return _trained(_dense(_staged(_parsed(lines, 61), on)))


def ids_made_in_the_step(on: Optimizations) -> wb.Built:
    words = np.array([[f"word {i}-{j}" for j in range(60)] for i in range(512)], object)
    data = tf.data.Dataset.from_tensors(words).repeat()
    batch = v1.data.make_one_shot_iterator(data).get_next()
    ids = _staged(tf.strings.to_hash_bucket_fast(tf.strings.lower(batch), 5000), on)
    rows = tf.nn.embedding_lookup(_table(5000, 16), ids)
    return _trained(tf.reduce_mean(tf.square(rows)))

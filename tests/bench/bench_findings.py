"""Twenty programs that are each slow for one known reason, and what their first finding says.

`make bench-findings`; python -m tests.bench.bench_findings NAME … runs some of them.
"""

from __future__ import annotations

import ctypes
import dataclasses
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions

v1 = tf.compat.v1
_STEPS, _WARM_UP = 15, 15
# PR_SET_THP_DISABLE of linux/prctl.h; it holds for the process that builds the program.
_NO_HUGE_PAGES = 41


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planted:
    """A program with a fault.

    Attributes:
      fault: why it is slow.
      build: builds it.
      keys: the findings that name the reason.
      mends: toggles that mend it; without any a change of code does.
      on: what it is built with.
    """

    fault: str
    build: Callable[[Optimizations], wb.Built]
    keys: tuple[str, ...]
    mends: tuple[str, ...] = ()
    on: Optimizations | None = None


def _trained(loss: Any, optimizer: Any = None, **more: Any) -> wb.Built:
    step = v1.train.get_or_create_global_step()
    optimizer = optimizer or v1.train.GradientDescentOptimizer(0.01)
    return wb.Built(train_op=optimizer.minimize(loss, global_step=step), loss=loss, **more)


def _numbers(shape: tuple[int, ...] = (256, 64)) -> Any:
    """Batches that cost next to nothing."""
    data = tf.data.Dataset.from_tensors(np.ones(shape, np.float32)).repeat()
    return v1.data.make_one_shot_iterator(data).get_next()


def _dense(x: Any, width: int = 128) -> Any:
    weight = v1.get_variable("w", [x.shape[-1], width])
    return tf.reduce_mean(tf.square(tf.matmul(x, weight)))


def _table(rows: int, dim: int, name: str = "table", **more: Any) -> Any:
    drawn = v1.random_uniform_initializer(seed=1)
    return v1.get_variable(name, [rows, dim], initializer=drawn, use_resource=True, **more)


def _ids(rows: int, batch: int = 512, count: int = 1) -> Any:
    drawn = np.random.default_rng(0).integers(0, rows, (64, batch, count))
    data = tf.data.Dataset.from_tensor_slices(drawn).repeat()
    return v1.data.make_one_shot_iterator(data).get_next()


def _sleeping(seconds: float) -> Any:
    def rest(i: Any) -> Any:
        time.sleep(seconds)
        return np.full((256, 64), 1.0 + 0.0 * float(i), np.float32)

    def batch(i: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(rest, [i], tf.float32), [256, 64])

    data = tf.data.Dataset.range(10**9).map(batch)
    return v1.data.make_one_shot_iterator(data).get_next()


def _lines() -> Any:
    line = ",".join(f"{number}.5" for number in range(60))
    data = tf.data.Dataset.from_tensors(np.array([line] * 1024, object)).repeat()
    return v1.data.make_one_shot_iterator(data).get_next()


def _parsed(lines: Any) -> Any:
    return tf.stack(tf.io.decode_csv(lines, [[0.0]] * 60), 1)


def waiting_input(_: Optimizations) -> wb.Built:
    return _trained(_dense(_sleeping(0.02)))


def parse_in_the_step(_: Optimizations) -> wb.Built:
    return _trained(_dense(_parsed(_lines())))


def parse_behind_a_stage(on: Optimizations) -> wb.Built:
    return _trained(_dense(_parsed(wb.staged(_lines(), on.stage))))


def one_thread_for_a_slow_input(on: Optimizations) -> wb.Built:
    return _trained(_dense(wb.staged(_sleeping(0.02), on.stage)))


def input_that_computes_too_long(on: Optimizations) -> wb.Built:
    x = _numbers((1200, 1200))
    for _ in range(3):
        x = tf.matmul(x, x) * 1e-3
    return _trained(_dense(wb.staged(x[:256, :64], on.stage)))


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
    norm = tf.reduce_sum(tf.stop_gradient(table.read_value())[:8])
    return _trained(tf.reduce_mean(tf.square(rows)) + 1e-9 * norm)


def dense_gradient(_: Optimizations) -> wb.Built:
    table = _table(300_000, 32)
    rows = tf.nn.embedding_lookup(tf.math.l2_normalize(table, 1), _ids(300_000)[:, 0])
    return _trained(tf.reduce_mean(tf.square(rows)))


def adam_over_the_whole_table(_: Optimizations) -> wb.Built:
    table = _table(400_000, 32)
    rows = tf.nn.embedding_lookup(table, _ids(400_000)[:, 0])
    return _trained(tf.reduce_mean(tf.square(rows)), v1.train.AdamOptimizer(0.01))


def many_small_ops(_: Optimizations) -> wb.Built:
    x = tf.unstack(_numbers((40,)) * v1.get_variable("w", [40]), axis=0)
    for _ in range(40):
        x = [tf.sin(each) * 0.5 for each in x]
    return _trained(tf.reduce_sum(tf.stack(x)))


def one_long_op(_: Optimizations) -> wb.Built:
    x = _numbers((2_000_000,))
    noise = tf.random.uniform([2_000_000], seed=1)
    order = tf.cast(tf.unique(tf.cast(noise * 1e6, tf.int32))[0][:8], tf.float32)
    weight = v1.get_variable("w", [8])
    return _trained(tf.reduce_mean(order * weight) + 0.0 * x[0])


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
    return _trained(_dense(_numbers()), hooks=[_Rests()])


def fresh_pages(_: Optimizations) -> wb.Built:
    # A machine may have huge pages for all memory, of which few are cleared.
    ctypes.CDLL(None).prctl(_NO_HUGE_PAGES, 1, 0, 0, 0)
    weight = v1.get_variable("w", [1])
    x = tf.fill([400_000], 0.5) * weight
    for _ in range(60):
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


def slow_input_of_a_small_stage(on: Optimizations) -> wb.Built:
    return _trained(_dense(wb.staged(_sleeping(0.03), on.stage)))


def ids_made_in_the_step(_: Optimizations) -> wb.Built:
    words = np.array([[f"word {i}-{j}" for j in range(60)] for i in range(512)], object)
    data = tf.data.Dataset.from_tensors(words).repeat()
    batch = v1.data.make_one_shot_iterator(data).get_next()
    ids = tf.strings.to_hash_bucket_fast(tf.strings.lower(batch), 5000)
    rows = tf.nn.embedding_lookup(_table(5000, 16), ids)
    return _trained(tf.reduce_mean(tf.square(rows)))


_STAGE = Optimizations(stage=StageOptions(num_threads=1, capacity=1))
_TWO = Optimizations(stage=StageOptions(num_threads=2, capacity=2))
_STAGES = ("stage", "smart_stage")
PLANTED: dict[str, Planted] = {
    each.build.__name__: each
    for each in (
        Planted(fault="each batch waits 20 ms", build=waiting_input,
                keys=("nothing_staged",), mends=_STAGES),
        Planted(fault="text is parsed in the step", build=parse_in_the_step,
                keys=("nothing_staged",), mends=_STAGES),
        Planted(fault="text is parsed behind the stage", build=parse_behind_a_stage,
                keys=("little_staged",), mends=("smart_stage",), on=_STAGE),
        Planted(fault="words are hashed in the step", build=ids_made_in_the_step,
                keys=("nothing_staged",), mends=_STAGES),
        Planted(fault="one thread waits for the input", build=one_thread_for_a_slow_input,
                keys=("one_thread_stage",), on=_STAGE),
        Planted(fault="the same, 30 ms a batch",
                build=slow_input_of_a_small_stage, keys=("one_thread_stage",), on=_STAGE),
        Planted(fault="the input computes longer than the step",
                build=input_that_computes_too_long, keys=("input_bound",), on=_TWO),
        Planted(fault="20 lookups of many ops each", build=lookups_of_many_ops,
                keys=("many_op_lookups",), mends=("fused_v2", "grouped", "auto_fused")),
        Planted(fault="batch normalizations of many ops", build=normalized_op_by_op,
                keys=("many_op_norms",), mends=("auto_fused",)),
        Planted(fault="dot products by way of all of them", build=all_dot_products,
                keys=("many_op_interactions",), mends=("auto_fused",)),
        Planted(fault="a factorization machine of many ops", build=factorization_of_many_ops,
                keys=("many_op_interactions",), mends=("auto_fused",)),
        Planted(fault="a table is copied in each step", build=copied_table, keys=("copied_table",)),
        Planted(fault="the gradient of a table is dense", build=dense_gradient,
                keys=("dense_gradient",)),
        Planted(fault="Adam moves the whole table", build=adam_over_the_whole_table,
                keys=("whole_table_update",), mends=("auto_fused",)),
        Planted(fault="3,200 ops of a few numbers", build=many_small_ops,
                keys=("small_ops",), mends=("inline_executor",)),
        Planted(fault="one op of one thread", build=one_long_op, keys=("lone_op",)),
        Planted(fault="24 threads on few cores", build=too_many_threads, keys=("oversubscribed",)),
        Planted(fault="a hook rests 20 ms", build=slow_hook, keys=("client_time",)),
        Planted(fault="tensors get fresh small pages in each step", build=fresh_pages,
                keys=("new_pages",)),
        Planted(fault="side work runs before the long chain", build=long_chain_behind_side_work,
                keys=("order_of_ops",), mends=("cost_model_executor",)),
    )
}  # fmt: skip


def main(names: list[str]) -> int:
    """Prints a line for each program; 1 where a first finding is another one."""
    wrong = 0
    for name in names or PLANTED:
        planted = PLANTED[name]
        program = wb.Program(name=name, build=planted.build)
        trace = wb.trace(program, planted.on, steps=_STEPS, warm_up_steps=_WARM_UP, progress=False)
        found = list(wb.findings(trace))
        first = found[0] if found else None
        named = first is not None and first.key in planted.keys
        right = named and (not planted.mends or first.toggle in planted.mends)  # type: ignore[union-attr]
        wrong += not right
        others = ", ".join(each.key for each in found[1:4])
        said = f"{first.key} ({first.toggle})" if first else "nothing"
        print(
            f"{'right' if right else 'WRONG'}  {planted.fault}: {said}; then {others}", flush=True
        )
    print(f"{len(names or PLANTED) - wrong} of {len(names or PLANTED)} are named first")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Grouped lookups in EmbeddingVariables beside V1's and V2's, in one run.

26 features of as many tables, each of which has all of its keys; the ids are those of
bench_embedding.py, mean, and "x512" says that a batch has 512 rows. Each cell has a process of its
own, where V1, V2 and the grouped lookup take turns on the same tables, forward from raw
SparseTensors, and trained by an optimizer of Workbench. With --clock cpu a step's time is that of
the process's own threads, which is less disturbed by what else runs on a machine.

Prints for each cell V1's time of a step, and how many times as fast the others are, with 95 %
intervals. The goal is that grouped is faster in training and not slower forward.

    python -m tests.bench.bench_keys [--cell 1e5x16xm1x512] [--way Adagrad] [--clock cpu]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.bench.bench_embedding import KEPT_MEMORY, different_tables, features_of
from tests.bench.embedding_batches import FEATURES, Cell
from tests.bench.timed_blocks import block, timed
from workbench.experiments.measurement.statistics import ratio_interval

V1, OTHERS = "v1", ("v2", "grouped")
WAYS = ("forward", "SGD", "Adagrad", "Adam")
CELLS = tuple(
    f"1e5x{dim}x{kind}x{size}" for size in (512, 2048) for dim in (16, 64) for kind in ("m1", "m10")
)
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cell", action="append", help="only this cell, such as 1e5x16xm1x512")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this way")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each cell and way")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.child:
        print(json.dumps(measured(Cell.named(chosen.child), chosen)))
        return
    reached = True
    for way in chosen.way or ("forward", "Adagrad"):
        print(f"\n{way}, {chosen.threads} threads, {chosen.clock} time")
        print(f"  {'cell':<16} {'V1 ms':>8}" + "".join(f" {name:>22}" for name in OTHERS))
        for cell in chosen.cell or CELLS:
            reached &= show(cell, way, in_child(cell, way, chosen))
    print("\nAll goals are reached." if reached else "\nGoals are MISSED where marked.")


def in_child(cell: str, way: str, chosen: argparse.Namespace) -> dict[str, list[float]]:
    """Measures a cell in a process of its own, so that no memory of another one is left."""
    command = [sys.executable, "-m", "tests.bench.bench_keys", "--child", cell]
    command += ["--way", way, "--seconds", str(chosen.seconds)]
    command += ["--threads", str(chosen.threads), "--clock", chosen.clock]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **KEPT_MEMORY}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{cell}, {way}: exit status {done.returncode}\n{done.stderr[-3000:]}")
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(cell: str, way: str, seconds: dict[str, list[float]]) -> bool:
    """Prints the row of a cell; whether it reaches the goal."""
    line, reached = f"  {cell:<16} {1000 * float(np.median(seconds[V1])):8.2f}", True
    rates = {name: [1 / s for s in each] for name, each in seconds.items()}
    for name in OTHERS:
        ratio = ratio_interval(rates[name], rates[V1], 0)
        # Forward it may be as fast.
        as_fast = ratio.low > 1 if way != "forward" else ratio.high >= 1
        reached &= as_fast or name != "grouped"
        mark = " " if as_fast or name != "grouped" else "!"
        said = f"{ratio.value:.2f}× ({ratio.low:.2f}–{ratio.high:.2f}){mark}"
        line += f" {said:>22}"
    print(line, flush=True)
    return reached


def measured(cell: Cell, chosen: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds of a step of each in interleaved blocks."""
    import tensorflow as tf

    import workbench as wb

    tf.compat.v1.disable_v2_behavior()
    # As in bench_embedding: the dataset makes the process's threads before the session does.
    tf.config.threading.set_intra_op_parallelism_threads(chosen.threads)
    v1 = tf.compat.v1
    (way,) = chosen.way
    features = features_of(tf, cell)
    made = [wb.get_embedding_variable(f"table_{i}", cell.dim) for i in range(cell.tables)]
    tables = [made[i % len(made)] for i in range(FEATURES)]
    steps = {name: _step(tf, name, features, tables, way, cell) for name in (V1, *OTHERS)}
    every_key = [table.sparse_read(tf.range(cell.rows, dtype=tf.int64)).op for table in made]
    config = v1.ConfigProto(
        intra_op_parallelism_threads=chosen.threads, inter_op_parallelism_threads=chosen.threads
    )
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        session.run([*v1.get_collection("batches"), *every_key])
        runs = {name: session.make_callable(step) for name, step in steps.items()}
        # Through the data once, which is in memory then.
        for _ in range(cell.batches()):
            runs[V1]()
        blocks = {name: block(run, CLOCKS[chosen.clock]) for name, run in runs.items()}
        return timed(blocks, chosen.seconds)


def _step(tf: Any, name: str, features: list[Any], tables: list[Any], way: str, cell: Cell) -> Any:
    """What is fetched: the vectors, and of a way that trains the update too."""
    from workbench.ops import (
        AdagradOptimizer,
        AdamOptimizer,
        GradientDescentOptimizer,
        fused_safe_embedding_lookup_sparse,
        grouped_embedding_lookup,
    )

    if name == "grouped":
        found = grouped_embedding_lookup(tables, features)
    else:
        found = [
            fused_safe_embedding_lookup_sparse(table, ids, combiner="mean", fusion_version=name)
            for table, ids in zip(tables, features, strict=True)
        ]
    if way == "forward":
        return found
    homes = {"SGD": GradientDescentOptimizer, "Adagrad": AdagradOptimizer, "Adam": AdamOptimizer}
    upstream = [tf.constant(1e-3, tf.float32, [cell.size, cell.dim])] * FEATURES
    different = different_tables(tables)
    gradients = tf.gradients(found, different, grad_ys=upstream)
    # One optimizer each: what it costs is the same, and no slots are shared.
    train = homes[way](0.01, name=f"{name}_{way}").apply_gradients(
        zip(gradients, different, strict=True)
    )
    return [*found, train]


if __name__ == "__main__":
    main()

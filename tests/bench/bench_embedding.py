"""Fused embedding lookups beside stock TensorFlow, in one run.

26 features, batch 2048, combiner mean, float32. m1: one id a row. m10: 10 % of rows are empty, else
1 + Poisson(10.1) ids, 1 % of ids are -1. Ids are uniform over the table. Batches lie in memory and
rotate over at least 120 MB of rows, so that no row is in a cache from the batch before. Each cell
has a process of its own, where stock's safe_embedding_lookup_sparse, V1 and V2 take turns on the
same tables. The limit is a plain loop with two stages of prefetch, in huge pages, compiled for the
processor at hand (native/bench/lookup_limit.cc). Stock lookups train by stock's optimizers, fused
ones by Workbench's.

Prints for each cell the time of a step, ratios to stock with 95 % intervals, and executed nodes per
feature (of lookup and gradient; the optimizer's own come on top); then whether the goals are
reached: 3 times fewer nodes, faster in every cell, twice as fast with one id a row.

    python -m tests.bench.bench_embedding [--quick] [--cell 1e5x16xm1] [--variables resource]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.bench.lookup_limit import limit
from workbench.experiments.measurement.statistics import ratio_interval

FEATURES = 26
BATCH = 2048
STOCK, FUSED = "stock", ("v1", "v2", "grouped")
LIMIT = "limit"
WAYS = ("forward", "SGD", "Adagrad")
CELLS = tuple(
    f"{rows}x{dim}x{kind}"
    for rows, dims in (("1e5", (16, 64, 128)), ("1e6", (16, 32, 64, 128)))
    for dim in dims
    for kind in ("m1", "m10")
)
QUICK = ("1e5x16xm1", "1e5x16xm10", "1e5x64xm1", "1e5x64xm10")
GOAL_NODES, GOAL_ANY, GOAL_ONE_ID = 3.0, 1.0, 2.0
ROTATED_BYTES = 120e6
TABLE_BYTES = 1.75e9
MOST_IDS = 60_000_000
# glibc gives freed memory back and takes it again at every step, until a program has once freed
# something large; then faults of pages, not lookups, are measured.
KEPT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(1 << 26),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """One size of table and kind of batch."""

    rows: int
    dim: int
    kind: str

    @classmethod
    def named(cls, name: str) -> Cell:
        rows, dim, kind = name.split("x")
        return cls(rows=int(float(rows)), dim=int(dim), kind=kind)

    @property
    def tables(self) -> int:
        """Different tables that fit into memory; features beyond share them."""
        return max(1, min(FEATURES, int(TABLE_BYTES / (4 * self.rows * self.dim))))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cell", action="append", help="only this cell, such as 1e5x16xm1")
    parser.add_argument("--quick", action="store_true", help="only four small cells")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this way")
    parser.add_argument(
        "--seconds", type=float, default=6.0, help="of measuring, each cell and way"
    )
    parser.add_argument("--variables", choices=("ref", "resource"), default="ref")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.child:
        print(json.dumps(measured(Cell.named(chosen.child), chosen)))
        return
    cells = chosen.cell or (QUICK if chosen.quick else CELLS)
    reached = True
    for way in chosen.way or WAYS:
        print(f"\n{way}, {chosen.variables} variables, {chosen.threads} threads")
        heads = "".join(f" {name:>22}" for name in FUSED)
        print(f"  {'cell':<14} {'stock ms':>9}{heads}   grouped to limit   nodes per feature")
        for cell in cells:
            if way != "forward" and cell.startswith("1e6") and not cell.startswith("1e6x16"):
                continue
            found = in_child(cell, way, chosen)
            reached &= show(cell, found)
    print("\nAll goals are reached." if reached else "\nGoals are MISSED where marked.")


def in_child(cell: str, way: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Measures a cell in a process of its own, so that no memory of another one is left."""
    command = [sys.executable, "-m", "tests.bench.bench_embedding", "--child", cell, "--way", way]
    command += ["--seconds", str(chosen.seconds), "--variables", chosen.variables]
    command += ["--threads", str(chosen.threads)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **KEPT_MEMORY}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{cell}, {way}: exit status {done.returncode}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(cell: str, found: dict[str, Any]) -> bool:
    """Prints the row of a cell; whether it reaches the goals."""
    goal = GOAL_ONE_ID if cell.endswith("m1") else GOAL_ANY
    stock = found["seconds"][STOCK]
    line, reached = f"  {cell:<14} {1000 * float(np.median(stock)):9.2f}", True
    for name in FUSED:
        # Rates, so that above 1 is faster than stock.
        rates = [1 / s for s in found["seconds"][name]]
        ratio = ratio_interval(rates, [1 / s for s in stock], 0)
        missed = ratio.value < goal or (goal == GOAL_ANY and ratio.value <= goal)
        said = f"{ratio.value:.2f}× ({ratio.low:.2f}–{ratio.high:.2f}){'!' if missed else ' '}"
        line += f" {said:>22}"
        reached &= not missed
    line += f" {_to_limit(found['seconds']):>18}"
    nodes = found["nodes"]
    line += f"   {nodes[STOCK]:.1f}"
    for name in FUSED:
        fewer = nodes[STOCK] / nodes[name]
        line += f", {nodes[name]:.1f} ({fewer:.1f}× fewer{'' if fewer >= GOAL_NODES else '!'})"
        reached &= fewer >= GOAL_NODES
    print(line, flush=True)
    return reached


def _to_limit(seconds: dict[str, list[float]]) -> str:
    """How many times as long as the limit the grouped lookup takes."""
    if LIMIT not in seconds:
        return ""
    ratio = ratio_interval([1 / s for s in seconds[LIMIT]], [1 / s for s in seconds["grouped"]], 0)
    return f"{ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def measured(cell: Cell, chosen: argparse.Namespace) -> dict[str, Any]:
    """Seconds of a step of each variant in interleaved blocks, and executed nodes per feature."""
    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    v1 = tf.compat.v1
    (way,) = chosen.way
    features, count = _features(tf, cell)
    tables = _tables(tf, cell, resource=chosen.variables == "resource")
    steps = {name: _step(tf, name, features, tables, way, cell) for name in (STOCK, *FUSED)}
    config = v1.ConfigProto(
        intra_op_parallelism_threads=chosen.threads, inter_op_parallelism_threads=chosen.threads
    )
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        session.run(v1.get_collection("batches"))
        runs = {name: session.make_callable(op) for name, op in steps.items()}
        for _ in range(count):
            runs[STOCK]()
        nodes = {name: _nodes(tf, session, op) for name, op in steps.items()}
        if way == "forward":
            batches = [_batch(np.random.default_rng(seed), cell) for seed in range(count)]
            runs[LIMIT] = limit(
                batches, cell.tables, cell.rows, cell.dim, BATCH, threads=chosen.threads
            )
        return {
            "nodes": {name: found / FEATURES for name, found in nodes.items()},
            "seconds": _timed(runs, chosen.seconds),
        }


def _timed(runs: dict[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Means of short blocks of each, in turns and changing order."""
    shuffled = random.Random(0)
    pilot = {}
    for name, run in runs.items():
        run()
        begin = time.perf_counter()
        run()
        pilot[name] = time.perf_counter() - begin
    steps = {name: max(1, round(0.05 / taken)) for name, taken in pilot.items()}
    found: dict[str, list[float]] = {name: [] for name in runs}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(found[STOCK]) < 8:
        order = list(runs)
        shuffled.shuffle(order)
        for name in order:
            begin = time.perf_counter()
            for _ in range(steps[name]):
                runs[name]()
            found[name].append((time.perf_counter() - begin) / steps[name])
    return found


def _features(tf: Any, cell: Cell) -> tuple[list[Any], int]:
    """SparseTensors of the next batch, and how many batches there are before they repeat."""
    ids = sum(len(values) for values, _ in _batch(np.random.default_rng(0), cell))
    count = int(np.clip(ROTATED_BYTES / (ids * cell.dim * 4), 2, MOST_IDS / ids / 3)) + 1

    def batches() -> Any:
        for seed in range(count):
            yield tuple(_batch(np.random.default_rng(seed), cell))

    feature = (tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, 2], tf.int64))
    spec = (feature,) * FEATURES
    dataset = tf.data.Dataset.from_generator(batches, output_signature=spec).cache().repeat()
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    plain.autotune.enabled = False
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset.with_options(plain))
    tf.compat.v1.add_to_collection("batches", iterator.initializer)
    shape = tf.constant([BATCH, 64], tf.int64)
    return [tf.SparseTensor(at, values, shape) for values, at in iterator.get_next()], count


def _batch(random_: np.random.Generator, cell: Cell) -> list[tuple[np.ndarray, np.ndarray]]:
    """Values and indices of each feature."""
    features = []
    for _ in range(FEATURES):
        if cell.kind == "m1":
            lengths = np.ones(BATCH, np.int64)
        else:
            lengths = np.minimum(1 + random_.poisson(10.1, BATCH), 64)
            lengths[random_.random(BATCH) < 0.1] = 0
        values = random_.integers(0, cell.rows, lengths.sum(), dtype=np.int64)
        if cell.kind == "m10":
            values[random_.random(values.size) < 0.01] = -1
        row = np.repeat(np.arange(BATCH), lengths)
        column = np.arange(values.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        features.append((values, np.stack([row, column], 1)))
    return features


def _tables(tf: Any, cell: Cell, *, resource: bool) -> list[Any]:
    v1 = tf.compat.v1
    made = [
        v1.get_variable(
            f"table_{i}",
            [cell.rows, cell.dim],
            initializer=v1.random_uniform_initializer(-0.05, 0.05, seed=i),
            use_resource=resource,
        )
        for i in range(cell.tables)
    ]
    return [made[i % len(made)] for i in range(FEATURES)]


def _step(tf: Any, name: str, features: list[Any], tables: list[Any], way: str, cell: Cell) -> Any:
    from workbench.ops.lookup.fused import fused_safe_embedding_lookup_sparse
    from workbench.ops.lookup.grouped import grouped_embedding_lookup

    v1 = tf.compat.v1
    found = grouped_embedding_lookup(tables, features) if name == "grouped" else []
    for table, ids in zip(tables, features, strict=True):
        if name == "grouped":
            break
        if name == STOCK:
            found.append(v1.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean"))
        else:
            found.append(
                fused_safe_embedding_lookup_sparse(table, ids, combiner="mean", fusion_version=name)
            )
    if way == "forward":
        return found
    # The gradient is given: what a loss costs is no part of the lookup.
    upstream = [tf.constant(1e-3, tf.float32, [BATCH, cell.dim])] * FEATURES
    different = _different(tables)
    gradients = tf.gradients(found, different, grad_ys=upstream)
    train = _optimizer(v1, way, name != STOCK).apply_gradients(
        zip(gradients, different, strict=True)
    )
    return [*found, train]


def _different(tables: list[Any]) -> list[Any]:
    found: list[Any] = []
    for table in tables:
        if not any(table is each for each in found):
            found.append(table)
    return found


_OPTIMIZERS: dict[tuple[str, bool], Any] = {}


def _optimizer(v1: Any, way: str, fused: bool) -> Any:
    """Stock's, and Workbench's for fused lookups; V1 and V2 share the slots."""
    from workbench.ops.embedding_variable import optimizers

    home = optimizers if fused else v1.train
    if (way, fused) not in _OPTIMIZERS:
        _OPTIMIZERS[way, fused] = (
            home.GradientDescentOptimizer(0.01) if way == "SGD" else home.AdagradOptimizer(0.01)
        )
    return _OPTIMIZERS[way, fused]


def _nodes(tf: Any, session: Any, op: Any) -> int:
    """Nodes that one run executes for lookups and gradients: all but the optimizer's own."""
    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    found = tf.compat.v1.RunMetadata()
    session.run(op, options=options, run_metadata=found)
    return sum(
        1
        for device in found.step_stats.dev_stats
        for node in device.node_stats
        if not node.node_name.startswith(("_", "GradientDescent", "Adagrad"))
        and "/Adagrad" not in node.node_name
    )


if __name__ == "__main__":
    main()

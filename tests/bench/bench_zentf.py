"""A DLRM that knows nothing of Workbench: stock, `auto_fused` and AMD's plugin zentf in turn.

It has 26 reference variables of 100,000 × 16, one id of each a row by Zipf's law, and lookups of
sparse ids, each an op of its own. It is trained by Adagrad, or serves its scores. Each side is a
process of its own. After a block of zentf, whose threads spin on, all rest.

    python -m tests.bench.bench_zentf --zentf PYTHON [--seconds 20] [--batch-size 32 …]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.served_blocks import Served, serve
from tests.bench.timed_blocks import block, timed
from workbench.core.toggles.stock.zentf import ZENTF as ZENTF_TOGGLE
from workbench.experiments.measurement.statistics import ratio_interval

STOCK, OURS, ZENTF = "stock", "auto_fused", "zentf"
WAYS = ("serve", "train")
TABLES, ROWS, WIDTH, NUMBERS = 26, 100_000, 16, 13
_BATCHES, _COMPARED = 32, 24


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zentf", help="a Python that has zentf, TensorFlow and Workbench")
    parser.add_argument("--batch-size", type=int, action="append", help="32, 512 and 2048")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row")
    parser.add_argument(
        "--serve", nargs=3, metavar=("SIDE", "WAY", "BATCH"), help=argparse.SUPPRESS
    )
    parser.add_argument("--losses", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.serve:
        side, way, batch = chosen.serve
        _side(side, way, int(batch), chosen.losses)
        return
    sides = [STOCK, OURS, *([ZENTF] if chosen.zentf else [])]
    heads = ["", "batch", f"{STOCK}, ms", *(f"times as fast as stock: {s}" for s in sides[1:])]
    heads += [f"{OURS} to {ZENTF}"] if chosen.zentf else []
    print("| " + " | ".join([*heads, "losses or scores differ by"]) + " |")
    print("|---" * (len(heads) + 1) + "|", flush=True)
    for way in WAYS:
        for batch in chosen.batch_size or (32, 512, 2048):
            print(_row(way, batch, sides, chosen), flush=True)


def _row(way: str, batch: int, sides: Sequence[str], chosen: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory() as folder:
        files = {side: Path(folder) / f"{side}.npy" for side in sides}
        served = [_started(side, way, batch, files[side], chosen.zentf) for side in sides]
        try:
            blocks = {name: run for each in served for name, run in each.blocks.items()}
            seconds = timed(blocks, chosen.seconds, spinning=[ZENTF])
        finally:
            for each in served:
                each.end()
        first = {side: np.load(file) for side, file in files.items()}
    cells = [way, str(batch), f"{1e3 * np.median(seconds[STOCK]):.2f}"]
    cells += [_times(seconds[side], seconds[STOCK]) for side in sides[1:]]
    cells += [_times(seconds[OURS], seconds[ZENTF])] if ZENTF in sides else []
    off = [f"{side} {np.max(np.abs(first[side] / first[STOCK] - 1)):.1e}" for side in sides[1:]]
    return "| " + " | ".join([*cells, ", ".join(off)]) + " |"


def _times(mine: Sequence[float], base: Sequence[float]) -> str:
    """How many times as fast, with its 95 % interval."""
    ratio = ratio_interval(1 / np.array(mine), 1 / np.array(base))
    return f"{ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def _started(side: str, way: str, batch: int, losses: Path, python: str | None) -> Served:
    given = ["-m", "tests.bench.bench_zentf", "--serve", side, way, str(batch)]
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    if side == ZENTF:
        environment |= ZENTF_TOGGLE.environment("on")
    program = python if side == ZENTF and python else sys.executable
    return Served([program, *given, "--losses", str(losses)], environment)


def _side(side: str, way: str, batch: int, losses: Path) -> None:
    """Serves blocks of one side's steps, till standard input ends."""
    import tensorflow as tf

    import workbench as wb

    if side == ZENTF:
        ZENTF_TOGGLE.prepare("on", is_function=False)
    # As the other processes do.
    wb.keep_freed_memory()
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        fetched = _dlrm(tf, batch, trained=way == "train")
        config = v1.ConfigProto()
        if side == OURS:
            config = wb.apply(wb.plan_fusion(graph), config)
        with v1.Session(config=config) as session:
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            run = session.make_callable(fetched)
            np.save(losses, [np.mean(run()[0]) for _ in range(_COMPARED)])
            serve({side: block(run)})


def _dlrm(tf: Any, batch: int, *, trained: bool) -> list[Any]:
    """What a run fetches: the loss and the training op, or the scores."""
    v1 = tf.compat.v1
    v1.set_random_seed(1)
    draw = np.random.default_rng(0)
    ids = np.minimum(draw.zipf(1.2, (_BATCHES, TABLES, batch)) - 1, ROWS - 1)
    counts = draw.random((_BATCHES, batch, NUMBERS), np.float32)
    labels = (draw.random((_BATCHES, batch, 1)) < 0.25).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((ids.astype(np.int64), counts, labels)).repeat()
    iterator = v1.data.make_initializable_iterator(data)
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    ids, x, labels = iterator.get_next()
    rows = tf.range(batch, dtype=tf.int64)
    places = tf.stack([rows, tf.zeros_like(rows)], 1)
    found = []
    for number in range(TABLES):
        table = v1.get_variable(f"table_{number}", [ROWS, WIDTH], use_resource=False)
        sparse = tf.SparseTensor(places, ids[number], [batch, 1])
        found.append(v1.nn.safe_embedding_lookup_sparse(table, sparse, combiner="mean"))
    for number, units in enumerate((512, 256, 64, WIDTH)):
        x = _dense(tf, x, units, f"bottom_{number}")
    vectors = tf.stack([x, *found], 1)
    count = TABLES + 1
    dots = tf.reshape(tf.matmul(vectors, vectors, transpose_b=True), [batch, count * count])
    below = [left * count + right for left in range(count) for right in range(left)]
    x = tf.concat([x, tf.gather(dots, below, axis=1)], 1)
    for number, units in enumerate((512, 256)):
        x = _dense(tf, x, units, f"top_{number}")
    logits = _dense(tf, x, 1, "logits", last=True)
    if not trained:
        return [tf.sigmoid(logits)]
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses)
    return [loss, v1.train.AdagradOptimizer(0.01).minimize(loss)]


def _dense(tf: Any, x: Any, units: int, name: str, *, last: bool = False) -> Any:
    v1 = tf.compat.v1
    with v1.variable_scope(name):
        weights = v1.get_variable("weights", [x.shape[1], units])
        bias = v1.get_variable("bias", [units], initializer=v1.zeros_initializer())
    found = tf.nn.bias_add(tf.matmul(x, weights), bias)
    return found if last else tf.nn.relu(found)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()

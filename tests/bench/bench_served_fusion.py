"""Requests of a served model with 26 features that are fed apart: stock, and fused in two ways.

A SavedModel of TensorFlow 1 runs in a session, and its signature as a function. "Alone" is the plan
without the signature: an op for each lookup. One client asks, with one id a feature and row.

    python -m tests.bench.bench_served_fusion [--rows 8] [--threads 2] [--seconds 6]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.bench.timed_blocks import block, timed
from workbench.experiments.measurement.statistics import ratio_interval

FEATURES, ROWS, DIM = 26, 100_000, 16
BATCHES = (1, 8, 32)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, action="append", help=f"a request; all: {BATCHES}")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each number of rows")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as folder:
        _export(f"{folder}/model")
        calls = {**_sessions(f"{folder}/model", chosen.threads), **_functions(f"{folder}/model")}
        print(f"{FEATURES} tables of {ROWS:,} × {DIM}, {chosen.threads} threads, one client")
        print("| rows | what | µs a request | times as fast as stock |")
        print("|---|---|---|---|", flush=True)
        for rows in chosen.rows or BATCHES:
            _print(rows, calls, chosen.seconds)


def _export(folder: str) -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        inputs, found = {}, []
        for k in range(FEATURES):
            inputs[f"c{k}"] = v1.sparse_placeholder(tf.int64, [None, None], name=f"c{k}")
            table = v1.get_variable(f"t{k}", [ROWS, DIM])
            found.append(v1.nn.safe_embedding_lookup_sparse(table, inputs[f"c{k}"]))
        hidden = tf.nn.relu(
            tf.matmul(tf.concat(found, 1), v1.get_variable("w", [FEATURES * DIM, 64]))
        )
        scores = tf.sigmoid(tf.matmul(hidden, v1.get_variable("v", [64, 1])), name="scores")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, folder, inputs, {"scores": scores})


def _request(rows: int) -> list[Any]:
    """Indices, values and shapes of all features."""
    random, parts = np.random.default_rng(rows), []
    for _ in range(FEATURES):
        at = np.stack([np.arange(rows), np.zeros(rows, int)], 1)
        parts += [at, random.integers(0, ROWS, rows), np.int64([rows, 1])]
    return parts


def _sessions(folder: str, threads: int) -> dict[str, Callable[[list[Any]], Any]]:
    import tensorflow as tf

    import workbench as wb

    v1 = tf.compat.v1
    plans = {
        "stock": None,
        "alone": wb.plan_fusion(folder),
        "fused": wb.plan_fusion(folder, signature="serving_default"),
    }
    fed = [f"c{k}/{part}:0" for k in range(FEATURES) for part in ("indices", "values", "shape")]
    calls = {}
    for name, plan in plans.items():
        config = v1.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
        )
        session = v1.Session(graph=tf.Graph(), config=wb.apply(plan, config) if plan else config)
        with session.graph.as_default():
            v1.saved_model.load(session, ["serve"], folder)
        call = session.make_callable("scores:0", fed)
        calls[f"session, {name}"] = lambda request, call=call: call(*request)
    return calls


def _functions(folder: str) -> dict[str, Callable[[list[Any]], Any]]:
    import tensorflow as tf

    import workbench as wb

    model = tf.saved_model.load(folder)
    signature = model.signatures["serving_default"]
    names = [
        f"c{k}_{part}" for k in range(FEATURES) for part in ("indices", "values", "dense_shape")
    ]

    def called(function: Any) -> Callable[[list[Any]], Any]:
        def call(request: list[Any]) -> Any:
            tensors = {n: tf.constant(v, tf.int64) for n, v in zip(names, request, strict=True)}
            # The model holds what the function reads.
            return model and function(**tensors)["scores"].numpy()

        return call

    return {
        "function, stock": called(signature),
        "function, fused": called(wb.fuse_function(signature)),
    }


def _print(rows: int, calls: dict[str, Callable[[list[Any]], Any]], seconds: float) -> None:
    request = _request(rows)
    found = timed({name: block(lambda c=call: c(request)) for name, call in calls.items()}, seconds)
    for name, times in found.items():
        stock = found[f"{name.partition(',')[0]}, stock"]
        faster = ratio_interval([1 / each for each in times], [1 / each for each in stock], 0)
        ratio = f"{faster.value:.2f} ({faster.low:.2f}–{faster.high:.2f})"
        print(f"| {rows} | {name} | {1e6 * float(np.median(times)):.0f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()

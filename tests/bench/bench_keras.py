"""`wb.fuse_model` on a Keras model: its training steps beside Keras's own, and those of XLA.

A feature has an Embedding each, of ids drawn by Zipf's law; a small network gives the logit. The
same model runs as Keras compiles it by default on a CPU; with jit_compile=True; and fused. Steps
are `train_on_batch`, in blocks that take turns. Prints, as Markdown, a row for each optimizer and
batch size: the times of a step, how many times as fast the fused model is with its interval, and
how far the losses of its first steps are from Keras's.

    python -m tests.bench.bench_keras [--optimizer Adagrad] [--batch-size 512] [--seconds 30]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.bench.timed_blocks import block, timed
from workbench.experiments.measurement.statistics import ratio_interval

FEATURES = 26
OPTIMIZERS = ("SGD", "Adagrad", "Adam")
STOCK, XLA, FUSED = "stock", "xla", "fused"
_BATCHES = 16
_COMPARED = 20


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="of each table")
    parser.add_argument("--dim", type=int, default=16, help="columns of each table")
    parser.add_argument("--batch-size", type=int, action="append", help="512 and 2048 by default")
    parser.add_argument("--optimizer", action="append", choices=OPTIMIZERS)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each row")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.one:
        print(row(chosen))
        return
    print("| optimizer | batch | Keras, ms | XLA, ms | fused, ms | to Keras | to XLA | losses |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for optimizer in chosen.optimizer or OPTIMIZERS:
        for batch in chosen.batch_size or (512, 2048):
            # In a process of its own, so that no memory of another one is left.
            given = ["--one", "--optimizer", optimizer, "--batch-size", batch]
            given += ["--rows", chosen.rows, "--dim", chosen.dim, "--seconds", chosen.seconds]
            command = [sys.executable, "-m", "tests.bench.bench_keras", *map(str, given)]
            environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
            found = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
            if found.returncode:
                raise SystemExit(found.returncode)
            print(found.stdout.splitlines()[-1], flush=True)


def row(chosen: argparse.Namespace) -> str:
    """Measures one optimizer and batch size."""
    import workbench as wb

    wb.keep_freed_memory()
    (name,), (batch,) = chosen.optimizer, chosen.batch_size
    models = {
        STOCK: _model(chosen, name, jit_compile=False),
        XLA: _model(chosen, name, jit_compile=True),
        FUSED: _model(chosen, name, jit_compile=False),
    }
    fusion = wb.fuse_model(models[FUSED])
    batches = _batches(batch, chosen.rows)
    first = {
        key: [model.train_on_batch(*batches[i % _BATCHES]) for i in range(_COMPARED)]
        for key, model in models.items()
    }
    assert fusion.plan is not None and len(fusion.plan.of("lookup")) == FEATURES, fusion.describe()
    off = np.max(np.abs(np.subtract(first[FUSED], first[STOCK]) / first[STOCK]))
    blocks = {key: block(_Steps(model, batches)) for key, model in models.items()}
    seconds = timed(blocks, chosen.seconds)
    rates = {key: [1 / each for each in found] for key, found in seconds.items()}
    times = [f"{1e3 * float(np.median(found)):.1f}" for found in seconds.values()]
    ratios = [ratio_interval(rates[FUSED], rates[key], 0) for key in (STOCK, XLA)]
    said = [f"{each.value:.2f} ({each.low:.2f}–{each.high:.2f})" for each in ratios]
    return f"| {name} | {batch} | {' | '.join([*times, *said])} | {off:.1e} |"


class _Steps:
    """Trains a model by the next batch, over and over."""

    def __init__(self, model: Any, batches: list[Any]) -> None:
        self._model, self._batches, self._next = model, batches, 0

    def __call__(self) -> None:
        self._model.train_on_batch(*self._batches[self._next % _BATCHES])
        self._next += 1


def _batches(size: int, rows: int) -> list[Any]:
    """Ids int32 [size, FEATURES] and labels float32 [size, 1], as tensors."""
    import tensorflow as tf

    random = np.random.default_rng(0)
    return [
        (
            tf.constant(random.zipf(1.2, (size, FEATURES)) % rows, tf.int32),
            tf.constant(random.integers(0, 2, (size, 1)), tf.float32),
        )
        for _ in range(_BATCHES)
    ]


def _model(chosen: argparse.Namespace, optimizer: str, *, jit_compile: bool) -> Any:
    """The model in stock Keras alone, its weights always the same."""
    import keras

    keras.utils.set_random_seed(0)
    ids = keras.Input((FEATURES,), dtype="int32")
    found = [keras.layers.Embedding(chosen.rows, chosen.dim)(ids[:, i]) for i in range(FEATURES)]
    hidden = keras.layers.Concatenate()(found)
    for width in (128, 64):
        hidden = keras.layers.Dense(width, activation="relu")(hidden)
    model = keras.Model(ids, keras.layers.Dense(1)(hidden))
    model.compile(
        getattr(keras.optimizers, optimizer)(0.01),
        keras.losses.BinaryCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    return model


if __name__ == "__main__":
    main()

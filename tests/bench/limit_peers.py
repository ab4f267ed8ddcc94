"""Who runs a step in the bench of limits, each in a process of its own, served (served_blocks.py).

    python -m tests.bench.limit_peers ours dlrm 512 2 FOLDER

It leaves the losses of its first steps in FOLDER, and "stock" what it starts from.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench import limit_file
from tests.bench.served_blocks import serve
from tests.bench.timed_blocks import block
from workbench.core.toggles.stock.zentf import ZENTF as ZENTF_TOGGLE
from workbench.freed_memory import keep_freed_memory

# A process is asked for them by a line of words, so each is one.
STOCK, OURS, STAGED, ORDERED = "stock", "ours", "ours-staged", "ours-cost-model"
ZENTF, BOTH, KERAS, TORCH = "zentf", "ours-and-zentf", "Keras-XLA", "torch"
NAMES = (STOCK, OURS, STAGED, ORDERED, ZENTF, BOTH, KERAS, TORCH)
# Whose threads spin on after a step.
SPINNING = (ZENTF, BOTH, TORCH)
# What a peer's process needs before TensorFlow is imported: AMD's kernels instead of oneDNN's.
ENVIRONMENTS = {name: ZENTF_TOGGLE.environment("on") for name in (ZENTF, BOTH)}
COMPARED = 24
# Runs a step, and returns its loss where it is asked for.
Step = Callable[[bool], float | None]


def start_file(folder: Path) -> Path:
    """What all but TensorFlow start from."""
    return folder / "start.bin"


def losses_file(folder: Path, name: str) -> Path:
    """The losses of a peer's first steps."""
    return folder / f"{name}.npy"


def main(name: str, model: str, batch: int, threads: int, folder: Path) -> None:
    """Serves one of NAMES until its input ends."""
    # As the other processes do.
    keep_freed_memory()
    makers = {KERAS: _keras, TORCH: _torch}
    try:
        if name in makers:
            step = makers[name](limit_file.read(start_file(folder)), threads)
        else:
            step = _graph(name, model, batch, threads, folder)
        np.save(losses_file(folder, name), [step(True) for _ in range(COMPARED)])
    except Exception as error:  # whatever it is, the others are measured
        serve({}, {name: f"{type(error).__name__}: {str(error).splitlines()[0]}"})
        return
    serve({name: block(lambda: step(False))})


def _graph(name: str, model: str, batch: int, threads: int, folder: Path) -> Step:
    """TensorFlow's session, as it is, or with what Workbench makes of the graph."""
    import tensorflow as tf

    from tests.bench.limit_model import build, start_of

    if name in (ZENTF, BOTH):
        # It does nothing unasked: where TensorFlow has not loaded it, the peer would be stock.
        ZENTF_TOGGLE.prepare("on", is_function=False)
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    built = build(model, batch)
    config = v1.ConfigProto(
        inter_op_parallelism_threads=threads, intra_op_parallelism_threads=threads
    )
    hooks = []
    fetched = [built.train_op, built.loss]
    if name in (OURS, STAGED, ORDERED, BOTH):
        import workbench as wb

        graph = v1.get_default_graph()
        fusion = wb.plan_fusion(graph)
        config = wb.apply(fusion, config)
        policy = "cost_model" if name == ORDERED else "normal"
        config = wb.executor_options(policy, config=config)
        if name == STAGED:
            config = wb.apply(wb.plan(wb.find_boundary(graph, fetched, fusion=fusion)), config)
            hooks.append(wb.make_prefetch_hook())
    monitored = v1.train.MonitoredTrainingSession(config=config, hooks=hooks)
    # Its own runs would ask hooks before and after each step.
    session = monitored._tf_sess()
    if name == STOCK:
        limit_file.write(start_of(model, batch, session), start_file(folder))
    # An executor learns for each set of fetches, so there is one.
    run = session.make_callable(fetched)

    def step(wanted: bool) -> float | None:
        loss = run()[1]
        return float(loss) if wanted else None

    return step


def _keras(start: limit_file.Start, threads: int) -> Step:
    """Keras's layers, compiled by XLA; Adagrad trains all weights."""
    import keras
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(threads)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    made = _keras_model(keras, tf, start.model)
    made.compile(
        keras.optimizers.Adagrad(limit_file.RATES["dlrm"][0]),
        keras.losses.BinaryCrossentropy(from_logits=True),
        jit_compile=True,
    )
    given = [
        ([tf.constant(numbers), tf.constant(ids)], tf.constant(labels[:, None]))
        for numbers, ids, labels in zip(start.numbers, start.ids, start.labels, strict=True)
    ]
    batches: Iterator[Any] = itertools.cycle(given)

    def step(wanted: bool) -> float | None:
        loss = made.train_on_batch(*next(batches))
        return float(loss) if wanted else None

    return step


def _keras_model(keras: Any, tf: Any, model: str) -> Any:
    from workbench.models.zoo.deepfm import pairwise
    from workbench.models.zoo.dlrm import pairs

    layers = keras.layers
    first, second = limit_file.WIDTHS[model]

    def stacked(hidden: Any, widths: tuple[int, ...]) -> Any:
        for units in widths[1:]:
            hidden = layers.BatchNormalization()(layers.Dense(units, activation="relu")(hidden))
        return hidden

    def looked_up(width: int) -> list[Any]:
        count, rows = limit_file.TABLES, limit_file.BUCKETS
        return [layers.Embedding(rows, width)(ids[:, i]) for i in range(count)]

    counts = keras.Input((limit_file.NUMBERS,))
    ids = keras.Input((limit_file.TABLES,), dtype="int32")
    numbers = layers.Lambda(lambda x: tf.math.log1p(tf.maximum(x, 0.0)))(counts)
    vectors = looked_up(limit_file.DIMENSION)
    stack = layers.Lambda(lambda parts: tf.stack(parts, axis=1))
    if model == "dlrm":
        bottom = stacked(numbers, first)
        dots = layers.Lambda(pairs)(stack([bottom, *vectors]))
        hidden = stacked(layers.Concatenate()([bottom, dots]), second)
    else:
        linear = layers.Add()([*looked_up(1), layers.Dense(1)(numbers)])
        deep = stacked(layers.Concatenate()([numbers, *vectors]), first)
        pair = layers.Lambda(pairwise)(stack(vectors))
        hidden = stacked(layers.Concatenate()([linear, pair, deep]), second)
    return keras.Model([counts, ids], layers.Dense(1)(hidden))


def _torch(start: limit_file.Start, threads: int) -> Step:
    """torch, its dense part compiled; tables are FBGEMM's where that is installed."""
    import torch

    from tests.bench.limit_torch import torch_step

    torch.set_num_threads(threads)
    return torch_step(start)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))

"""`auto_fused` alone on a model of stock TensorFlow, of which no line changes: DeepFM by hand.

Features with one id each, drawn by Zipf's law, are looked up in a table of factors and in one of
weights; sum, factorization machine and a small network give the logit. Prints, as Markdown, a row
for each optimizer and batch size: the ratio of steps/s to the unchanged program with its interval,
and whether the losses of both are equal.

    python -m tests.bench.bench_auto_fused [--rows 100000] [--dim 16] [--budget 40]
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence

import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.experiments.comparison.compare import compare
from workbench.experiments.program.program import Built, Program

FEATURES = 26
OPTIMIZERS = ("adagrad", "adam")
_BATCHES = 16


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="of each table")
    parser.add_argument("--dim", type=int, default=16, help="columns of the factors")
    parser.add_argument("--batch-size", type=int, action="append", help="512 and 2048 by default")
    parser.add_argument("--optimizer", action="append", choices=OPTIMIZERS)
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of each comparison")
    chosen = parser.parse_args(arguments)
    print("| optimizer | batch | steps/s to stock's | losses |")
    print("|---|---|---|---|", flush=True)
    for name in chosen.optimizer or OPTIMIZERS:
        for batch in chosen.batch_size or (512, 2048):
            build = functools.partial(_build, name, batch, chosen.rows, chosen.dim)
            found = compare(
                Program(name=f"DeepFM {name} {batch}", build=build),
                [Optimizations(fused_embeddings="auto")],
                budget_s=chosen.budget,
                trace_steps=5,
                equivalence_steps=20,
            )
            (ratio,) = found.ratios
            (check,) = found.equivalence
            print(
                f"| {name} | {batch} | {ratio.ratio:.2f} ({ratio.low:.2f}–{ratio.high:.2f}) | "
                f"{'equal' if check.passed else check.detail} |",
                flush=True,
            )


def _build(optimizer: str, batch: int, rows: int, dim: int, _: Optimizations) -> Built:
    """The model in stock TensorFlow alone."""
    import tensorflow as tf

    v1 = tf.compat.v1
    random = np.random.default_rng(0)
    drawn = {
        "ids": random.zipf(1.2, (_BATCHES, batch, FEATURES)) % rows,
        "label": random.integers(0, 2, (_BATCHES, batch, 1)).astype(np.float32),
    }
    data = v1.data.make_one_shot_iterator(
        tf.data.Dataset.from_tensor_slices(drawn).repeat().prefetch(2)
    ).get_next()
    factors, weights = [], []
    for feature in range(FEATURES):
        for width, found in ((dim, factors), (1, weights)):
            table = v1.get_variable(f"table_{feature}_{width}", [rows, width])
            found.append(tf.nn.embedding_lookup(table, data["ids"][:, feature]))
    stacked = tf.stack(factors, 1)
    pairs = tf.square(tf.reduce_sum(stacked, 1)) - tf.reduce_sum(tf.square(stacked), 1)
    hidden = tf.concat(factors, 1)
    for number, width in enumerate((128, 64, 1)):
        kernel = v1.get_variable(f"kernel_{number}", [hidden.shape[1], width])
        bias = v1.get_variable(f"bias_{number}", [width], initializer=v1.zeros_initializer())
        hidden = tf.matmul(hidden, kernel) + bias
        hidden = tf.nn.relu(hidden) if width > 1 else hidden
    logit = hidden + tf.add_n(weights) + 0.5 * tf.reduce_sum(pairs, 1, keepdims=True)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=data["label"], logits=logit)
    loss = tf.reduce_mean(losses)
    made = {"adagrad": v1.train.AdagradOptimizer, "adam": v1.train.AdamOptimizer}[optimizer]
    return Built(train_op=made(0.001).minimize(loss), loss=loss)


if __name__ == "__main__":
    main()

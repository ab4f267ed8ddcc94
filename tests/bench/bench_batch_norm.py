"""A batch normalization and its gradients, as TensorFlow builds them and in an op each.

A matrix of a variable is normalized, and the gradients of it, of gamma and of beta are fetched: the
stock graph, the same one fused, and a plain copy of the matrix take turns in sessions of one
process. Prints, as Markdown, a row for each shape: the times of a step, how many times as fast the
fused one is with its 95 % interval, and how many copies of the matrix it takes.

    python -m tests.bench.bench_batch_norm [--shape 512x512] [--threads 2] [--seconds 5]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.bench.fused_beside_stock import HEADS, measured, row

SHAPES = ("512x16", "512x64", "512x512", "2048x64", "2048x512", "8192x128")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", action="append", help="rows and columns, such as 512x512")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each shape")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    print(f"{chosen.threads} threads")
    print(f"| batch × width {HEADS}", flush=True)
    for shape in chosen.shape or SHAPES:
        rows, columns = map(int, shape.split("x"))
        graph, step, copy = built(rows, columns)
        found = measured(graph, step, copy, chosen.threads, chosen.seconds)
        print(row(f"{rows} × {columns}", found), flush=True)


def built(rows: int, columns: int) -> tuple[Any, Any, Any]:
    """The graph, what is fetched, and a copy of the matrix."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        drawn = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
        x = v1.get_variable("x", initializer=drawn, use_resource=False)
        gamma, beta = (v1.get_variable(name, [columns], use_resource=False) for name in ("g", "b"))
        mean, variance = tf.nn.moments(x, axes=[0])
        y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
        # As a layer above would: of a function of the result.
        step = v1.gradients(y, [x, gamma, beta], grad_ys=y)
        copy = v1.assign(v1.get_variable("y", [rows, columns], use_resource=False), x).op
    return graph, step, copy


if __name__ == "__main__":
    main()

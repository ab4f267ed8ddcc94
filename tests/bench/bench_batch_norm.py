"""A batch normalization and its gradients, as TensorFlow builds them and in an op each.

A matrix of a variable is normalized, and the gradients of it, of gamma and of beta are fetched: the
stock graph, the same one fused, and a plain copy of the matrix take turns in sessions of one
process. Prints, as Markdown, a row for each shape: the times of a step, how many times as fast the
fused one is with its 95 % interval, and how many copies of the matrix it takes.

    python -m tests.bench.bench_batch_norm [--shape 512x512] [--threads 2] [--seconds 5]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.bench.fused_beside_stock import run

SHAPES = ("512x16", "512x64", "512x512", "2048x64", "2048x512", "8192x128")


def main(arguments: Sequence[str] | None = None) -> None:
    run(__doc__, arguments, sizes="batch × width", shapes=SHAPES, built=built)


def built(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The graph, what is fetched, and a copy of the matrix."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        drawn = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        x = v1.get_variable("x", initializer=drawn, use_resource=False)
        gamma, beta = (v1.get_variable(name, shape[1:], use_resource=False) for name in ("g", "b"))
        mean, variance = tf.nn.moments(x, axes=[0])
        y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
        # As a layer above would: of a function of the result.
        step = v1.gradients(y, [x, gamma, beta], grad_ys=y)
        copy = v1.assign(v1.get_variable("y", shape, use_resource=False), x).op
    return graph, step, copy


if __name__ == "__main__":
    main()

"""A dot interaction and its gradient, as TensorFlow builds them and in an op each.

Each pair of a variable's vectors is multiplied, and the gradient of the vectors is fetched: the
stock graph, the same one fused, and a plain copy of the vectors take turns in sessions of one
process. Prints, as Markdown, a row for each shape: the times of a step, how many times as fast the
fused one is with its 95 % interval, and how many copies of the vectors it takes.

    python -m tests.bench.bench_dot_interaction [--shape 512x27x16] [--threads 2] [--seconds 5]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.bench.fused_beside_stock import run

SHAPES = ("512x27x16", "512x27x64", "512x9x16", "2048x27x16", "2048x27x128", "8192x27x16")


def main(arguments: Sequence[str] | None = None) -> None:
    run(__doc__, arguments, sizes="batch × vectors × dim", shapes=SHAPES, built=built)


def built(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The graph, what is fetched, and a copy of the vectors."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        drawn = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        x = v1.get_variable("x", initializer=drawn, use_resource=False)
        count = shape[1]
        below = [row * count + column for row in range(count) for column in range(row)]
        products = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, count * count])
        y = tf.gather(products, below, axis=1)
        step = v1.gradients(y, [x], grad_ys=y)
        copy = v1.assign(v1.get_variable("y", shape, use_resource=False), x).op
    return graph, step, copy


if __name__ == "__main__":
    main()

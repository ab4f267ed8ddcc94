"""The interaction of a factorization machine and its gradient, stock and in an op each.

All pairs of a variable's vectors are summed, and the gradient of the vectors is fetched; rows are
those of bench_dot_interaction.py.

    python -m tests.bench.bench_fm_interaction [--shape 512x26x16] [--threads 2] [--seconds 5]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.bench.fused_beside_stock import run

SHAPES = ("512x26x16", "512x26x64", "2048x26x16", "2048x26x128", "8192x26x16")


def main(arguments: Sequence[str] | None = None) -> None:
    run(__doc__, arguments, sizes="batch × vectors × dim", shapes=SHAPES, built=built)


def built(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The graph, what is fetched, and a copy of the vectors."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        drawn = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        x = v1.get_variable("x", initializer=drawn, use_resource=False)
        y = tf.square(tf.reduce_sum(x, 1)) - tf.reduce_sum(tf.square(x), 1)
        step = v1.gradients(y, [x], grad_ys=y)
        copy = v1.assign(v1.get_variable("y", shape, use_resource=False), x).op
    return graph, step, copy


if __name__ == "__main__":
    main()

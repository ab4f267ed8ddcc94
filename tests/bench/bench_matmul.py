"""The gradients of a dense layer, by TensorFlow's kernel of products and by Workbench's.

The gradient of the layer's input and that of its weights, a product each: the stock graph, the same
one with Workbench's kernel, and a plain copy of the input take turns in sessions of one process.
Prints, as Markdown, a row for each shape: the times of a step, how many times as fast the second
one is with its 95 % interval, and how many copies of the input it takes.

    python -m tests.bench.bench_matmul [--shape 512x429x1024] [--threads 2] [--seconds 5]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.bench.fused_beside_stock import run

SHAPES = (
    "512x429x1024",
    "512x1024x256",
    "512x367x512",
    "512x512x256",
    "32x512x512",
    "2048x429x1024",
    "2048x1024x1024",
)


def main(arguments: Sequence[str] | None = None) -> None:
    run(__doc__, arguments, sizes="batch × inputs × units", shapes=SHAPES, built=built)


def built(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The graph, what is fetched, and a copy of the input."""
    import tensorflow as tf

    v1 = tf.compat.v1
    rows, inputs, units = shape
    with tf.Graph().as_default() as graph:
        sizes = {"x": [rows, inputs], "weights": [inputs, units], "given": [rows, units]}
        x, weights, given = (
            v1.get_variable(
                name,
                initializer=np.random.default_rng(0).normal(size=size).astype(np.float32),
                use_resource=False,
            )
            for name, size in sizes.items()
        )
        step = [
            tf.matmul(given, weights, transpose_b=True),
            tf.matmul(x, given, transpose_a=True),
        ]
        copy = v1.assign(v1.get_variable("y", sizes["x"], use_resource=False), x).op
    return graph, step, copy


if __name__ == "__main__":
    main()

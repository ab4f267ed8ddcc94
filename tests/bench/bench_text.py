"""Lines of text into numbers and hashed ids, stock and by an op for lines and one for words.

A third of the columns are whole numbers, the others words of eight letters of which one in ten is
missing; the copy is one of the lines.

    python -m tests.bench.bench_text [--shape 512x39] [--threads 2] [--seconds 5]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.bench.fused_beside_stock import run

SHAPES = ("512x39", "2048x39", "8192x39", "2048x200")


def main(arguments: Sequence[str] | None = None) -> None:
    run(__doc__, arguments, sizes="batch × columns", shapes=SHAPES, built=built)


def built(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The graph, what is run, and a copy of the lines."""
    import tensorflow as tf

    v1 = tf.compat.v1
    rows, columns = shape
    numbers = columns // 3
    random = np.random.default_rng(0)
    fields = random.integers(10**4, size=shape).astype(object)
    words = random.integers(2**32, size=(rows, columns - numbers))
    fields[:, numbers:] = np.where(words % 10, np.vectorize("{:08x}".format)(words), "")
    with tf.Graph().as_default() as graph:
        drawn = np.array(["\t".join(map(str, row)) for row in fields])
        lines = v1.get_variable("lines", initializer=drawn, use_resource=False)
        defaults = [[0.0]] * numbers + [[""]] * (columns - numbers)
        read = tf.io.decode_csv(lines, defaults, "\t", use_quote_delim=False)
        found = []
        for texts in read[numbers:]:
            where = tf.where(tf.not_equal(texts, ""))
            ids = tf.strings.to_hash_bucket_fast(tf.gather_nd(texts, where), 10_000)
            found.append((where, ids))
        beside = v1.get_variable("copy", initializer=drawn, use_resource=False)
        copy = v1.assign(beside, lines).op
        # What nothing reads is not computed.
        ends = [
            tf.stack(read[:numbers]),
            *(tf.concat(each, 0) for each in zip(*found, strict=True)),
        ]
        step = [end.op for end in ends]
    return graph, step, copy


if __name__ == "__main__":
    main()

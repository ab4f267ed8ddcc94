"""Ids, weights and tables of fused lookups, with the values that they must give."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
VERSIONS = ("v1", "v2")
# Reference 4.4: W[i] = (2i + 1, 2i + 2), ids {1, 1}, {-1}, {3}, {4}, {}.
GOLDEN_TABLE = [[2.0 * i + 1, 2.0 * i + 2] for i in range(10)]
GOLDEN_AT = [[0, 0], [0, 1], [1, 0], [2, 0], [3, 0]]
GOLDEN_IDS = [1, 1, -1, 3, 4]
GOLDEN_WEIGHTS = [1.0, 3.0, 1.0, -2.0, 0.5]


def run(fetches: Any, feed: Any = None) -> Any:
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        return session.run(fetches, feed)


def sparse(at: Any, values: Any, shape: Any, dtype: Any = np.int64) -> tf.SparseTensor:
    at = np.asarray(at, np.int64).reshape(-1, len(shape))
    return tf.SparseTensor(at, tf.constant(np.asarray(values, dtype)), shape)


def golden(weighted: bool = False) -> tuple[tf.SparseTensor, tf.SparseTensor | None]:
    ids = sparse(GOLDEN_AT, GOLDEN_IDS, [5, 2])
    return ids, sparse(GOLDEN_AT, GOLDEN_WEIGHTS, [5, 2], np.float32) if weighted else None

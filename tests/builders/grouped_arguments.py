"""What ops of grouped lookups are given, apart from tables."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def two_features(dim: int) -> dict[str, Any]:
    """Two features of two tables of `dim` columns: ids [1], [5, 1] and [2], []; in one output."""
    return {
        "ids": [tf.constant(each, tf.int64) for each in ([1, 5, 1], [2])],
        "rows": [tf.constant(each, tf.int64) for each in ([0, 1, 3], [0, 1, 1])],
        "dense_shapes": [tf.zeros([0], tf.int64)] * 2,
        "weights": [],
        "table_of": [0, 1],
        "combiners": ["sum", "mean"],
        "prune_invalid_ids": [True, True],
        "fill_empty_rows": [True, False],
        "default_ids": [0, 0],
        "dims": [dim, dim],
        "features": ["clicks", "orders"],
        "concatenated": True,
    }

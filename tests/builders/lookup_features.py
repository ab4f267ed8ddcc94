"""Features of a model, as hypothesis draws them, and tables to look them up in."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from tests.builders.sparse_ids import sparse

v1 = tf.compat.v1
ROWS = 12


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of a drawn group."""

    shape: tuple[int, ...]
    at: tuple[tuple[int, ...], ...]
    ids: tuple[int, ...]
    combiner: str
    default_id: int | None
    max_norm: float | None
    weighted: bool
    table: int
    id_dtype: tf.DType

    def sparse_ids(self) -> tf.SparseTensor:
        return sparse(self.at, self.ids, self.shape, self.id_dtype.as_numpy_dtype)

    def weights(self) -> tf.SparseTensor | None:
        if not self.weighted:
            return None
        # One of four is no weight that a mean takes.
        return sparse(self.at, [i % 4 - 0.5 for i in range(len(self.at))], self.shape, np.float32)


@st.composite
def features(draw: Any, rows: int | None = None) -> Feature:
    rank = 2 if rows else draw(st.sampled_from((2, 2, 3)))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    shape = (rows or shape[0], *shape[1:])
    every = [tuple(int(i) for i in at) for at in np.ndindex(shape)]
    at = [each for each in every if draw(st.integers(0, 2))]
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.permutations(at))
    return Feature(
        shape=shape,
        at=tuple(at),
        ids=tuple(draw(st.integers(-1, ROWS - 1)) for _ in at),
        combiner=draw(st.sampled_from(("sum", "mean", "sqrtn"))),
        default_id=draw(st.sampled_from((None, None, 0, 7))),
        max_norm=None if draw(st.integers(0, 4)) else 0.7,
        weighted=draw(st.integers(0, 2)) == 0,
        table=draw(st.integers(0, 2)),
        id_dtype=draw(st.sampled_from((tf.int64, tf.int64, tf.int32))),
    )


def made_tables(kind: str, dims: tuple[int, ...], dtype: tf.DType, seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    values = [tf.constant(random.normal(size=(ROWS, dim)), dtype) for dim in dims]
    if kind == "tensor":
        return values
    return [
        v1.get_variable(f"table_{i}", initializer=value, use_resource=kind == "resource")
        for i, value in enumerate(values)
    ]


def given_ids(numbers: list[int], dtype: tf.DType) -> tuple[tf.Tensor, tf.SparseTensor]:
    """Ids as they are, and as those of rows of which some have none."""
    ids = v1.placeholder_with_default(tf.constant(numbers, dtype), [None])
    rows = np.sort(np.random.default_rng(len(numbers)).integers(0, 7, len(numbers)))
    indices = [(int(row), at) for at, row in enumerate(rows)]
    indices = v1.placeholder_with_default(np.reshape(np.int64(indices), [-1, 2]), [None, 2])
    return ids, tf.SparseTensor(indices, ids, [9, 9])

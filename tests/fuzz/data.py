"""The batches of a Program, as arrays by the name of the input, and as a dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tests.fuzz.program import Ids, Program

# Ids are below it; every table has more rows.
IDS = 10
# Batches before the first comes again.
BATCHES = 4
FEATURES = 4
_WORDS = np.array(["a", "b", "c", "dd", "eee", "é"], object)


def needed_ids(program: Program) -> tuple[Ids, ...]:
    """The ids of a program, and those that it would lack: some dense, some sparse ones."""
    found = program.ids
    if not any(ids.form == "dense" for ids in found):
        found = (*found, Ids("dense"))
    if all(ids.form == "dense" for ids in found):
        found = (*found, Ids("matrix", 2))
    return found


def batch_of(program: Program, step: int) -> dict[str, Any]:
    """What one step reads; of sparse ids a matrix, -1 where there is none."""
    step %= BATCHES
    random = np.random.RandomState([program.seed, step])
    size = program.batch
    found: dict[str, Any] = {
        "features": random.normal(size=[size, FEATURES]).astype(np.float32),
        "labels": random.randint(0, 2, size).astype(np.float32),
    }
    for number, ids in enumerate(needed_ids(program)):
        own = np.random.RandomState([program.seed, step, number])
        # What is fed in place of one batch's ids has as many as any other batch of an iterator.
        alike = np.random.RandomState([program.seed, number])
        missing = alike if program.source == "iterator" else own
        found[f"ids_{number}"] = _ids(own, missing, ids, size)
    return found


def _ids(random: Any, without: Any, ids: Ids, size: int) -> Any:
    if ids.form == "dense":
        shape = [size, ids.depth] if ids.depth else [size]
        return random.randint(0, IDS, shape).astype(ids.dtype)
    missing = without.rand(size, ids.depth) < 0.35
    # Embeddings that are not safe end with the last row that has an id.
    missing[-1, 0] = False
    if ids.form == "text":
        return np.where(missing, "", random.choice(_WORDS, [size, ids.depth])).astype(object)
    return np.where(missing, -1, random.randint(0, IDS, [size, ids.depth])).astype(ids.dtype)


def given(program: Program, step: int) -> dict[str, Any]:
    """What placeholders or arguments take: of a SparseTensor that is given, its three parts."""
    found = batch_of(program, step)
    for number, ids in enumerate(needed_ids(program)):
        if ids.form == "parts":
            matrix = found.pop(f"ids_{number}")
            where = np.argwhere(matrix >= 0).astype(np.int64)
            found[f"ids_{number}/indices"] = where
            found[f"ids_{number}/values"] = matrix[tuple(where.T)]
            found[f"ids_{number}/shape"] = np.array(matrix.shape, np.int64)
    return found


def shape_of(program: Program, name: str, value: Any) -> list[int | None]:
    """The static shape of an input."""
    shape: list[int | None] = list(np.shape(value))
    if name.endswith(("/indices", "/values")) or (
        not program.known_batch and not name.endswith("/shape")
    ):
        shape[0] = None
    return shape


def dataset_of(program: Program) -> Any:
    """A dataset of batches without end, SparseTensors where ids are given as such."""
    stacked = [batch_of(program, step) for step in range(BATCHES)]
    columns = {name: np.stack([each[name] for each in stacked]) for name in stacked[0]}
    sparse = {f"ids_{k}" for k, ids in enumerate(needed_ids(program)) if ids.form == "parts"}

    def made(row: dict[str, tf.Tensor]) -> dict[str, Any]:
        return {name: as_sparse(each) if name in sparse else each for name, each in row.items()}

    return tf.data.Dataset.from_tensor_slices(columns).map(made).repeat()


def as_sparse(matrix: tf.Tensor) -> tf.SparseTensor:
    """Sparse ids of a matrix."""
    where = tf.where(matrix >= 0)
    shape = tf.shape(matrix, out_type=tf.int64)
    return tf.SparseTensor(where, tf.gather_nd(matrix, where), shape)

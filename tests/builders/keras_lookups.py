"""Keras models with embedding tables, trained plain and with fused lookups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import workbench as wb

ROWS = 23
EXAMPLES = 44


class Bag(keras.layers.Layer):
    """A user's layer over sparse ids."""

    def __init__(
        self, *, safe: bool = True, by_value: bool = False, combiner: str = "mean"
    ) -> None:
        super().__init__()
        self._safe, self._by_value, self._combiner = safe, by_value, combiner

    def build(self, _shape: Any) -> None:
        self.table = self.add_weight(shape=(ROWS, 4), name="table", initializer="uniform")

    def call(self, ids: tf.SparseTensor) -> tf.Tensor:
        table = tf.convert_to_tensor(self.table) if self._by_value else self.table.value
        if self._safe:
            return tf.nn.safe_embedding_lookup_sparse(table, ids, combiner=self._combiner)
        return tf.nn.embedding_lookup_sparse(table, ids, None, combiner=self._combiner)

    def compute_output_shape(self, shape: Any) -> Any:
        return (shape[0], 4)


def dense_model(optimizer: Any = "sgd", *, dims: tuple[int, ...] = (4, 16, 8), **compiled: Any):
    """An Embedding for each feature; ids repeat in every batch."""
    given = [keras.Input((3,), dtype="int32", name=f"ids_{i}") for i in range(len(dims))]
    found = [
        keras.layers.Flatten()(keras.layers.Embedding(ROWS, dim)(ids))
        for dim, ids in zip(dims, given, strict=True)
    ]
    hidden = keras.layers.Dense(8, activation="relu")(keras.layers.Concatenate()(found))
    model = keras.Model(given, keras.layers.Dense(1)(hidden))
    model.compile(optimizer, "mse", **{"metrics": ["mae"], "jit_compile": False, **compiled})
    return model


def columns_model(optimizer: Any = "sgd", *, dtype: str = "int32", **compiled: Any):
    """An Embedding for each column of one matrix of ids, some alone and some together."""
    given = keras.Input((5,), dtype=dtype)
    parts = [given[:, 0], given[:, -1], given[:, 1:3], given[:, 3:4], given[:, 0]]
    found = [keras.layers.Embedding(ROWS, 4 + i)(part) for i, part in enumerate(parts)]
    flat = [each if len(each.shape) == 2 else keras.layers.Flatten()(each) for each in found]
    model = keras.Model(given, keras.layers.Dense(1)(keras.layers.Concatenate()(flat)))
    model.compile(optimizer, "mse", **{"jit_compile": False, **compiled})
    return model


def columns_data(dtype: str = "int32") -> tf.data.Dataset:
    """Ids of which some count from the end."""
    random = np.random.default_rng(1)
    ids = random.integers(-ROWS, ROWS, (EXAMPLES, 5)).astype(dtype)
    labels = random.normal(size=(EXAMPLES, 1)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((ids, labels)).batch(8)


def dense_data(features: int = 3) -> tf.data.Dataset:
    random = np.random.default_rng(1)
    ids = tuple(random.integers(0, ROWS, (EXAMPLES, 3)).astype("int32") for _ in range(features))
    labels = random.normal(size=(EXAMPLES, 1)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((ids, labels)).batch(8)


def sparse_model(optimizer: Any = "sgd", **bag: Any):
    given = keras.Input((5,), dtype="int32", sparse=True)
    model = keras.Model(given, keras.layers.Dense(1)(Bag(**bag)(given)))
    model.compile(optimizer, "mse", jit_compile=False)
    return model


def sparse_data(*, empty_rows: bool = True) -> tf.data.Dataset:
    random = np.random.default_rng(2)
    ids = random.integers(1, ROWS, (EXAMPLES, 5)) * (random.random((EXAMPLES, 5)) < 0.5)
    if not empty_rows:
        ids[:, 0] = random.integers(1, ROWS, EXAMPLES)
    labels = random.normal(size=(EXAMPLES, 1)).astype("float32")
    rows = tf.data.Dataset.from_tensor_slices((ids.astype("int32"), labels)).batch(8)
    return rows.map(lambda ids, labels: (tf.sparse.from_dense(ids), labels))


def values(model: keras.Model) -> dict[str, np.ndarray]:
    """All weights and slots."""
    return {v.path: np.asarray(v) for v in [*model.variables, *model.optimizer.variables]}


def trained(
    build: Callable[[], keras.Model],
    data: tf.data.Dataset,
    *,
    fused: bool,
    fit: dict[str, Any] | None = None,
) -> tuple[keras.Model, wb.ModelFusion | None, dict[str, list[float]]]:
    """A model after three epochs, what fused it, and its history."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    model = build()
    fusion = wb.fuse_model(model) if fused else None
    history = model.fit(data, epochs=3, verbose=0, **(fit or {})).history
    return model, fusion, history


def require_alike(
    build: Callable[[], keras.Model],
    data: tf.data.Dataset,
    *,
    fit: dict[str, Any] | None = None,
    rtol: float = 1e-6,
) -> tuple[keras.Model, wb.ModelFusion]:
    """Trains plain and fused: histories, weights and slots are alike. Gives the fused one."""
    plain, _, wanted = trained(build, data, fused=False, fit=fit)
    model, fusion, found = trained(build, data, fused=True, fit=fit)
    assert fusion is not None
    assert found.keys() == wanted.keys()
    for name, each in wanted.items():
        np.testing.assert_allclose(found[name], each, rtol=rtol, err_msg=name)
    expected = values(plain)
    for name, each in values(model).items():
        largest = np.abs(expected[name]).max(initial=0)
        np.testing.assert_allclose(
            each, expected[name], rtol=rtol, atol=rtol * largest, err_msg=name
        )
    return model, fusion

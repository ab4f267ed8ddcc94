"""The Keras layer of grouped lookups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from workbench.errors import OptionError
from workbench.ops import GroupedEmbedding, fused_update

TABLES = {"users": (9, 4), "shops": (7, 3)}
FEATURES = {"user": "users", "friends": "users", "shop": "shops"}


@pytest.fixture(autouse=True)
def eagerly() -> Iterator[None]:
    with context.eager_mode():
        yield


def inputs() -> dict[str, Any]:
    """Three examples: a dense id, sparse ids of which one is below 0, and ragged ids."""
    return {
        "user": tf.constant([1, 8, -1]),
        "friends": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, -1], [3, 2]),
        "shop": tf.ragged.constant([[3], [], [1, 1]], tf.int32),
    }


def layer(**options: Any) -> GroupedEmbedding:
    return GroupedEmbedding(TABLES, FEATURES, **options)


def model() -> tf.keras.Model:
    given = {name: tf.keras.Input([], dtype="int32", name=name) for name in FEATURES}
    vectors = GroupedEmbedding(TABLES, FEATURES, concatenate=True, name="embeddings")(given)
    return tf.keras.Model(given, tf.keras.layers.Dense(1)(vectors))


def batches() -> tf.data.Dataset:
    random = np.random.default_rng(0)
    ids = {name: random.integers(7, size=64).astype(np.int32) for name in FEATURES}
    labels = random.integers(2, size=[64, 1]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((ids, labels)).batch(16)


def test_combines_the_ids_of_each_feature() -> None:
    made = layer(combiners={"shop": "sum"}, default_id={"friends": 5})
    found = made(inputs())
    users, shops = (made.embeddings[name].numpy() for name in TABLES)
    np.testing.assert_array_equal(found["user"], [users[1], users[8], np.zeros(4)])
    means = [(users[1] + users[2]) / 2, users[5], users[5]]
    np.testing.assert_allclose(found["friends"], means, rtol=1e-6)
    np.testing.assert_allclose(found["shop"], [shops[3], np.zeros(3), 2 * shops[1]], rtol=1e-6)


def test_beside_each_other() -> None:
    apart, together = layer(), layer(concatenate=True)
    together.build()
    found = apart(inputs())
    for name, table in together.embeddings.items():
        table.assign(apart.embeddings[name])
    np.testing.assert_array_equal(together(inputs()), tf.concat(list(found.values()), 1))


def test_a_table_is_a_feature_where_none_is_named() -> None:
    found = GroupedEmbedding(TABLES)({name: tf.constant([1, 2]) for name in TABLES})
    assert {name: tuple(each.shape) for name, each in found.items()} == {
        "users": (2, 4),
        "shops": (2, 3),
    }


def test_under_mixed_precision() -> None:
    made = layer(dtype="mixed_bfloat16")
    found = made(inputs())
    assert {each.dtype for each in found.values()} == {tf.bfloat16}
    assert {each.dtype for each in made.trainable_weights} == {"float32"}
    with tf.GradientTape() as tape:
        loss = tf.add_n([tf.reduce_sum(each) for each in made(inputs()).values()])
    slices = tape.gradient(loss, [each.value for each in made.trainable_weights])
    assert all(isinstance(each, tf.IndexedSlices) and each.dtype == tf.float32 for each in slices)


@pytest.mark.parametrize("fused", [False, True])
def test_a_model_trains_as_one_of_keras_layers(fused: bool) -> None:
    ours = model()
    given = {name: tf.keras.Input([], dtype="int32", name=name) for name in FEATURES}
    tables = {name: tf.keras.layers.Embedding(*size) for name, size in TABLES.items()}
    vectors = [tables[table](given[name]) for name, table in FEATURES.items()]
    dense = tf.keras.layers.Dense(1)(tf.keras.layers.Concatenate()(vectors))
    stock = tf.keras.Model(given, dense)
    for one, other in zip(
        (*tables.values(), stock.layers[-1]), (None, None, ours.layers[-1]), strict=True
    ):
        if other is not None:
            one.set_weights(other.get_weights())
    for name, table in tables.items():
        table.set_weights([ours.get_layer("embeddings").embeddings[name].numpy()])
    losses = []
    for each, compiled in ((ours, "auto"), (stock, False)):
        optimizer = tf.keras.optimizers.SGD(0.1)
        each.compile(
            fused_update(optimizer) if fused and each is ours else optimizer,
            "mse",
            jit_compile=compiled,
        )
        losses.append(each.fit(batches(), epochs=3, verbose=0).history["loss"])
    assert not ours.jit_compile
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_saved_and_loaded(tmp_path: Path) -> None:
    made = model()
    wanted = made.predict(batches(), verbose=0)
    made.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(batches(), verbose=0), wanted)
    again = layer(combiners={"shop": "sum"}, default_id=2, embeddings_initializer="zeros")
    other = GroupedEmbedding.from_config(again.get_config())
    assert other.get_config() == again.get_config()


def test_of_sparse_keras_inputs() -> None:
    given = {"users": tf.keras.Input([None], dtype="int64", sparse=True, name="users")}
    made = tf.keras.Model(given, GroupedEmbedding({"users": (9, 4)})(given)["users"])
    ids = tf.SparseTensor([[0, 0], [1, 1]], tf.constant([1, 2], tf.int64), [2, 3])
    table = made.layers[-1].embeddings["users"].numpy()
    np.testing.assert_array_equal(made({"users": ids}), table[[1, 2]])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"tables": {}}, "no feature"),
        ({"tables": {"users": (0, 4)}}, r"'users' has size \(0, 4\); expected rows and columns"),
        ({"tables": TABLES, "features": {"a": "b"}}, "'a' is of table 'b'; expected one of users"),
        ({"tables": TABLES, "combiners": {"a": "sum"}}, r"combiners has \['a'\]"),
    ],
)
def test_wrong_arguments(arguments: Any, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        GroupedEmbedding(**arguments)


def test_other_features() -> None:
    with pytest.raises(OptionError, match=r"given features \['user'\]; expected \['friends'"):
        layer()({"user": tf.constant([1])})

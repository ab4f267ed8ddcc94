"""Small Keras models and their data, trained plain and with a smart stage."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.builders.functions import producers
from workbench.core.function.keras_fit import smart_stage_model

ROWS = 70
WORDS = list("abcdef")


def rows(count: int = ROWS):
    """Words, numbers and labels."""
    chance = np.random.RandomState(0)
    words = chance.choice([*WORDS, "other"], (count, 1))
    return words, chance.rand(count, 4).astype("float32"), chance.randint(0, 2, (count, 1))


def examples() -> tf.data.Dataset:
    words, numbers, labels = rows()
    return tf.data.Dataset.from_tensor_slices(({"word": words, "numbers": numbers}, labels))


def batches(size: int = 8) -> tf.data.Dataset:
    return examples().shuffle(20, seed=1).batch(size).prefetch(1)


def numeric() -> dict:
    """Arguments of fit for NumPy input."""
    _, numbers, labels = rows()
    return {"x": numbers, "y": labels, "batch_size": 8}


class Data(keras.utils.PyDataset):
    """Six batches."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        given = numeric()
        return given["x"][8 * i : 8 * i + 8], given["y"][8 * i : 8 * i + 8]


def word_model(**compiled) -> keras.Model:
    """Strings are looked up and hashed in the model; dropout has a state of its own."""
    word = keras.Input((1,), dtype="string", name="word")
    numbers = keras.Input((4,), name="numbers")
    ids = keras.layers.StringLookup(vocabulary=WORDS)(word)
    hashed = keras.layers.Hashing(7)(word)
    parts = [keras.layers.Flatten()(keras.layers.Embedding(8, 3)(x)) for x in (ids, hashed)]
    together = keras.layers.Concatenate()([*parts, keras.layers.Rescaling(0.5)(numbers)])
    hidden = keras.layers.Dropout(0.3)(keras.layers.Dense(8, activation="relu")(together))
    model = keras.Model([word, numbers], keras.layers.Dense(1, activation="sigmoid")(hidden))
    return compiled_as(model, **compiled)


def number_model(**compiled) -> keras.Model:
    layers = [
        keras.layers.Rescaling(2.0),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
    return compiled_as(keras.Sequential(layers), **{"jit_compile": False, **compiled})


def compiled_as(model: keras.Model, **compiled) -> keras.Model:
    said = {"optimizer": "adam", "loss": "binary_crossentropy", "metrics": ["accuracy"]}
    model.compile(**{**said, **compiled})
    return model


def weights(model) -> list:
    return [np.asarray(w).tolist() for w in [*model.variables, *model.optimizer.variables]]


def require_same(build, fit, *, options=None):
    """Trains twice from the same seed, plain and staged: history and all variables are equal."""
    trained = []
    for staged in (False, True):
        keras.utils.set_random_seed(3)
        model = build()
        stage = smart_stage_model(model, options) if staged else None
        trained.append((model, fit(model).history))
        assert not producers()
    (plain, wanted), (model, found) = trained
    assert found == wanted and list(found) == list(wanted)
    assert weights(model) == weights(plain)
    assert stage is not None
    return stage


def moved(stage) -> set[str]:
    return set(stage.plan.stages[0].moved_ops)

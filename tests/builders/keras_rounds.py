"""`python -m tests.builders.keras_rounds plain|staged COUNT`: models made, trained and dropped.

Prints a line of JSON: resident bytes after some rounds, and what of the last models is alive.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import threading
import weakref

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import psutil
import tensorflow as tf

import workbench as wb

WARM_UP = 3
POINTS = 10


def one(staged: bool) -> list[weakref.ref]:
    """A round, and weak references to what it made."""
    words = keras.Input((1,), dtype="string")
    ids = keras.layers.Hashing(50)(words)
    hidden = keras.layers.Flatten()(keras.layers.Embedding(50, 4)(ids))
    model = keras.Model(words, keras.layers.Dense(1, activation="sigmoid")(hidden))
    model.compile("adam", "binary_crossentropy", jit_compile=False)
    if staged:
        wb.smart_stage(model)
    x = tf.constant([["a"], ["b"], ["c"], ["d"]] * 4)
    data = tf.data.Dataset.from_tensor_slices((x, np.ones([16, 1], "f4"))).batch(4)
    model.fit(data, epochs=2, verbose=0)
    return [weakref.ref(model), weakref.ref(model.train_function), weakref.ref(model.layers[2])]


def resident() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return psutil.Process().memory_info().rss


def main(kind: str, count: int) -> None:
    for _ in range(WARM_UP):
        one(kind == "staged")
    made: list[weakref.ref] = []
    sizes, graphs = [resident()], []
    for i in range(count):
        made += one(kind == "staged")
        if (i + 1) % max(1, count // POINTS) == 0:
            sizes.append(resident())
            graphs.append(sum(isinstance(x, tf.Graph) for x in gc.get_objects()))
    gc.collect()
    alive = sum(ref() is not None for ref in made)
    said = {
        "resident": sizes,
        "alive": alive,
        "graphs": graphs,
        "threads": threading.active_count(),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

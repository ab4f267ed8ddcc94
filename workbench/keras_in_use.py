"""keras_in_use: `tf.keras`, or Keras 3 itself where TensorFlow cannot hand one out."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from typing import Any


def count_names_anew() -> None:
    """Has Keras name what is built next as it named the first of its kind in this process.

    Layers without a name of their own are counted. So ops of a model that is built again would have
    other names than those of the first one.
    """
    keras = keras_in_use()
    where = [getattr(keras, "backend", None)]
    # Keras 3 has it among what is not public, and counts on where it has it no more.
    with contextlib.suppress(ImportError):
        where.append(importlib.import_module("keras.src.utils.naming"))
    for each in where:
        reset = getattr(each, "reset_uids", None)
        if reset is not None:
            reset()


def keras_in_use() -> Any:
    """The package that `tf.keras` stands for.

    With TF_USE_LEGACY_KERAS TensorFlow wants the package tf_keras. Where that is not installed, the
    first use of `tf.keras` raises an ImportError and every later one a RecursionError.
    """
    legacy = os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")
    if legacy and importlib.util.find_spec("tf_keras") is None:
        return importlib.import_module("keras")
    return importlib.import_module("tensorflow").keras

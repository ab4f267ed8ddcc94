"""keras_in_use: `tf.keras`, or Keras 3 itself where TensorFlow cannot hand one out."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any


def keras_in_use() -> Any:
    """The package that `tf.keras` stands for.

    With TF_USE_LEGACY_KERAS TensorFlow wants the package tf_keras. Where that is not installed, the
    first use of `tf.keras` raises an ImportError and every later one a RecursionError.
    """
    legacy = os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")
    if legacy and importlib.util.find_spec("tf_keras") is None:
        return importlib.import_module("keras")
    return importlib.import_module("tensorflow").keras

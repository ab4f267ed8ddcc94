"""Tests that want an NVIDIA GPU which TensorFlow sees; elsewhere all of them are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Sessions and eager tensors of one process, and of others, share the GPU.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import pytest
import tensorflow as tf

import workbench as wb


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Loads the kernels where there is a GPU."""
    if tf.config.list_physical_devices("GPU"):
        wb.load_gpu_kernels()
        return
    skipped = pytest.mark.skip(reason="TensorFlow sees no GPU here")
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(skipped)


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    """A fresh default graph for each test."""
    with tf.Graph().as_default() as fresh:
        yield fresh

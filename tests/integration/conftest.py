"""Graph-mode TensorFlow for the integration tests, as scripts of that age use it."""

from __future__ import annotations

import gc
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest
import tensorflow as tf
from hypothesis import settings

from workbench.freed_memory import keep_freed_memory

# No test fails because the machine was busy.
settings.register_profile("integration", deadline=None)
settings.load_profile("integration")
# Last in the order of names, and longer than what two workers have left to do beside them.
_FIRST = "package/test_notebooks.py"


def pytest_collection_finish() -> None:
    """Spares the collector what is there before the first test, and the kernel what tests free."""
    gc.collect()
    gc.freeze()
    keep_freed_memory()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has the longest tests begin first, so that no worker waits for them at the end."""
    items.sort(key=lambda item: _FIRST not in item.nodeid)


@pytest.fixture(autouse=True)
def graph():
    """A fresh default graph for each test."""
    with tf.Graph().as_default() as fresh:
        yield fresh

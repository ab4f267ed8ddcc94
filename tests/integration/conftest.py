"""Graph-mode TensorFlow for the integration tests, as scripts of that age use it."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest
import tensorflow as tf

from workbench._native import has_executors
from workbench.core.capture import idle_cores
from workbench.freed_memory import keep_freed_memory

# Each longer than what other workers have left to do when its turn comes by name.
_FIRST = ("test_notebooks.py", "test_unclosed.py", "test_magic_in_a_shell.py", "test_cli.py")


def pytest_collection_finish() -> None:
    """Spares the kernel what tests free, and captures a measurement that needs idle cores."""
    keep_freed_memory()
    idle_cores._known.append(False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has the longest tests begin first, so that no worker waits for them at the end.

    What needs executors is skipped where the library was built without.
    """
    items.sort(key=lambda item: not item.path.name.endswith(_FIRST))
    if not has_executors():
        skipped = pytest.mark.skip(reason="the native library has no executors")
        for item in items:
            if item.get_closest_marker("executors") or item.path.parent.name == "executor":
                item.add_marker(skipped)


@pytest.fixture(autouse=True)
def graph():
    """A fresh default graph for each test."""
    with tf.Graph().as_default() as fresh:
        yield fresh

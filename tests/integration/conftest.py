"""Graph-mode TensorFlow for the integration tests, as scripts of that age use it."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest
import tensorflow as tf
from hypothesis import settings

# No test fails because the machine was busy.
settings.register_profile("integration", deadline=None)
settings.load_profile("integration")
# Last in the order of names, and longer than what two workers have left to do beside them.
_FIRST = "package/test_notebooks.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has the longest tests begin first, so that no worker waits for them at the end."""
    items.sort(key=lambda item: _FIRST not in item.nodeid)


@pytest.fixture(autouse=True)
def graph():
    """A fresh default graph for each test."""
    with tf.Graph().as_default() as fresh:
        yield fresh

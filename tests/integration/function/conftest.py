"""Functions run eagerly here, and a smart stage leaves no thread behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import tensorflow as tf

from tests.builders.functions import producers


@pytest.fixture(autouse=True)
def graph() -> None:
    """Instead of the graph of the other tests."""
    assert tf.executing_eagerly()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Fails the test that leaves a producer."""
    yield
    if producers():
        # Of an iterator that is only part of a cycle.
        gc.collect()
    assert not producers()

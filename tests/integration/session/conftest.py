"""Fixtures of tests of sessions."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterator

import pytest
import tensorflow as tf


@pytest.fixture
def on_the_cpu(graph: tf.Graph) -> Iterator[None]:
    """A buffer's ops must be on one device, on a machine with a GPU too."""
    with tf.device("/CPU:0"):
        yield


@pytest.fixture
def clients() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    """Threads that call session.run while the test goes on."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        yield pool

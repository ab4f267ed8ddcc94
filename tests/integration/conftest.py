"""Graph-mode TensorFlow for the integration tests, as scripts of that age use it."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest
import tensorflow as tf


@pytest.fixture(autouse=True)
def graph():
    """A fresh default graph for each test."""
    with tf.Graph().as_default() as fresh:
        yield fresh

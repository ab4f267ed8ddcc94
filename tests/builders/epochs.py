"""Runs a session to the end of its data."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf


def take_all(session: Any, fetch: Any) -> list[Any]:
    """Runs `fetch` to the end of the epoch; the session would swallow it and leave the block."""
    taken = []
    with contextlib.suppress(tf.errors.OutOfRangeError):
        while True:
            taken.append(session.run(fetch))
    return taken

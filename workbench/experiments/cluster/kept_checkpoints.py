"""A chief's saver that goes on from an older checkpoint where the newest one is damaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from workbench.checkpoints import checkpoints_in, first_read
from workbench.errors import DataError

v1 = tf.compat.v1

# What reading a file fails with; a server that has gone is another error.
_DAMAGE = (tf.errors.DataLossError, tf.errors.OutOfRangeError, tf.errors.NotFoundError, ValueError)


def restoring_saver(say: Callable[[str], None]) -> Any:
    """The saver of the current graph, the program's own or a new one, which is built later.

    Args:
      say: is told of a damaged checkpoint, and which one is read instead.
    """
    savers = v1.get_collection_ref(v1.GraphKeys.SAVERS)
    if not savers:
        # As a scaffold makes one.
        savers.append(v1.train.Saver(sharded=True, allow_empty=True, defer_build=True))
    saver = savers[0]
    plain = saver.restore

    def restore(session: Any, path: str) -> None:
        failed: list[Exception] = []

        def read(prefix: str) -> None:
            try:
                plain(session, prefix)
            except _DAMAGE as error:
                failed.append(error)
                raise DataError(str(error)) from error

        older = [each for each in checkpoints_in(os.path.dirname(path)) if each != path]
        try:
            first_read([path, *older], read, say)
        except DataError:
            raise failed[0] from None

    saver.restore = restore
    return saver

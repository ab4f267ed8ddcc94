"""Checkpoints of a folder, newest first: a damaged one is no reason to lose those before it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from workbench.errors import DataError, first_line

Read = TypeVar("Read")
_LOG = logging.getLogger("workbench")
_INDEX = ".index"
# TensorFlow's reader throws what Python has for a status.
_READERS_OWN = (ValueError, LookupError, RuntimeError, OSError)


def checkpoints_in(folder: str | os.PathLike[str]) -> list[str]:
    """The prefixes of a folder's checkpoints, newest first.

    The file `checkpoint` says which they are. Where that is missing or damaged, the times of the
    files do.
    """
    import tensorflow as tf

    home = Path(folder)
    state = tf.train.get_checkpoint_state(str(home))
    if state is None:
        found = sorted(home.glob(f"*{_INDEX}"), key=lambda path: (path.stat().st_mtime, path.name))
        return [str(path)[: -len(_INDEX)] for path in reversed(found)]
    older = [
        path for path in state.all_model_checkpoint_paths if path != state.model_checkpoint_path
    ]
    return [state.model_checkpoint_path, *reversed(older)]


def first_read(
    prefixes: list[str],
    read: Callable[[str], Read],
    say: Callable[[str], None] = _LOG.warning,
) -> Read:
    """Reads the first checkpoint that is whole, and says which ones were not.

    Args:
      prefixes: the checkpoints, newest first.
      read: reads one; raises a DataError or an error of TensorFlow where it is damaged.
      say: is told of each damaged one that has another one behind it.

    Raises:
      DataError: none can be read; names the newest.
    """
    import tensorflow as tf

    problems = []
    for number, prefix in enumerate(prefixes):
        try:
            content = read(prefix)
        except (DataError, tf.errors.OpError, *_READERS_OWN) as error:
            problems.append(first_line(error))
            if number + 1 < len(prefixes):
                say(
                    f"checkpoint {prefix!r} is damaged: {problems[-1]}; "
                    f"the one before it is read, {prefixes[number + 1]!r}"
                )
        else:
            return content
    if len(prefixes) > 1:
        problems[0] += f"; the {len(prefixes) - 1} before it are damaged, too"
    raise DataError(f"no checkpoint can be read at {prefixes[0]!r}: {problems[0]}")

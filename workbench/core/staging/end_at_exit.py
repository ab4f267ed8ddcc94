"""Ends what runs ahead before the interpreter goes.

A thread that comes back from native code when the interpreter is gone is unwound through C++ frames
that do not allow it, and the process aborts. So a script that ends without closing its session has
its producers ended at exit, and is then given the time to hear from all that they woke.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Protocol

import tensorflow as tf

# What waits upstream of the buffer, in a queue, does not hear of the end, but of its session's.
_HEARS_SECONDS = 2.0
# A producer that sleeps longer, in Python code of the input, is left behind as stock's would be.
_ENDS_SECONDS = 3.0
_WOKEN_SECONDS = 1.0
_POLL_SECONDS = 0.01
_TENSORFLOW = os.path.dirname(tf.__file__)


class Run(Protocol):
    """Producers that run now.

    Attributes:
      threads: where.
    """

    @property
    def threads(self) -> Sequence[threading.Thread]: ...

    def end(self) -> object:
        """Has the producers end, without waiting for them."""

    def close(self) -> object:
        """Ends all that the producers may wait for, where `end` did not reach it."""


_RUNS: weakref.WeakSet[Run] = weakref.WeakSet()


def end_at_exit(run: Run) -> None:
    """Has a run ended when the interpreter goes, unless it has ended by then."""
    _RUNS.add(run)


def is_of_this_process(run: Run) -> bool:
    """Whether a run has threads here: a forked child has the runs of its parent in memory alone."""
    return run in _RUNS


def _end_all() -> None:
    runs = _left(list(_RUNS))
    for run in runs:
        run.end()
    left = _joined(runs, _HEARS_SECONDS)
    for run in left:
        run.close()
    _joined(left, _ENDS_SECONDS)
    if runs:
        _wait_for_woken(time.monotonic() + _WOKEN_SECONDS)


def _joined(runs: Sequence[Run], seconds: float) -> list[Run]:
    """Joins the threads of some runs for some seconds at most; the runs that are left then."""
    deadline = time.monotonic() + seconds
    for run in runs:
        for thread in run.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
    return _left(runs)


def _left(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if any(thread.is_alive() for thread in run.threads)]


def _wait_for_woken(deadline: float) -> None:
    """Waits for the consumers, in threads of the user's own, whose call just came to its end."""
    while _calls_tensorflow() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _calls_tensorflow() -> bool:
    """Whether another thread is in native code of TensorFlow, as far as Python shows."""
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)
    return any(frame.f_code.co_filename.startswith(_TENSORFLOW) for frame in frames.values())


atexit.register(_end_all)
os.register_at_fork(after_in_child=_RUNS.clear)

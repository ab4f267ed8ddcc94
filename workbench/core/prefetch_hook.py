"""Starts and stops the stages of a graph with its session: the hook, and a context manager."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from workbench.core.prefetch import PrefetchRunner, StageRun

_RUNNERS: weakref.WeakKeyDictionary[tf.Graph, list[PrefetchRunner]] = weakref.WeakKeyDictionary()


def register_runner(graph: tf.Graph, runner: PrefetchRunner) -> None:
    """Notes that sessions of `graph` have this stage to run. A collection would end in every
    exported meta graph, where a runner cannot be read back."""
    _RUNNERS.setdefault(graph, []).append(runner)


def runners(graph: tf.Graph) -> tuple[PrefetchRunner, ...]:
    """The stages built in `graph` so far, in order."""
    return tuple(_RUNNERS.get(graph, ()))


def make_prefetch_hook() -> PrefetchHook:
    """The hook that runs the stages of a MonitoredTrainingSession; without it take fails."""
    return PrefetchHook()


class PrefetchHook(tf.compat.v1.train.SessionRunHook):
    """Starts every stage of the session's graph after the session is created or re-created.

    A graph without a stage is left alone, so that a script may keep the hook with stages off. A
    producer's error stops the coordinator and ends the consumers with the original message.
    """

    def __init__(self) -> None:
        self._runs: list[StageRun] = []

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the stages, and a watcher that ends them when the coordinator stops."""

        def on_error(error: BaseException) -> None:
            # request_stop wants the traceback too: this runs while the error is handled.
            coord.request_stop(sys.exc_info() if sys.exc_info()[1] is error else error)

        runs = _start(session, on_error)
        self._runs = runs
        if runs:
            watcher = threading.Thread(
                target=_stop_with, args=(coord, runs), name="prefetch-watcher", daemon=True
            )
            # Only the watcher: a producer stuck upstream is ended by closing the session, and must
            # not hold the coordinator back from doing so.
            coord.register_thread(watcher)
            watcher.start()

    def end(self, session: Any) -> None:
        """Ends the stages while the session can still tell their buffers."""
        del session
        _stop(self._runs)


@contextlib.contextmanager
def prefetching(session: Any) -> Iterator[tuple[StageRun, ...]]:
    """Runs the stages of a plain session inside the `with` block, as the hook does for others.

    Args:
      session: a `tf.compat.v1.Session` whose graph is complete and initialised.

    Yields:
      The running stages.
    """
    runs = _start(session, lambda error: None)
    try:
        yield tuple(runs)
    finally:
        _stop(runs)


def _start(session: Any, on_error: Any) -> list[StageRun]:
    runs: list[StageRun] = []
    try:
        for runner in runners(session.graph):
            runs.append(runner.start(session, on_error))
    except BaseException:
        _stop(runs)
        raise
    return runs


def _stop_with(coord: Any, runs: list[StageRun]) -> None:
    coord.wait_for_stop()
    _stop(runs)


def _stop(runs: list[StageRun]) -> None:
    for run in runs:
        run.stop()

"""Starts and stops the stages of a graph with its session: the hook, and a context manager."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from workbench.core.session.imported_stages import takes_without_a_put
from workbench.core.session.prefetch_runner import PrefetchRunner
from workbench.core.session.rewrite import applied_in, require_graph, runners_with
from workbench.core.session.runner_registry import runners
from workbench.core.session.running.stage_run import StageRun, live_runs

_LOG = logging.getLogger("workbench")
_DELIVERED_SECONDS = 1.0


def make_prefetch_hook() -> PrefetchHook:
    """The hook that runs the stages of a MonitoredTrainingSession; without it take fails."""
    return PrefetchHook()


class PrefetchHook(tf.compat.v1.train.SessionRunHook):
    """Starts every stage of the session's graph after the session is created or re-created.

    A graph without a stage is left alone, so that a script may keep the hook with stages off. A
    stage that runs in the session already is left alone too, with a warning. A producer's error
    stops the coordinator and ends the consumers with the original message.
    """

    def __init__(self) -> None:
        self._runs: list[StageRun] = []

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the stages, and a watcher that ends them when the coordinator stops."""

        def on_error(error: BaseException) -> None:
            # request_stop wants the traceback too: this runs while the error is handled.
            coord.request_stop(sys.exc_info() if sys.exc_info()[1] is error else error)

        runs = _start(session, on_error)
        # The same hook may be in the session twice, and then starts nothing the second time.
        self._runs = [*(run for run in self._runs if not run.stops), *runs]
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
        ended, self._runs = self._runs, []
        _stop(ended)


@contextlib.contextmanager
def prefetching(session: Any) -> Iterator[tuple[StageRun, ...]]:
    """Runs the stages of a plain session inside the `with` block, as the hook does for others.

    Another block on the same session goes on where the last one stopped: batches that were read
    ahead stay in the buffer.

    Args:
      session: a `tf.compat.v1.Session` whose graph is complete and initialized.

    Yields:
      The stages that it started; one that runs in the session already is left to its owner, with a
      warning.
    """
    runs = _start(session, lambda error: None)
    try:
        yield tuple(runs)
    finally:
        _stop(runs)


def _start(session: Any, on_error: Any) -> list[StageRun]:
    runs: list[StageRun] = []
    for take in takes_without_a_put(session.graph):
        _LOG.warning(
            "%r takes from a stage that has no put in this graph, so that nothing can fill its "
            "buffer: only a part of the graph was imported; import the whole graph, or feed what "
            "the stage delivers",
            take,
        )
    stages: Sequence[PrefetchRunner] = runners(session.graph)
    applied = applied_in(getattr(session, "_config", None))
    if applied and applied.plan:
        require_graph(applied.plan, session.graph, applied.fusion)
        stages = runners_with(applied, stages)
    running = {run.runner.stage for run in live_runs(session) if not run.stops}
    try:
        for runner in stages:
            if runner.stage in running:
                _LOG.warning(
                    "stage %r runs in this session already, started by another prefetch hook or "
                    "prefetching(): it stays with that one, and is not started a second time; give "
                    "a session one of them",
                    runner.stage,
                )
                continue
            runs.append(StageRun(runner, session, on_error))
    except BaseException:
        _stop(runs)
        raise
    return runs


def _stop_with(coord: Any, runs: list[StageRun]) -> None:
    coord.wait_for_stop()
    _stop(runs)


def _stop(runs: list[StageRun]) -> None:
    # All are told before one ends: what a stage then misses of another one is no error.
    for run in runs:
        run.announce_stop()
    # Those behind first: the stages before may still deliver what belongs to a batch begun there.
    for run in reversed(runs):
        run.end()
        if run.reads_several and len(runs) > 1:
            run.join(_DELIVERED_SECONDS)
    # A producer that waits longer ends with the stage that it waits for.
    for run in reversed(runs):
        run.join()

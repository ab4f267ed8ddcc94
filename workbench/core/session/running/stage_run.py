"""StageRun: the producers of a stage in one session.

One thread per put; all own the buffer by one token, so that nothing of an earlier session is ever
delivered to this one. A run of the same session has a token of the same family: what an earlier run
put and no step took stays.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.core.session.prefetch_runner import PrefetchRunner
from workbench.core.session.running.put_call import PutCall
from workbench.core.session.running.thread_pool import inter_op_pool, intra_op_pool
from workbench.core.session.server_library import without_library
from workbench.core.session.session_facts import server_of
from workbench.core.session.stage_sources import reads_several
from workbench.core.staging import buffer
from workbench.core.staging.end_at_exit import end_at_exit, is_of_this_process
from workbench.core.staging.producer import Producers
from workbench.core.staging.stage_record import StageRunRecord

v1 = tf.compat.v1
_LOG = logging.getLogger("workbench")
# A put waits for room for as long as its own timeout says: the session's operation timeout, which
# would kill the step and its batch, must not apply to it. Three weeks stand for never.
_NO_STEP_TIMEOUT_MS = 2_000_000_000
# The pool of a run that is to take no other thread than the one that asks for it.
_CALLING_THREAD = -1
# In native/staging/buffer/owner_token.h: the session and stage of a token in its low bits, above
# them the number of the run.
_FAMILY_BITS = 40
_MOST_RUNS = 1 << (63 - _FAMILY_BITS)
_LIVE: weakref.WeakKeyDictionary[Any, list[StageRun]] = weakref.WeakKeyDictionary()


class _Earlier(NamedTuple):
    """What is kept of a run for the next one of its session and stage."""

    token: int
    threads: Sequence[threading.Thread]


# The last run of each stage in a session.
_LAST: weakref.WeakKeyDictionary[Any, dict[str, _Earlier]] = weakref.WeakKeyDictionary()


def live_runs(session: Any) -> tuple[StageRun, ...]:
    """The stages whose producers run in this raw session now."""
    return tuple(_LIVE.get(session, ()))


class StageRun:
    """The producers of one stage in one session, and the ProducerOps that they call.

    Attributes:
      runner: what is run.
      reads_several: whether the stage reads more than one op for each item.
      sink: None, or called with a StageRunRecord after each run of the staged side. Set it and
        unset it at any time.
      step_stats: whether a run with a sink returns step stats; set it before the sink.
      graphs: whether it returns what it executed as graphs, too; likewise.
    """

    def __init__(
        self,
        runner: PrefetchRunner,
        session: Any,
        on_error: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """Takes the buffer over for `session` and starts the producing threads.

        Args:
          runner: of a stage of the session's graph.
          session: a raw `tf.compat.v1.Session`.
          on_error: called in the thread that failed with the producer's own exception, before the
            consumers see it.

        Raises:
          OptionError: the stage asks for a thread pool that the session does not have.
          NativeError: the session's server has not loaded the library.
        """
        self.runner = runner
        self.reads_several = reads_several(session.graph, runner.stage)
        self.sink: Callable[[StageRunRecord], None] | None = None
        self.step_stats = False
        self.graphs = False
        # The producers' calls hold it, so that it is free to go when the last of them has ended.
        self._session: Callable[[], Any] = weakref.ref(session)
        self._on_error: Callable[[BaseException], None] | None = on_error
        earlier = _LAST.get(session, {}).get(runner.stage)
        self._token = _token_after(earlier)
        self._lock = threading.Lock()
        self._number = 0
        pool = inter_op_pool(session, runner.stage, runner.options)
        self._intra_op = intra_op_pool(session, runner.stage, runner.options)
        bounded = getattr(getattr(session, "_config", None), "operation_timeout_in_ms", 0)
        self._timeout_ms = _NO_STEP_TIMEOUT_MS if bounded else 0
        self._puts = [
            PutCall(
                session,
                put,
                updates=runner.updates,
                owner=runner.owner,
                feeds=runner.feeds,
                pool=pool,
                timeout_ms=self._timeout_ms,
            )
            for put in runner.puts
        ]
        self._producers = Producers(
            runner.stage,
            self,
            len(runner.puts),
            closed_codes=runner.closed_codes,
            ignored_codes=runner.ignored_codes,
            behind=earlier.threads if earlier else (),
        )
        try:
            self._run(runner.resume, {runner.owner: [self._token, len(runner.puts)]})
        except tf.errors.NotFoundError as error:
            server = server_of(session)
            if not server:
                raise
            raise without_library(runner.stage, server, error) from error
        if earlier and runner.updates:
            _LOG.warning(
                "stage %r is started again in its session: batches that it had read ahead are "
                "dropped, because their updates trail the steps; keep it running",
                runner.stage,
            )
        _LIVE.setdefault(session, []).append(self)
        _LAST.setdefault(session, {})[runner.stage] = _Earlier(self._token, self.threads)
        end_at_exit(self)
        self._producers.start()

    @property
    def threads(self) -> list[threading.Thread]:
        """Where it produces."""
        return self._producers.threads

    @property
    def ignored(self) -> int:
        """Batches skipped so far because of an ignored exception."""
        return self._producers.ignored

    @property
    def stops(self) -> bool:
        """Whether the run has been stopped, or is about to be."""
        return self._producers.stops

    def announce_stop(self) -> None:
        """Says that a stop is near: from here on, what fails is no error."""
        self._producers.expect_stop()

    def end(self) -> None:
        """Stops the buffer, so that the producers end; does nothing in a forked process.

        What they have put or still put stays in the buffer, for steps and for the next run.
        """
        if not is_of_this_process(self):
            return
        self._producers.announce_stop()
        self._cancel(tf.errors.OK, f"stage {self.runner.stage!r} was stopped with its session")

    def close(self) -> None:
        """Closes the session, which ends what the producers wait for upstream of the buffer."""
        session = self._session()
        if session is not None:
            session.close()

    def join(self, seconds: float = 5.0) -> None:
        """Waits, for a few seconds, until the producers have ended; not in a forked process."""
        if is_of_this_process(self):
            self._producers.join(seconds)

    def stop(self) -> None:
        """Cancels the buffer and waits, for a few seconds, until the producers have ended."""
        self.end()
        self.join()

    def drain(self, enable: bool) -> Any:
        """Buffer events since recording began, int64 [n, 6]; switches recording on or off."""
        runner = self.runner
        options = v1.RunOptions(timeout_in_ms=self._timeout_ms)
        drain = buffer.prepared(
            self._session(), feeds=[runner.drain_enable], fetches=[runner.drain], options=options
        )
        return drain(enable)[0]

    def put(self, thread: int) -> None:
        """Runs the staged side once and puts its item; tells the sink of it."""
        with self._intra_op.used() if self._intra_op else contextlib.nullcontext():
            self._put(thread)

    def _put(self, thread: int) -> None:
        owner, call = [self._token, thread], self._puts[thread]
        sink, step_stats, graphs = self.sink, self.step_stats, self.graphs
        if sink is None:
            call.ready(owner)()
            return
        put = call.ready(owner, step_stats=step_stats, graphs=graphs)
        metadata = v1.RunMetadata() if step_stats else None
        with self._lock:
            self._number += 1
            number = self._number
        start_ns = time.time_ns()
        try:
            put(run_metadata=metadata)
        finally:
            sink(
                StageRunRecord(
                    stage=self.runner.stage,
                    thread=thread,
                    number=number,
                    start_ns=start_ns,
                    end_ns=time.time_ns(),
                    metadata=metadata,
                )
            )

    def flush(self, thread: int) -> None:
        """Waits until the buffer has the item that a timed-out put left in line."""
        self._run(self.runner.flush, {self.runner.owner: [self._token, thread]})

    def rest(self, thread: int, reason: int, message: str) -> bool:
        """Waits until a take asks for more, or the input was initialized again."""
        runner = self.runner
        self._run(
            runner.rest,
            {
                runner.owner: [self._token, thread],
                runner.rest_reason: np.int32(reason),
                runner.message: message,
            },
        )
        return True

    def fail(self, thread: int, error: BaseException) -> None:
        """Hands the error of a producer on, to the session's owner and to the consumers."""
        if getattr(self._session(), "_closed", False):
            return
        code = getattr(error, "error_code", None)
        text = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
        # As an OUT_OF_RANGE of take, an error would pass for the clean end of an epoch.
        passed_on = tf.errors.INTERNAL if code in (None, tf.errors.OUT_OF_RANGE) else code
        if self._on_error is not None:
            self._on_error(error)
        self._cancel(
            passed_on, f"stage {self.runner.stage!r}, thread {thread}, failed to produce: {text}"
        )

    def leave(self) -> None:
        """Notes that the stage no longer runs in this session; gives it and its threads up."""
        # Its puts hold the session, until here.
        runs = _LIVE.get(self._session(), [])
        if self in runs:
            runs.remove(self)
        self._intra_op = self._on_error = None
        self._puts = []

    def _cancel(self, code: int, message: str) -> None:
        """Has the buffer end the stage; a dead session needs no telling."""
        runner = self.runner
        feeds = {
            runner.owner: [self._token, -1],
            runner.cancel_code: np.int32(code),
            runner.message: message,
        }
        try:
            # The session's own pool may all be held by the very producers that are to end.
            self._run(runner.cancel, feeds, 0 if server_of(self._session()) else _CALLING_THREAD)
        except (tf.errors.OpError, RuntimeError) as error:
            _LOG.debug("stage %r: %s on a dead session: %s", runner.stage, runner.cancel, error)

    def _run(self, op: str, feeds: dict[str, Any], pool: int = 0) -> None:
        """Runs an op of the buffer, which the Python graph need not know."""
        session = self._session()
        if session is None:
            return
        options = v1.RunOptions(inter_op_thread_pool=pool, timeout_in_ms=self._timeout_ms)
        buffer.prepared(session, feeds=list(feeds), targets=[op], options=options)(*feeds.values())


def _token_after(earlier: _Earlier | None) -> int:
    """The token of a run that follows another one in its session, or of the first one."""
    last = earlier.token if earlier else 0
    number = (last >> _FAMILY_BITS) + 1
    if not last or number == _MOST_RUNS:
        return secrets.randbelow((1 << _FAMILY_BITS) - 1) + 1
    return last + (1 << _FAMILY_BITS)

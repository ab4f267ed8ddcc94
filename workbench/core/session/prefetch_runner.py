"""PrefetchRunner: what runs a stage ahead; StageRun: its threads in one session.

A runner is built with the graph and holds names only. Started in a session it becomes a StageRun:
one thread per put, all owning the buffer by one token, so that nothing of an earlier session is
ever delivered to this one.
"""

from __future__ import annotations

import dataclasses
import logging
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from workbench.core.options import StageOptions
from workbench.core.session.session_facts import server_of, trace_level
from workbench.core.session.thread_pool import inter_op_pool
from workbench.core.staging import buffer
from workbench.core.staging.end_at_exit import end_at_exit, is_of_this_process
from workbench.core.staging.error_codes import error_codes
from workbench.core.staging.stage_record import StageRunRecord

v1 = tf.compat.v1
_LOG = logging.getLogger("workbench")
_CANCELLED = tf.errors.CANCELLED
# A put waits for room for as long as its own timeout says: the session's operation timeout, which
# would kill the step and its batch, must not apply to it. Three weeks stand for never.
_NO_STEP_TIMEOUT_MS = 2_000_000_000
# On a put: what its producer feeds it, for the graph pass. In native/rewriting/restart_stages.cc.
_FED = "_workbench_fed"
# How long a stop waits for producers to notice; one that is stuck upstream ends with the session.
_JOIN_SECONDS = 5.0
# The pool of a run that is to take no other thread than the one that asks for it.
_CALLING_THREAD = -1
_LIVE: weakref.WeakKeyDictionary[Any, list[StageRun]] = weakref.WeakKeyDictionary()


def live_runs(session: Any) -> tuple[StageRun, ...]:
    """The stages whose producers run in this raw session now."""
    return tuple(_LIVE.get(session, ()))


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrefetchRunner:
    """The ops that produce, end and watch one stage, by name; holds no session.

    Attributes:
      stage: name of the stage.
      puts: name of the put op of each thread.
      owner: tensor fed with [token, thread].
      flush, rest, resume, cancel, drain: names of the other ops of the buffer.
      rest_reason, cancel_code, message, drain_enable: tensors fed to them.
      feeds: (fed tensor, value tensor) names; values are evaluated before each put.
      closed_codes, ignored_codes: error codes that end the epoch, or skip one batch.
      options: the stage's options.
    """

    stage: str
    puts: tuple[str, ...]
    owner: str
    flush: str
    rest: str
    rest_reason: str
    resume: str
    cancel: str
    cancel_code: str
    message: str
    drain: str
    drain_enable: str
    feeds: tuple[tuple[str, str], ...]
    closed_codes: frozenset[int]
    ignored_codes: frozenset[int]
    options: StageOptions

    def start(
        self, session: Any, on_error: Callable[[BaseException], None] = lambda error: None
    ) -> StageRun:
        """Takes the buffer over for `session` and starts the producing threads.

        Args:
          session: a raw `tf.compat.v1.Session` of the graph the stage was built in.
          on_error: called in the thread that failed with the producer's own exception, before
            the consumers see it.

        Raises:
          OptionError: the stage asks for a thread pool that the session does not have.
        """
        return StageRun(self, session, on_error)


def build_runner(
    at: buffer.Buffer,
    records: Sequence[Sequence[tf.Tensor]],
    feeds: Sequence[tuple[tf.Tensor, tf.Tensor]],
    options: StageOptions,
    host_records: Sequence[Sequence[tf.Tensor]] = (),
) -> PrefetchRunner:
    """Builds put, flush, rest, resume, cancel and drain of one buffer in the current graph.

    Args:
      at: the buffer.
      records: the tensors of one item; one record for all threads, or one for each thread.
      feeds: (placeholder, value tensor) pairs.
      options: the stage's options.
      host_records: for each record the rest of the item, which stays in host memory; none is empty.
    """
    owner = v1.placeholder(tf.int64, [2], name="owner")
    code = v1.placeholder(tf.int32, [], name="cancel_code")
    message = v1.placeholder(tf.string, [], name="message")
    enable = v1.placeholder(tf.bool, [], name="drain_enable")
    reason = v1.placeholder(tf.int32, [], name="rest_reason")
    puts = [
        at.put(
            owner,
            list(record),
            list(host),
            timeout_millis=options.timeout_millis,
            stream_id=options.stage_subgraph_stream_id,
            name="put",
        )
        for record, host in zip(records, host_records or [()] * len(records), strict=True)
    ]
    if feeds:
        fed = [value.op.name.encode() for _, value in feeds]
        for put in puts:
            put._set_attr(_FED, attr_value_pb2.AttrValue(list={"s": fed}))
    if len(puts) == 1:
        puts = puts * options.num_threads
    return PrefetchRunner(
        stage=at.stage,
        puts=tuple(put.name for put in puts),
        owner=owner.name,
        flush=at.flush(owner, timeout_millis=options.timeout_millis, name="flush").name,
        rest=at.rest(owner, reason, message, name="rest").name,
        rest_reason=reason.name,
        resume=at.resume(owner, name="resume").name,
        cancel=at.cancel(owner, code, message, name="cancel").name,
        cancel_code=code.name,
        message=message.name,
        drain=at.drain(enable, name="drain").name,
        drain_enable=enable.name,
        feeds=tuple((target.name, value.name) for target, value in feeds),
        closed_codes=error_codes(options.closed_exception_types or (tf.errors.OUT_OF_RANGE,)),
        ignored_codes=error_codes(options.ignored_exception_types),
        options=options,
    )


class StageRun:
    """The producing threads of one stage in one session.

    Attributes:
      runner: what is run.
      ignored: batches skipped so far because of an ignored exception.
      threads: where it produces.
      sink: None, or called with a StageRunRecord after each run of the staged side. Set it and
        unset it at any time.
      step_stats: whether a run with a sink returns step stats; set it before the sink.
    """

    def __init__(
        self, runner: PrefetchRunner, session: Any, on_error: Callable[[BaseException], None]
    ) -> None:
        self.runner = runner
        self.ignored = 0
        self.sink: Callable[[StageRunRecord], None] | None = None
        self.step_stats = False
        self._session = session
        self._on_error = on_error
        self._token = secrets.randbits(62) + 1
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._number = 0
        self._live = len(runner.puts)
        self._pool = inter_op_pool(session, runner.stage, runner.options)
        bounded = getattr(getattr(session, "_config", None), "operation_timeout_in_ms", 0)
        self._timeout_ms = _NO_STEP_TIMEOUT_MS if bounded else 0
        self._run(runner.resume, {runner.owner: [self._token, self._live]})
        self.threads = [
            threading.Thread(
                target=self._produce, args=(i,), name=f"{runner.stage}-{i}", daemon=True
            )
            for i in range(len(runner.puts))
        ]
        _LIVE.setdefault(session, []).append(self)
        end_at_exit(self)
        for thread in self.threads:
            thread.start()

    @property
    def stops(self) -> bool:
        """Whether the run has been stopped, or is about to be."""
        return self._stopping.is_set()

    def announce_stop(self) -> None:
        """Says that a stop is near: from here on, what fails is no error."""
        self._stopping.set()

    def end(self) -> None:
        """Cancels the buffer, so that the producers end."""
        self.announce_stop()
        self._cancel(_CANCELLED, f"stage {self.runner.stage!r} was stopped with its session")

    def close(self) -> None:
        """Closes the session, which ends what the producers wait for upstream of the buffer."""
        self._session.close()

    def stop(self) -> None:
        """Cancels the buffer and waits, for a few seconds, until the producers have ended."""
        if not is_of_this_process(self):
            return
        self.end()
        deadline = time.monotonic() + _JOIN_SECONDS
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def drain(self, enable: bool) -> Any:
        """Buffer events since recording began, int64 [n, 6]; switches recording on or off."""
        runner = self.runner
        options = v1.RunOptions(timeout_in_ms=self._timeout_ms)
        drain = buffer.prepared(
            self._session, feeds=[runner.drain_enable], fetches=[runner.drain], options=options
        )
        return drain(enable)[0]

    def _produce(self, thread: int) -> None:
        with_stats: Any = None
        owner = [self._token, thread]
        first = True
        try:
            put = self._callable(self.runner.puts[thread], trace=False)
            while not self._stopping.is_set():
                sink, stats = self.sink, self.step_stats
                if sink is not None and stats and with_stats is None:
                    with_stats = self._callable(self.runner.puts[thread], trace=True)
                try:
                    feeds = self._feed_values()
                    if sink is None:
                        put(owner, *feeds)
                    else:
                        # A callable of its own would be an executor that has learned nothing yet.
                        called = with_stats if stats else put
                        metadata = v1.RunMetadata() if stats else None
                        self._put_traced(called, metadata, thread, owner, feeds, sink)
                except tf.errors.OpError as error:
                    self._go_on_after(error, owner, first)
                first = False
        except BaseException as error:  # the thread's last word: nothing may vanish silently
            self._fail(thread, error)
        finally:
            self._leave()

    def _put_traced(
        self,
        put: Callable[..., Any],
        metadata: Any,
        thread: int,
        owner: list[int],
        feeds: Sequence[Any],
        sink: Callable[[StageRunRecord], None],
    ) -> None:
        with self._lock:
            self._number += 1
            number = self._number
        start_ns = time.time_ns()
        try:
            put(owner, *feeds, run_metadata=metadata)
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

    def _go_on_after(self, error: tf.errors.OpError, owner: list[int], first: bool) -> None:
        """Returns when the producer is to try again; raises `error` when it must not."""
        ends = error.error_code != _CANCELLED and error.error_code in self.runner.closed_codes
        if buffer.is_parked(error):
            self._wait_for_room(owner, error)
        elif buffer.is_restarted(error):
            self._rest(owner, buffer.READY)
        elif ends:
            asked_again = error.error_code == tf.errors.OUT_OF_RANGE
            self._rest(owner, buffer.ENDED if asked_again else buffer.CLOSED)
        elif self._is_ignored(error):
            self._skip(error)
        elif first and error.error_code == tf.errors.FAILED_PRECONDITION:
            # The loop may yet initialize the input, before its first step.
            self._rest(owner, buffer.NOT_READY, error.message)
        else:
            raise error

    def _rest(self, owner: list[int], reason: int, message: str = "") -> None:
        """Waits until a take asks for more, or the input was initialized again."""
        runner = self.runner
        self._run(
            runner.rest,
            {
                runner.owner: owner,
                runner.rest_reason: np.int32(reason),
                runner.message: message,
            },
        )

    def _wait_for_room(self, owner: list[int], error: tf.errors.OpError) -> None:
        """The batch of a timed-out put stays in line: waits until the buffer has taken it."""
        while not self._stopping.is_set():
            _LOG.warning("%s", error.message)
            try:
                self._run(self.runner.flush, {self.runner.owner: owner})
                return
            except tf.errors.DeadlineExceededError as again:
                error = again
            except tf.errors.CancelledError as ended:
                if not buffer.is_restarted(ended):
                    raise
                self._rest(owner, buffer.READY)
                return

    def _is_ignored(self, error: tf.errors.OpError) -> bool:
        return error.error_code != _CANCELLED and error.error_code in self.runner.ignored_codes

    def _skip(self, error: tf.errors.OpError) -> None:
        with self._lock:
            self.ignored += 1
            count = self.ignored
        _LOG.warning(
            "stage %r skipped a batch (%d so far): %s", self.runner.stage, count, error.message
        )

    def _fail(self, thread: int, error: BaseException) -> None:
        """Ends this thread: quietly, or by handing the error on."""
        code = getattr(error, "error_code", None)
        if self._stopping.is_set() or getattr(self._session, "_closed", False):
            return
        text = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
        if code == _CANCELLED and buffer.is_superseded(error):
            return
        # As an OUT_OF_RANGE of take, an error would pass for the clean end of an epoch.
        passed_on = tf.errors.INTERNAL if code in (None, tf.errors.OUT_OF_RANGE) else code
        self._on_error(error)
        self._cancel(
            passed_on, f"stage {self.runner.stage!r}, thread {thread}, failed to produce: {text}"
        )

    def _leave(self) -> None:
        with self._lock:
            self._live -= 1
            last = self._live == 0
        if not last:
            return
        runs = _LIVE.get(self._session, [])
        if self in runs:
            runs.remove(self)

    def _cancel(self, code: int, message: str) -> None:
        runner = self.runner
        self._run_quietly(
            runner.cancel,
            {
                runner.owner: [self._token, -1],
                runner.cancel_code: np.int32(code),
                runner.message: message,
            },
            # The session's own may all be held by the very producers that are to end.
            pool=0 if server_of(self._session) else _CALLING_THREAD,
        )

    def _run(self, op: str, feeds: dict[str, Any], pool: int = 0) -> None:
        """Runs an op of the buffer, which the Python graph need not know."""
        options = v1.RunOptions(inter_op_thread_pool=pool, timeout_in_ms=self._timeout_ms)
        buffer.prepared(self._session, feeds=list(feeds), targets=[op], options=options)(
            *feeds.values()
        )

    def _run_quietly(self, op: str, feeds: dict[str, Any], pool: int = 0) -> None:
        """Runs an op that tells the buffer of an end; a dead session needs no telling."""
        try:
            self._run(op, feeds, pool)
        except (tf.errors.OpError, RuntimeError) as error:
            _LOG.debug("stage %r: %s on a dead session: %s", self.runner.stage, op, error)

    def _feed_values(self) -> Sequence[Any]:
        if not self.runner.feeds:
            return ()
        return self._session.run(
            [value for _, value in self.runner.feeds],
            options=v1.RunOptions(inter_op_thread_pool=self._pool, timeout_in_ms=self._timeout_ms),
        )

    def _callable(self, put: str, trace: bool) -> Callable[..., Any]:
        """`put` as a callable of its feeds: a third of what session.run costs a call."""
        options = v1.RunOptions(inter_op_thread_pool=self._pool, timeout_in_ms=self._timeout_ms)
        feeds = [self.runner.owner, *(target for target, _ in self.runner.feeds)]
        if trace:
            options.trace_level = trace_level(self._session)
            if server_of(self._session) and self._is_in_graph(put):
                # A server returns no step stats for a callable, but does for a run.
                return lambda *values, run_metadata: self._session.run(
                    put, dict(zip(feeds, values, strict=True)), options, run_metadata
                )
        return buffer.prepared(self._session, feeds=feeds, targets=[put], options=options)

    def _is_in_graph(self, op: str) -> bool:
        """Whether the Python graph has the op; those of a stage plan are the session's alone."""
        try:
            self._session.graph.get_operation_by_name(op)
        except KeyError:
            return False
        return True

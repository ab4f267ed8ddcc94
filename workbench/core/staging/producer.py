"""Producers: the threads that run a stage ahead, each item by one put, until they are stopped.

The same loop serves a stage of a session and one of a function; `ProducerOps` is what differs.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Protocol

import tensorflow as tf

from workbench.core.staging import buffer

_LOG = logging.getLogger("workbench")
# How long a stop waits for producers to notice; one that is stuck upstream ends with its session,
# or later.
_JOIN_SECONDS = 5.0
_POLL_SECONDS = 0.05
# How a run ends that is stopped, or whose session is closed; and what the next run meets again.
_OF_A_STOP = frozenset(
    {
        *(tf.errors.ABORTED, tf.errors.CANCELLED, tf.errors.UNAVAILABLE),
        *(tf.errors.FAILED_PRECONDITION, tf.errors.OUT_OF_RANGE),
    }
)


class ProducerOps(Protocol):
    """What producers do to their input and their buffer; `thread` is the number of a producer."""

    def put(self, thread: int) -> None:
        """Runs the staged side once and puts its item."""

    def flush(self, thread: int) -> None:
        """Waits until the buffer has the item that a timed-out put left in line."""

    def rest(self, thread: int, reason: int, message: str) -> bool:
        """Waits until the producer is to try again.

        Args:
          thread: the producer.
          reason: buffer.READY, ENDED, CLOSED, NOT_READY or CUT_SHORT.
          message: with NOT_READY, what the producer lacks.

        Returns:
          False where the producer never is to try again.
        """

    def fail(self, thread: int, error: BaseException) -> None:
        """Hands on the error that ends a producer."""

    def leave(self) -> None:
        """Follows the end of the last producer, and releases what only producers use."""


class Producers:
    """The producing threads of one stage.

    Attributes:
      threads: where it produces.
      ignored: batches skipped so far because of an ignored exception.
    """

    def __init__(
        self,
        stage: str,
        ops: ProducerOps,
        count: int,
        *,
        closed_codes: frozenset[int],
        ignored_codes: frozenset[int],
        behind: Sequence[threading.Thread] = (),
    ) -> None:
        """Readies the threads; `start` starts them.

        Args:
          stage: its name, for messages and the names of threads.
          ops: what the threads do.
          count: how many threads.
          closed_codes, ignored_codes: error codes that end the epoch, or skip one batch.
          behind: threads of an earlier run, which may still read: what they put comes first.
        """
        self.ignored = 0
        self._stage = stage
        self._closed_codes = closed_codes
        self._ignored_codes = ignored_codes
        self._lock = threading.Lock()
        self._expects_stop = self._stops = False
        self._live = count
        self._behind = [tuple(behind[i::count]) for i in range(count)]
        # The threads alone refer to `ops`: what these hold is free when the last thread ends.
        self.threads = [
            threading.Thread(target=self._produce, args=(ops, i), name=f"{stage}-{i}", daemon=True)
            for i in range(count)
        ]

    @property
    def stops(self) -> bool:
        """Whether the producers have been stopped, or are about to be."""
        return self._expects_stop

    def start(self) -> None:
        """Starts the threads."""
        for thread in self.threads:
            thread.start()

    def expect_stop(self) -> None:
        """Says that a stop is near: what fails from here on is no error. Producers go on."""
        self._expects_stop = True

    def announce_stop(self) -> bool:
        """Says that a stop is near: what fails from here on is no error, and no item is begun.

        Returns:
          False if that was said before.
        """
        with self._lock:
            first, self._stops = not self._stops, True
            self._expects_stop = True
        return first

    def join(self, seconds: float = _JOIN_SECONDS) -> None:
        """Waits, for a few seconds, until the threads have ended."""
        deadline = time.monotonic() + seconds
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _produce(self, ops: ProducerOps, thread: int) -> None:
        first, goes_on = True, True
        try:
            self._wait_for(self._behind[thread])
            while goes_on and not self._stops:
                try:
                    ops.put(thread)
                except tf.errors.OpError as error:
                    answer = self._goes_on_after(error, ops, thread, first)
                    if answer is None:
                        raise
                    goes_on = answer
                first = False
        except BaseException as error:  # the thread's last word: nothing may vanish silently
            # The frames that failed hold the batch and its input as long as the error lives.
            traceback.clear_frames(error.__traceback__)
            if self._expects_stop:
                self._warn_of(error)
            elif not buffer.is_superseded(error):
                ops.fail(thread, error)
        finally:
            self._leave(ops)

    def _warn_of(self, error: BaseException) -> None:
        """Says of a batch that failed when the stage had stopped, unless that is what failed it."""
        code = getattr(error, "error_code", None)
        if code is not None and code not in _OF_A_STOP:
            _LOG.warning(
                "stage %r was stopped while it read a batch, which then failed and is lost: %s",
                self._stage,
                error,
            )

    def _wait_for(self, threads: Sequence[threading.Thread]) -> None:
        for thread in threads:
            while thread.is_alive() and not self._stops:
                thread.join(_POLL_SECONDS)

    def _goes_on_after(
        self, error: tf.errors.OpError, ops: ProducerOps, thread: int, first: bool
    ) -> bool | None:
        """Whether the producer is to try again, once it is; None where it is lost."""
        code = error.error_code
        if buffer.is_parked(error):
            return self._wait_for_room(error.message, ops, thread)
        if buffer.is_restarted(error):
            return ops.rest(thread, buffer.READY, "")
        if buffer.is_not_trained(error):
            return True
        if buffer.is_cut_short(error):
            return ops.rest(thread, buffer.CUT_SHORT, "")
        if code != tf.errors.CANCELLED and code in self._closed_codes:
            asked_again = code == tf.errors.OUT_OF_RANGE
            return ops.rest(thread, buffer.ENDED if asked_again else buffer.CLOSED, "")
        if code != tf.errors.CANCELLED and code in self._ignored_codes:
            self._skip(error)
            return True
        # The loop may yet initialize the input, before its first step.
        waits = first and code == tf.errors.FAILED_PRECONDITION
        if waits and ops.rest(thread, buffer.NOT_READY, error.message):
            return True
        return None

    def _wait_for_room(self, message: str, ops: ProducerOps, thread: int) -> bool:
        """The batch of a timed-out put stays in line: waits until the buffer has taken it."""
        while not self._stops:
            _LOG.warning("%s", message)
            try:
                ops.flush(thread)
                return True
            except tf.errors.DeadlineExceededError as again:
                message = again.message
            except tf.errors.CancelledError as ended:
                if not buffer.is_restarted(ended):
                    raise
                return ops.rest(thread, buffer.READY, "")
        return False

    def _skip(self, error: tf.errors.OpError) -> None:
        with self._lock:
            self.ignored += 1
            count = self.ignored
        _LOG.warning("stage %r skipped a batch (%d so far): %s", self._stage, count, error.message)

    def _leave(self, ops: ProducerOps) -> None:
        with self._lock:
            self._live -= 1
            last = self._live == 0
        if last:
            ops.leave()

"""Producers: what they do after each kind of error, by scripted ops."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import pytest
import tensorflow as tf

from workbench.core.staging import buffer
from workbench.core.staging.producer import Producers

ENDS = frozenset({tf.errors.OUT_OF_RANGE})
END = tf.errors.OutOfRangeError(None, None, "the end")
LOST = tf.errors.DataLossError(None, None, "a bad batch")
UNREADY = tf.errors.FailedPreconditionError(None, None, "not initialized")
PARKED = tf.errors.DeadlineExceededError(None, None, "the batch stays in line")
RESTARTED = tf.errors.CancelledError(None, None, "the stage begins again")
SUPERSEDED = tf.errors.CancelledError(None, None, "a newer session owns the stage")
CANCELLED = tf.errors.CancelledError(None, None, "cancelled")


class Script:
    """Ops that raise, in order, what a list has for each call; None is a call that returns."""

    def __init__(
        self,
        puts: Sequence[BaseException | None],
        flushes: Sequence[BaseException | None] = (),
        rests: bool = True,
    ) -> None:
        self.did: list[str] = []
        self._puts, self._flushes, self._rests = list(puts), list(flushes), rests
        self.at_end: Callable[[], object] = lambda: None

    def put(self, thread: int) -> None:
        if not self._puts:
            self.at_end()
            raise CANCELLED
        self._say("put", self._puts.pop(0))

    def flush(self, thread: int) -> None:
        self._say("flush", self._flushes.pop(0))

    def rest(self, thread: int, reason: int, message: str) -> bool:
        names = {buffer.READY: "ready", buffer.ENDED: "ended", buffer.CLOSED: "closed"}
        self.did.append(f"rest {names.get(reason, message)}")
        return self._rests

    def fail(self, thread: int, error: BaseException) -> None:
        self.did.append(f"fail {getattr(error, 'message', error)}")

    def leave(self) -> None:
        self.did.append("leave")

    def _say(self, what: str, error: BaseException | None) -> None:
        self.did.append(what)
        if error is not None:
            raise error


def ran(script: Script, **codes: frozenset[int]) -> tuple[list[str], Producers]:
    """What one producer did until its script had ended."""
    usual = {"closed_codes": ENDS, "ignored_codes": frozenset()}
    producers = Producers("clicks", script, 1, **usual | codes)
    script.at_end = producers.announce_stop
    producers.start()
    producers.join()
    return script.did, producers


def test_it_puts_until_it_is_stopped():
    assert ran(Script([None, None]))[0] == ["put", "put", "leave"]


def test_after_the_end_of_the_input_it_rests_and_looks_again():
    assert ran(Script([END, None]))[0] == ["put", "rest ended", "put", "leave"]


def test_another_closing_error_closes():
    codes = frozenset({tf.errors.DATA_LOSS})
    assert ran(Script([LOST, None]), closed_codes=codes)[0][:2] == ["put", "rest closed"]


def test_a_producer_that_is_not_to_try_again_leaves():
    assert ran(Script([END, None], rests=False))[0] == ["put", "rest ended", "leave"]


def test_an_ignored_error_skips_a_batch(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "workbench"):
        did, producers = ran(Script([LOST, LOST]), ignored_codes=frozenset({tf.errors.DATA_LOSS}))
    assert did == ["put", "put", "leave"] and producers.ignored == 2
    assert caplog.messages[-1] == "stage 'clicks' skipped a batch (2 so far): a bad batch"


def test_a_closing_error_is_not_ignored():
    assert ran(Script([END]), ignored_codes=ENDS)[0][1] == "rest ended"


def test_a_parked_batch_is_flushed_until_the_buffer_has_it(caplog: pytest.LogCaptureFixture):
    did, _ = ran(Script([PARKED, None], flushes=[PARKED, None]))
    assert did == ["put", "flush", "flush", "put", "leave"]
    assert caplog.messages == ["the batch stays in line"] * 2


def test_a_restart_during_put_or_flush_rests_until_the_stage_is_ready():
    assert ran(Script([RESTARTED, None]))[0] == ["put", "rest ready", "put", "leave"]
    did, _ = ran(Script([PARKED, None], flushes=[RESTARTED]))
    assert did == ["put", "flush", "rest ready", "put", "leave"]


def test_an_input_that_is_not_initialized_yet_is_waited_for_before_the_first_item_alone():
    did, _ = ran(Script([UNREADY, None, UNREADY]))
    rests = ["put", "rest not initialized", "put"]
    assert did == [*rests, "put", "fail not initialized", "leave"]
    did, _ = ran(Script([UNREADY], rests=False))
    assert did == ["put", "rest not initialized", "fail not initialized", "leave"]


@pytest.mark.parametrize("error", [LOST, CANCELLED, ValueError("a bad batch"), KeyboardInterrupt()])
def test_any_other_error_is_handed_on(error: BaseException):
    did, _ = ran(Script([None, error]))
    assert did == ["put", "put", f"fail {getattr(error, 'message', error)}", "leave"]


def test_an_error_of_flush_is_handed_on():
    assert ran(Script([PARKED], flushes=[CANCELLED]))[0][-2:] == ["fail cancelled", "leave"]


def test_cancelled_is_neither_an_end_nor_ignored():
    codes = frozenset({tf.errors.CANCELLED})
    did, producers = ran(Script([CANCELLED]), closed_codes=codes, ignored_codes=codes)
    assert did == ["put", "fail cancelled", "leave"] and producers.ignored == 0


def test_a_superseded_producer_leaves_without_a_word():
    assert ran(Script([SUPERSEDED]))[0] == ["put", "leave"]


def test_what_fails_after_the_stop_was_announced_is_no_error():
    did, producers = ran(Script([]))
    assert did == ["leave"] and producers.stops
    assert not producers.announce_stop()


def test_only_the_last_of_several_producers_is_followed_by_leave():
    both = threading.Barrier(2)

    class Ops(Script):
        def put(self, thread: int) -> None:
            both.wait()
            raise END

    script = Ops([], rests=False)
    producers = Producers("clicks", script, 2, closed_codes=ENDS, ignored_codes=frozenset())
    assert [thread.name for thread in producers.threads] == ["clicks-0", "clicks-1"]
    producers.start()
    producers.join()
    assert script.did == ["rest ended", "rest ended", "leave"]

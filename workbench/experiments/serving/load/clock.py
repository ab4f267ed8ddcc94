"""The clocks that a load generator reads; a test hands in others."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Protocol

_PR_SET_TIMERSLACK = 29
_SLACK_NS = 1_000


class Clock(Protocol):
    """Time of day, and CPU of the thread that asks; both in nanoseconds."""

    def now_ns(self) -> int:
        """The time, from any beginning."""

    def sleep_until_ns(self, moment: int) -> None:
        """Returns at a time, or at once where that is over."""

    def thread_cpu_ns(self) -> int:
        """CPU of the thread that asks."""

    def process_cpu_ns(self) -> int:
        """CPU of all threads."""


class RealClock:
    """The machine's own.

    `time.perf_counter_ns` and `time.monotonic` are one clock on Linux, which `time.sleep` waits by.
    """

    now_ns: Callable[[], int] = staticmethod(time.perf_counter_ns)
    thread_cpu_ns: Callable[[], int] = staticmethod(time.thread_time_ns)
    process_cpu_ns: Callable[[], int] = staticmethod(time.process_time_ns)

    def sleep_until_ns(self, moment: int) -> None:
        left = moment - time.perf_counter_ns()
        if left > 0:
            time.sleep(left / 1e9)


def wake_in_time() -> None:
    """Has Linux end the sleeps of this thread a microsecond late at most, in place of fifty."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_TIMERSLACK, _SLACK_NS, 0, 0, 0)

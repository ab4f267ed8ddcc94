"""Ctrl-C and SIGTERM: at once while a command loads, with cleaning up once it runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Terminated(BaseException):
    """SIGTERM, on its way up to where child processes are ended."""


@contextlib.contextmanager
def ends_cleanly() -> Iterator[None]:
    """Ctrl-C ends the process at once until the command has loaded; SIGTERM cleans up.

    Python loses an interrupt that comes in a callback of an import, and the run would go on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(*_: Any) -> None:
        raise Terminated

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def loaded() -> None:
    """The command has loaded what it needs: from here on Ctrl-C is an exception that cleans up."""
    on_main = threading.current_thread() is threading.main_thread()
    if on_main and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)

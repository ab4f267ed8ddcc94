"""What an export does now, said once it takes longer than a moment."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

Say = Callable[[str], None]
_QUIET_S = 2.0


def to_stderr(words: str) -> None:
    """Says a line on standard error."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


class Phases:
    """Says each phase, from two seconds after the begin on."""

    def __init__(self, say: Say) -> None:
        """Nothing is said yet."""
        self._say, self._words, self._said = say, "", ""
        self._late, self._lock = False, threading.Lock()
        self._timer = threading.Timer(_QUIET_S, self._begin)
        self._timer.daemon = True

    def __call__(self, words: str) -> None:
        """A phase begins."""
        with self._lock:
            self._words = words
            self._say_new()

    def start(self) -> None:
        """The time begins."""
        self._timer.start()

    def stop(self) -> None:
        """Nothing more is said."""
        self._timer.cancel()
        with self._lock:
            self._late = False

    def _begin(self) -> None:
        with self._lock:
            self._late = True
            self._say_new()

    def _say_new(self) -> None:
        if self._late and self._words != self._said:
            self._said = self._words
            self._say(f"Export: {self._words}")


@contextlib.contextmanager
def phases(say: Say | None) -> Iterator[Phases]:
    """Phases of one export; None says them on standard error."""
    shown = Phases(to_stderr if say is None else say)
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()

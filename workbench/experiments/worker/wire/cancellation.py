"""Cancelling: one thread ends what another one runs in child processes.

A thread says `with cancellable(event):` and runs what it likes inside. As soon as another thread
sets the event, whatever waits for a child there raises what Ctrl-C raises, so that the children are
ended by the code that ends them after Ctrl-C.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator

CANCELLED = "Cancelled. Nothing was kept; no process is left."

_event: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar(
    "workbench_cancelled", default=None
)


@contextlib.contextmanager
def cancellable(event: threading.Event) -> Iterator[None]:
    """What this thread runs in the block ends once the event is set."""
    before = _event.set(event)
    try:
        yield
    finally:
        _event.reset(before)


def require_not_cancelled() -> None:
    """Requires that nobody has cancelled what this thread runs.

    Raises:
      KeyboardInterrupt: somebody has; with the words to show.
    """
    event = _event.get()
    if event is not None and event.is_set():
        raise KeyboardInterrupt(CANCELLED)

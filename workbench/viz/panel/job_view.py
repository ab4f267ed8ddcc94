"""What the panel says of a run that goes on or went wrong."""

from __future__ import annotations

import dataclasses
import re

from workbench.viz.panel.words import begun

READY = "Ready. The kernel is free."
# The words of `measurement.progress`.
_BLOCK = re.compile(r"Block (\d+) of (\d+)")
_TRACEBACK = "Traceback of the child process:\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobView:
    """Progress, or what went wrong.

    Attributes:
      running: whether a run goes on.
      share: how much of it is over, 0 to 1; None where that is not known.
      words: what it does, or what became of it.
      error: what went wrong, beginning with the user's own line; "" where nothing did.
      details: the whole traceback.
      phases: title and state, "over", "now" or "next", of all phases in their order.
      left: how long it goes on, in words; "" where that is not known.
    """

    running: bool = False
    share: float | None = None
    words: str = ""
    error: str = ""
    details: str = ""
    phases: tuple[tuple[str, str], ...] = ()
    left: str = ""


NOTHING = JobView()


def running(words: str) -> JobView:
    """A run that goes on, by its last line of progress."""
    block = _BLOCK.match(words)
    share = (int(block[1]) - 1) / int(block[2]) if block else None
    return JobView(running=True, share=share, words=words)


def failed(error: BaseException, *, cancelled: bool = False) -> JobView:
    """A run that ended without a result."""
    words = str(error) or type(error).__name__
    if cancelled:
        return JobView(words=words)
    notes = getattr(error, "__notes__", [])
    details = next((note for note in notes if note.startswith(_TRACEBACK)), "")
    return JobView(error=begun(words), details=details.removeprefix(_TRACEBACK))

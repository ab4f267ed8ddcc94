"""Shows what an experiment is doing: on a terminal, in a notebook, in a log, or to a function."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from workbench.experiments.worker.wire.cancellation import require_not_cancelled

_LOG_EVERY_S = 5.0


class Progress:
    """Lines of progress: phases ("Starting 2 child processes") and blocks ("Block 9 of 24, …").

    Args:
      show: True shows one line that is rewritten in a notebook's output and on a terminal's
        stderr, few lines in a log; False is silent; a function is called with each text instead.
    """

    def __init__(self, show: bool | Callable[[str], None]) -> None:
        self._show = show
        self._output = _notebook_output() if show is True else None
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._rewrites = show is True and self._output is None and on_terminal
        self._shown_s = -math.inf

    def phase(self, text: str) -> None:
        """A new phase begins, unless another thread has cancelled what runs here.

        Raises:
          KeyboardInterrupt: it has.
        """
        require_not_cancelled()
        self._write(text)

    def block(self, number: int, total: int, left_s: float) -> None:
        """Block `number` of `total` begins, `left_s` seconds are left."""
        if self._show is True and self._output is None and not self._rewrites:
            now = time.monotonic()
            if now - self._shown_s < _LOG_EVERY_S:
                return
            self._shown_s = now
        self._write(f"Block {number} of {total}, {math.ceil(left_s)}\u00a0s left")

    def end(self) -> None:
        """The experiment is over: a line that is rewritten is wiped."""
        if self._output is not None:
            self._output("")
        elif self._rewrites:
            _stderr("\r\x1b[K")

    def _write(self, text: str) -> None:
        if callable(self._show):
            self._show(text)
        elif self._output is not None:
            self._output(text)
        elif self._rewrites:
            _stderr(f"\r\x1b[K{text}")
        elif self._show:
            _stderr(f"{text}\n")


def _stderr(text: str) -> None:
    # A process without a console has none.
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _notebook_output() -> Callable[[str], None] | None:
    """Shows a text in the running cell, in place of the one before; None outside of notebooks.

    A notebook paints stderr red, as if something had failed.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import DisplayHandle

    handle = DisplayHandle()
    shown = False

    def show(text: str) -> None:
        nonlocal shown
        put = handle.update if shown else handle.display
        put({"text/plain": text}, raw=True)
        shown = True

    return show

"""Shows what an experiment is doing: on a terminal, in a notebook, in a log, or to a function."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from workbench.experiments.measurement.evidence import Evidence
from workbench.experiments.measurement.progress_line import ProgressLine, ProgressState
from workbench.experiments.measurement.schedule import BLOCKS, Expected, Schedule
from workbench.experiments.worker.wire.cancellation import require_not_cancelled
from workbench.own_code import running_shell

# Seconds from one block that is shown to the next one, at least; and in a log.
_SHOW_EVERY_S, _LOG_EVERY_S = 0.2, 5.0
# Variants whose ratios stand in a line of progress.
_MOST_RATIOS = 2
# Waits below this are not said.
_SAID_S = 2.0


class Progress:
    """Lines of progress: phases ("Starting 2 child processes") and blocks ("Block 9 of 24, …").

    Once `plan` has told which phases come, each line also has the share that is over and the
    seconds that are left. One that is given to a function as its `progress` goes on there.

    Args:
      show: True shows one line that is rewritten in a notebook's output and on a terminal's
        stderr, few lines in a log; False is silent; a function is called with each text instead,
        which is a `ProgressLine`.
    """

    def __init__(self, show: bool | Callable[[str], None]) -> None:
        self._show = show
        self._output = _notebook_output() if show is True else None
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._rewrites = show is True and self._output is None and on_terminal
        self._shown_s = -math.inf
        self._users = 1
        self._schedule: Schedule | None = None
        self._later: tuple[Expected, ...] = ()
        self._evidence: tuple[Evidence, ...] = ()
        self._machine = ""

    @classmethod
    def of(cls, show: bool | Callable[[str], None]) -> Progress:
        """The progress itself where one is given, whose `end` then is not the end; else a new one.

        Args:
          show: a Progress, or what one is made from.
        """
        if isinstance(show, Progress):
            show._users += 1
            return show
        return cls(show)

    def __call__(self, text: str) -> None:
        """A line of the phase that goes on."""
        self.phase(text)

    def expect_later(self, phases: Iterable[Expected]) -> None:
        """What comes after that which the next `plan` tells."""
        self._later = tuple(phases)

    def plan(self, phases: Iterable[Expected], *, budget_s: float) -> Schedule:
        """Which phases come, and what they should take.

        Args:
          phases: in their order.
          budget_s: seconds for all of them.
        """
        self._schedule = Schedule((*phases, *self._later), budget_s=budget_s)
        return self._schedule

    @property
    def schedule(self) -> Schedule | None:
        """What was planned; None where nothing was."""
        return self._schedule

    @property
    def reserved_s(self) -> float:
        """Seconds of the budget for what comes after that which the next `plan` tells."""
        return sum(phase.seconds for phase in self._later if not phase.later)

    @property
    def later_s(self) -> float:
        """Seconds after the budget, for what comes then."""
        return sum(phase.seconds for phase in self._later if phase.later)

    def phase(self, text: str, name: str = "") -> None:
        """A new phase begins, unless another thread has cancelled what runs here.

        Args:
          text: what is done.
          name: of the phase, as `schedule` names it; "" goes on with the one before.

        Raises:
          KeyboardInterrupt: it has.
        """
        require_not_cancelled()
        if name:
            self.begin(name)
        self._write(text, self._wait_words())

    def begin(self, name: str) -> None:
        """A phase begins of which the next lines tell."""
        if self._schedule is not None:
            self._schedule.begin(name)

    def expect(self, name: str, seconds: float) -> None:
        """What a phase that comes will take."""
        if self._schedule is not None:
            self._schedule.expect(name, seconds)

    def took_s(self, name: str) -> float | None:
        """What a phase took that is over; None where that is not known."""
        return self._schedule.durations().get(name) if self._schedule is not None else None

    def block(self, number: int, total: int, left_s: float, then_s: float = 0.0) -> None:
        """Block `number` of `total` begins.

        Args:
          number, total: which one, and how many there are.
          left_s: seconds until the last one is over.
          then_s: seconds of what comes after them.
        """
        if self._schedule is not None:
            self._schedule.expect(BLOCKS, left_s)
            left_s = self._schedule.left_s()
        else:
            left_s += then_s
        in_a_log = self._show is True and self._output is None and not self._rewrites
        now = time.monotonic()
        if now - self._shown_s < (_LOG_EVERY_S if in_a_log else _SHOW_EVERY_S):
            return
        self._shown_s = now
        text = f"Block {number} of {total}, {math.ceil(left_s)}\u00a0s left"
        self._write(text, _evidence_words(self._evidence))

    def evidence(self, said: Sequence[Evidence]) -> None:
        """What the blocks so far say; the lines that come have it."""
        self._evidence = tuple(said)

    def machine(self, words: str) -> None:
        """What else the machine is busy with, a sentence; "" where it is quiet."""
        self._machine = words
        if words:
            self.phase(words)

    @property
    def is_busy(self) -> bool:
        """Whether the machine was busy when the experiment began."""
        return bool(self._machine)

    def end(self) -> None:
        """The experiment is over: a line that is rewritten is wiped."""
        self._users -= 1
        if self._users:
            return
        if self._schedule is not None:
            self._schedule.end()
        if self._output is not None:
            self._output("")
        elif self._rewrites:
            _stderr("\r\x1b[K")

    def _wait_words(self) -> str:
        """How long all will take from now on, where that is known."""
        left_s = self._schedule.left_s() if self._schedule is not None else 0.0
        return f"about {left_s:.0f}\u00a0s left" if left_s >= _SAID_S else ""

    def _write(self, text: str, more: str) -> None:
        if callable(self._show):
            self._show(ProgressLine(text, self._state()))
            return
        words = f"{text} · {more}" if more else text
        if self._output is not None:
            self._output(words)
        elif self._rewrites:
            _stderr(f"\r\x1b[K{words}")
        elif self._show:
            _stderr(f"{words}\n")

    def _state(self) -> ProgressState:
        schedule = self._schedule
        return ProgressState(
            phase=schedule.now if schedule else "",
            phases=schedule.phases() if schedule else (),
            share=schedule.share() if schedule else None,
            left_s=schedule.left_s() if schedule else None,
            evidence=self._evidence,
            machine=self._machine,
        )


def _evidence_words(evidence: Sequence[Evidence]) -> str:
    """The ratios so far, as far as they fit into a line."""
    said = [
        f"{each.label} {each.interval.value:.2f}×"
        + (
            f" ({each.interval.low:.2f}–{each.interval.high:.2f})"
            if each.interval.high < math.inf
            else ""
        )
        for each in evidence[:_MOST_RATIOS]
        if math.isfinite(each.interval.value)
    ]
    return ", ".join(said)


def _stderr(text: str) -> None:
    # A process without a console has none.
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _notebook_output() -> Callable[[str], None] | None:
    """Shows a text in the running cell, in place of the one before; None outside of notebooks.

    A notebook paints stderr red, as if something had failed.
    """
    if getattr(running_shell(), "kernel", None) is None:
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

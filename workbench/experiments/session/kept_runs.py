"""KeptRuns: the runs of a session as the user has them, and the changes that can be taken back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from workbench.errors import OptionError
from workbench.experiments.session.history import History
from workbench.experiments.session.run import Run
from workbench.experiments.session.run_edits import RunEdits


class KeptRuns:
    """Runs that were measured, with the user's words, without those that were deleted.

    Attributes:
      runs: as the user has them, the oldest first.
      edits: what makes them so.
    """

    def __init__(self, measured: Sequence[Run]) -> None:
        """These runs, of which none is deleted."""
        self._measured = tuple(measured)
        self._lock = threading.Lock()
        self._history: History[RunEdits] = History()
        self.runs, self.edits = self._measured, RunEdits()

    def numbered(self, number: int) -> Run:
        """The run of a number.

        Raises:
          OptionError: there is none, or it was deleted.
        """
        for run in self.runs:
            if run.number == number:
                return run
        numbers = ", ".join(str(run.number) for run in self.runs) or "none"
        raise OptionError(f"there is no run {number!r}; expected one of {numbers}")

    def add(self, make: Callable[[tuple[Run, ...], int], tuple[Run, ...]]) -> tuple[Run, ...]:
        """Keeps more runs.

        Args:
          make: makes them from those so far and the largest number that a run has had.
        """
        with self._lock:
            last = max((run.number for run in self._measured), default=0)
            new = make(self.runs, last)
            self._measured += new
            self.runs += new
        return new

    def edit(self, change: Callable[[RunEdits], RunEdits]) -> None:
        """Has other words and deletions in the place of those that are; a change.

        Args:
          change: makes them from those that are, while no other thread changes them.
        """
        with self._lock:
            edits = change(self.edits)
            self._history.changed(self.edits)
            self._apply(edits)

    def undo(self) -> bool:
        """Takes back the last change; returns whether there was one."""
        with self._lock:
            possible = self._history.can_undo
            self._apply(self._history.undo(self.edits))
        return possible

    def redo(self) -> bool:
        """Does again what was taken back last; returns whether there was anything."""
        with self._lock:
            possible = self._history.can_redo
            self._apply(self._history.redo(self.edits))
        return possible

    def _apply(self, edits: RunEdits) -> None:
        self.edits, self.runs = edits, edits.applied(self._measured)

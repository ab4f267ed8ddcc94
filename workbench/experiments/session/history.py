"""History: states that were, to go back to and forth again."""

from __future__ import annotations

from typing import Generic, TypeVar

State = TypeVar("State")

_MOST = 100


class History(Generic[State]):
    """The states before a change, and those that an undo has left, of any kind."""

    def __init__(self) -> None:
        """No change yet."""
        self._before: list[State] = []
        self._after: list[State] = []

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        """Whether there is a change that was taken back."""
        return bool(self._after)

    def changed(self, before: State) -> None:
        """Something changed; what was taken back before cannot come again.

        Args:
          before: the state until then.
        """
        self._before = [*self._before, before][-_MOST:]
        self._after.clear()

    def undo(self, now: State) -> State:
        """The state before the last change, which stays to be done again.

        Args:
          now: the state that is left; it is returned where nothing changed.
        """
        return _step(self._before, self._after, now)

    def redo(self, now: State) -> State:
        """The state that the last undo left; `now` where there was none."""
        return _step(self._after, self._before, now)


def _step(source: list[State], other: list[State], now: State) -> State:
    if not source:
        return now
    other.append(now)
    return source.pop()

"""StepLimit: so many steps run at one time, and those that wait go in the order they came."""

from __future__ import annotations

import collections
import threading


class StepLimit:
    """Lets a number of threads in; others wait, first come, first served.

    A thread that leaves hands its place to the one that waits longest.
    """

    def __init__(self, most: int) -> None:
        """Lets `most` threads in at one time."""
        self._free = most
        self._waiting: collections.deque[threading.Lock] = collections.deque()
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Waits for a place."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def leave(self) -> None:
        """Gives the place back."""
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            turn = self._waiting.popleft()
        turn.release()


class NoLimit:
    """Lets every thread in."""

    def enter(self) -> None:
        """Returns at once."""

    def leave(self) -> None:
        """Returns at once."""

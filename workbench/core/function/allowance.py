"""Allowance: how many batches producers may read, where an epoch's end must not be read beyond."""

from __future__ import annotations

import threading


class Allowance:
    """Lets producers read the batches of an epoch once its first step is there to take one."""

    def __init__(self, epoch_steps: int) -> None:
        """`epoch_steps`: how many batches the steps of an epoch take."""
        self._epoch_steps = epoch_steps
        self._steps = 0
        self._left = threading.Semaphore(0)

    def step(self) -> None:
        """Notes a step, before it takes its batch; one thread alone calls it."""
        if self._steps % self._epoch_steps == 0:
            self._left.release(self._epoch_steps)
        self._steps += 1

    def take(self) -> None:
        """Waits until one more batch may be read."""
        self._left.acquire()

    def give(self, count: int = 1) -> None:
        """Allows some more: for a batch that was skipped, or to end what waits."""
        self._left.release(count)

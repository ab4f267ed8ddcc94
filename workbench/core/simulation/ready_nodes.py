"""Ready nodes: which of them a thread runs next."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import numpy as np


class ReadyNodes(Protocol):
    """Nodes that wait for nothing but a thread."""

    def add(self, thread: int | None, nodes: Sequence[int], /) -> None:
        """Takes in what a thread has made ready; None made ready what a step begins with."""

    def take(self, thread: int, /) -> int | None:
        """The node that this thread runs next; None when there is none for it."""


class KeepingShort:
    """As TensorFlow's executor: a thread keeps the short nodes that it makes ready to itself.

    The long ones are for any thread, but the last one, which it runs next when it keeps no other.
    """

    def __init__(self, span_ns: np.ndarray, threads: int, short_ns: float) -> None:
        self._short = (span_ns <= short_ns).tolist()
        self._kept: list[deque[int]] = [deque() for _ in range(threads)]
        self._shared: deque[int] = deque()

    def add(self, thread: int | None, nodes: Sequence[int], /) -> None:
        """See `ReadyNodes`."""
        if thread is None:
            self._shared.extend(nodes)
            return
        kept = self._kept[thread]
        last: int | None = None
        for node in nodes:
            if self._short[node]:
                kept.append(node)
                continue
            if last is not None:
                self._shared.append(last)
            last = node
        if last is not None:
            (self._shared if kept else kept).append(last)

    def take(self, thread: int, /) -> int | None:
        """See `ReadyNodes`."""
        for nodes in (self._kept[thread], self._shared):
            if nodes:
                return nodes.popleft()
        return None


class ByPath:
    """The node with the longest path behind it goes first, to whichever thread is free."""

    def __init__(self, path_ns: Sequence[float]) -> None:
        self._path_ns = path_ns
        self._nodes: list[tuple[float, int]] = []

    def add(self, _thread: int | None, nodes: Sequence[int], /) -> None:
        """See `ReadyNodes`."""
        for node in nodes:
            heapq.heappush(self._nodes, (-self._path_ns[node], node))

    def take(self, _thread: int, /) -> int | None:
        """See `ReadyNodes`."""
        return heapq.heappop(self._nodes)[1] if self._nodes else None

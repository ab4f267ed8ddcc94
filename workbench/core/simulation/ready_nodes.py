"""Ready nodes: which of them a thread runs next."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import numpy as np

# A thread shares what it keeps once that is so many batches.
_SHARED_BATCHES = 4


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
    """As the cost model executor: of long nodes that with the longest path behind it goes first.

    A thread keeps the short nodes that it makes ready, until one with a longer path waits. From a
    thread that keeps many, one that has none takes half.
    """

    def __init__(
        self, path_ns: Sequence[float], span_ns: np.ndarray, threads: int, short_ns: float
    ) -> None:
        self._path_ns = path_ns
        self._span_ns = span_ns.tolist()
        self._short_ns = short_ns
        self._common: list[tuple[float, int]] = []
        self._kept: list[list[tuple[float, int]]] = [[] for _ in range(threads)]
        # What a thread has run since it last gave way to another one's node.
        self._since_ns = [0.0] * threads

    def add(self, thread: int | None, nodes: Sequence[int], /) -> None:
        """See `ReadyNodes`."""
        kept = self._common if thread is None else self._kept[thread]
        for node in nodes:
            heap = kept if self._span_ns[node] <= self._short_ns else self._common
            heapq.heappush(heap, (-self._path_ns[node], node))

    def take(self, thread: int, /) -> int | None:
        """See `ReadyNodes`."""
        kept = self._kept[thread]
        if kept and self._since_ns[thread] > self._short_ns:
            self._since_ns[thread] = 0.0
            if self._common and self._common[0] < kept[0]:
                self._common += kept
                heapq.heapify(self._common)
                kept.clear()
        if not kept and not self._common:
            kept.extend(self._taken_from_others())
        if not kept and not self._common:
            return None
        node = heapq.heappop(kept or self._common)[1]
        self._since_ns[thread] += self._span_ns[node]
        return node

    def _taken_from_others(self) -> list[tuple[float, int]]:
        """Half of what one thread keeps that has several batches of it."""
        for other in self._kept:
            if sum(self._span_ns[node] for _, node in other) > _SHARED_BATCHES * self._short_ns:
                other.sort()
                taken = other[len(other) // 2 :]
                del other[len(other) // 2 :]
                return taken
        return []

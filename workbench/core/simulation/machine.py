"""Machine: cores and an inter-op pool in simulated time, shared by threads that work and wait.

Threads that work at one moment are slowed alike when together they could use more cores than there
are. Waiting takes no core.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections import deque
from collections.abc import Iterator
from typing import Any

# A kernel that packs goes by the CPU time of the last moments, with a half-life of 32 ms (Linux'
# per-entity load tracking): it uses one core, and another one for each _FULL cores' worth of that
# time; threads that share a core meanwhile need _CROWDED times the CPU time. Fitted to two DLRMs of
# 23 ms a step, 2 cores, with 22 ms of wait before each step: 50 and 55 ms a step, 8 to 10 % more
# CPU time.
MEMORY_NS = 32e6 / math.log(2)
_FULL, _CROWDED = 0.715, 1.2
# Where several threads work for a millisecond or less and wait for one another in between, such a
# kernel wakes them on cores that others use: 3 threads of a C program that worked for 1 ms and
# slept for 0.3 ms used 1.38 to 1.55 of 2 cores, 4 of 0.2 and 0.1 ms 1.48, two that never slept 2.0.
_SPREAD = 0.78
_NOTHING_NS = 1e-6

# A thread, as (kind, what) of each thing that it does next: "take" and "put" with a Buffer, "wait"
# with ns, "work" with a work and its scale, "step" when a step has ended.
Actor = Iterator[tuple[str, Any]]


@dataclasses.dataclass(eq=False)
class Buffer:
    """A bounded buffer, and the threads that wait at it."""

    capacity: int
    held: int = 0
    takers: deque[Actor] = dataclasses.field(default_factory=deque)
    putters: deque[Actor] = dataclasses.field(default_factory=deque)


@dataclasses.dataclass(eq=False, slots=True)
class _Piece:
    """A piece of work under way, and those after it: what is left of it at full speed."""

    actor: Actor
    pieces: Iterator[tuple[float, float, float]]
    scale: float
    left_ns: float = 0.0
    ops: float = 0.0
    cores: float = 0.0

    def begin_next(self) -> bool:
        """Takes up the next piece; False when there is none."""
        for length, ops, cores in self.pieces:
            self.left_ns, self.ops, self.cores = length * self.scale, ops, cores
            if self.left_ns > _NOTHING_NS:
                return True
        return False


class Machine:
    """Time, cores and the inter-op pool; runs actors until they wait for something.

    Attributes:
      now: ns since the begin.
      used_ns: CPU time of all threads so far.
      ready: actors that wait for nothing.
    """

    def __init__(self, cores: int, pool: int, packs: bool) -> None:
        """Nothing runs yet; the arguments are those of `simulate`."""
        self.now = 0.0
        self.used_ns = 0.0
        self.ready: deque[Actor] = deque()
        self._cores = cores
        self._pool = pool
        self._packs = packs
        self._used_lately = 0.0
        self._steps = 0
        self._number = 0
        self._working: list[_Piece] = []
        self._asleep: list[tuple[float, int, Actor]] = []

    def run_steps(self, count: int) -> None:
        """Goes on until `count` more steps have ended."""
        wanted = self._steps + count
        while self._steps < wanted:
            if self.ready:
                self._resume(self.ready.popleft())
            else:
                self._advance()

    def _resume(self, actor: Actor) -> None:
        for kind, what in actor:
            if kind == "take":
                if not self._take(what):
                    what.takers.append(actor)
                    return
            elif kind == "put":
                if not self._put(what):
                    what.putters.append(actor)
                    return
            elif kind == "wait":
                self._number += 1
                heapq.heappush(self._asleep, (self.now + what, self._number, actor))
                return
            elif kind == "step":
                self._steps += 1
                # The others first: a step that costs nothing must not run for ever.
                self.ready.append(actor)
                return
            else:
                begun = _Piece(actor, iter(what[0].pieces), what[1])
                if begun.begin_next():
                    self._working.append(begun)
                    return

    def _take(self, buffer: Buffer) -> bool:
        if not buffer.held:
            return False
        if buffer.putters:
            self.ready.append(buffer.putters.popleft())
        else:
            buffer.held -= 1
        return True

    def _put(self, buffer: Buffer) -> bool:
        if buffer.takers:
            self.ready.append(buffer.takers.popleft())
        elif buffer.held < buffer.capacity:
            buffer.held += 1
        else:
            return False
        return True

    def _advance(self) -> None:
        """Goes to the next moment at which a piece of work or a wait ends."""
        pooled, beside, used = self._speeds()
        lasts = self._asleep[0][0] - self.now if self._asleep else math.inf
        for piece in self._working:
            lasts = min(lasts, piece.left_ns / (pooled if piece.ops else beside))
        if self._packs:
            lasts = self._remember(lasts, used)
        self.now += lasts
        self.used_ns += lasts * used
        still = []
        for piece in self._working:
            piece.left_ns -= lasts * (pooled if piece.ops else beside)
            if piece.left_ns > _NOTHING_NS or piece.begin_next():
                still.append(piece)
            else:
                self.ready.append(piece.actor)
        self._working = still
        while self._asleep and self._asleep[0][0] <= self.now + _NOTHING_NS:
            self.ready.append(heapq.heappop(self._asleep)[2])

    def _speeds(self) -> tuple[float, float, float]:
        """How fast work in the pool and beside it goes on, 1 is as alone; and cores in use."""
        ops = in_pool = beside = 0.0
        for piece in self._working:
            if piece.ops:
                ops += piece.ops
                in_pool += piece.cores
            else:
                beside += piece.cores
        pooled = min(1.0, self._pool / ops) if ops else 1.0
        wanted = in_pool * pooled + beside
        awake = self._cores
        if self._packs:
            awake = min(awake, 1 + int(self._used_lately / _FULL))
        spread = self._packs and awake > 1 and len(self._working) > 1
        cores = awake * _SPREAD if spread else awake
        share = min(1.0, cores / wanted) if wanted else 1.0
        used = wanted * share
        if share < 1.0 and awake < self._cores:
            share /= _CROWDED
        return pooled * share, share, used

    def _remember(self, lasts: float, used: float) -> float:
        """Keeps the mean of cores in use; ends earlier when it reaches the next core's level."""
        level = _FULL * (1 + int(self._used_lately / _FULL))
        if used > level:
            reached = -MEMORY_NS * math.log((used - level) / (used - self._used_lately))
            lasts = min(lasts, reached + 1.0)
        kept = math.exp(-lasts / MEMORY_NS)
        self._used_lately = used + (self._used_lately - used) * kept
        return lasts

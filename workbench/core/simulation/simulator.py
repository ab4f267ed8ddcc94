"""Simulator: a pipeline in simulated time → how long a step takes, and how much CPU time.

Cores are shared: threads that work at one moment are slowed alike when together they could use more
than there are. Waiting takes no core.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from workbench.core.simulation.pipeline import Input, Pipeline, PipelineStage

# Steps until the steady state, beyond those that fill the buffers; and steps that count.
_WARM_UP, _COUNTED, _MOST_COUNTED = 6, 30, 120
# A kernel that packs goes by the CPU time of the last moments, with a half-life of 32 ms (Linux'
# per-entity load tracking): it uses one core, and another one for each _FULL cores' worth of that
# time; threads that share a core meanwhile need _CROWDED times the CPU time. Fitted to two DLRMs of
# 23 ms a step, 2 cores, with 22 ms of wait before each step: 50 and 55 ms a step, 8 to 10 % more
# CPU time.
_MEMORY_NS = 32e6 / math.log(2)
_FULL, _CROWDED = 0.715, 1.2
# Where several threads work for a millisecond or less and wait for one another in between, such a
# kernel wakes them on cores that others use: 3 threads of a C program that worked for 1 ms and
# slept for 0.3 ms used 1.38 to 1.55 of 2 cores, 4 of 0.2 and 0.1 ms 1.48, two that never slept 2.0.
_SPREAD = 0.78
_SETTLED_NS = 5 * _MEMORY_NS
_MOST_WARM_UP = 300
_NOTHING_NS = 1e-6

_Actor = Iterator[tuple[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Simulated:
    """A step in the steady state, on average.

    Attributes:
      step_ns: from the end of one step to that of the next.
      cpu_ns: CPU time of all threads meanwhile.
    """

    step_ns: float
    cpu_ns: float


def simulate(pipeline: Pipeline, *, cores: int, pool: int, packs: bool = False) -> Simulated:
    """Runs a pipeline until its steady state, then counts steps.

    Args:
      pipeline: what is run.
      cores: that all share.
      pool: inter-op threads: the most ops that run at one time, of all stages together.
      packs: the machine keeps a process that mostly waits on few cores, so that its threads have
        to share them for a while after each wait.
    """
    if not any(stage.item_ns > 0 for stage in pipeline.all_stages):
        return Simulated(step_ns=0.0, cpu_ns=0.0)
    machine = _Machine(cores, pool, packs)
    _start(machine, pipeline)
    machine.run_steps(_warm_up(pipeline, cores, pool, packs))
    begun, used = machine.now, machine.used_ns
    count = _counted(pipeline)
    machine.run_steps(count)
    return Simulated(
        step_ns=(machine.now - begun) / count,
        cpu_ns=(machine.used_ns - used) / count,
    )


def _counted(pipeline: Pipeline) -> int:
    """Steps to count: what comes round, comes round as a whole, if that is not for ever."""
    cycles = [len(pipeline.step_scales)]
    cycles += [len(each.waits_ns) for stage in pipeline.all_stages for each in stage.inputs]
    whole = math.lcm(*cycles)
    rounds = math.ceil(_COUNTED / whole) if whole <= _MOST_COUNTED else 0
    return (rounds * whole or max(cycles)) * pipeline.step.threads


def _warm_up(pipeline: Pipeline, cores: int, pool: int, packs: bool) -> int:
    """Steps until the steady state."""
    steps = _WARM_UP + sum(stage.capacity + stage.threads for stage in pipeline.stages)
    if packs:
        least = max(pipeline.bounds(cores=cores, pool=pool).values())
        steps = max(steps, min(_MOST_WARM_UP, math.ceil(_SETTLED_NS / least)))
    return steps


@dataclasses.dataclass(eq=False)
class _Buffer:
    """A bounded buffer, and the threads that wait at it."""

    capacity: int
    held: int = 0
    takers: deque[_Actor] = dataclasses.field(default_factory=deque)
    putters: deque[_Actor] = dataclasses.field(default_factory=deque)


class _Cycle:
    """Values one after the other, over and over."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = values
        self._next = 0

    def next(self) -> float:
        value = self._values[self._next]
        self._next = (self._next + 1) % len(self._values)
        return value


class _Getter:
    """How the threads that share an input get its items."""

    def __init__(self, machine: _Machine, each: Input) -> None:
        self.input = each
        self.waits = _Cycle(each.waits_ns)
        # A token: the thread that holds it may ask the input.
        self.turn = _Buffer(1, held=1)
        self.filled = _Buffer(1) if each.ahead else None
        if self.filled:
            machine.ready.append(self._fill(self.filled))

    def _fill(self, filled: _Buffer) -> _Actor:
        while True:
            yield "wait", self.waits.next()
            yield "work", (self.input.work, 1.0)
            yield "put", filled


def _start(machine: _Machine, pipeline: Pipeline) -> None:
    """Hands the machine one actor for each thread of each stage."""
    buffers = [_Buffer(stage.capacity) for stage in pipeline.stages]
    for stage, buffer in zip(pipeline.all_stages, [*buffers, None], strict=True):
        getters = [_Getter(machine, each) for each in stage.inputs]
        taken = [buffers[number] for number in stage.after]
        scales = _Cycle(pipeline.step_scales)
        for _ in range(stage.threads):
            machine.ready.append(_thread(stage, getters, taken, buffer, scales))


def _thread(
    stage: PipelineStage,
    getters: Sequence[_Getter],
    taken: Sequence[_Buffer],
    buffer: _Buffer | None,
    scales: _Cycle,
) -> _Actor:
    while True:
        for each in taken:
            yield "take", each
        yield from _get(getters)
        yield "work", (stage.work, scales.next())
        yield ("put", buffer) if buffer else ("step", None)


def _get(getters: Sequence[_Getter]) -> _Actor:
    """One item of each input; of those that wait when asked the longest wait counts."""
    asked = [each for each in getters if not each.filled]
    for each in asked:
        yield "take", each.turn
    if asked:
        yield "wait", max(each.waits.next() for each in asked)
    for each in asked:
        yield "work", (each.input.work, 1.0)
        yield "put", each.turn
    for each in getters:
        if each.filled:
            yield "take", each.filled


@dataclasses.dataclass(eq=False, slots=True)
class _Piece:
    """A piece of work under way, and those after it: what is left of it at full speed."""

    actor: _Actor
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


class _Machine:
    """Time, cores and the inter-op pool; runs actors until they wait for something."""

    def __init__(self, cores: int, pool: int, packs: bool) -> None:
        self.now = 0.0
        self.used_ns = 0.0
        self.ready: deque[_Actor] = deque()
        self._cores = cores
        self._pool = pool
        self._packs = packs
        self._used_lately = 0.0
        self._steps = 0
        self._number = 0
        self._working: list[_Piece] = []
        self._asleep: list[tuple[float, int, _Actor]] = []

    def run_steps(self, count: int) -> None:
        """Goes on until `count` more steps have ended."""
        wanted = self._steps + count
        while self._steps < wanted:
            if self.ready:
                self._resume(self.ready.popleft())
            else:
                self._advance()

    def _resume(self, actor: _Actor) -> None:
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

    def _take(self, buffer: _Buffer) -> bool:
        if not buffer.held:
            return False
        if buffer.putters:
            self.ready.append(buffer.putters.popleft())
        else:
            buffer.held -= 1
        return True

    def _put(self, buffer: _Buffer) -> bool:
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
            reached = -_MEMORY_NS * math.log((used - level) / (used - self._used_lately))
            lasts = min(lasts, reached + 1.0)
        kept = math.exp(-lasts / _MEMORY_NS)
        self._used_lately = used + (self._used_lately - used) * kept
        return lasts

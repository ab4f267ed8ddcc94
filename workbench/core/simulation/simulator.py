"""Simulator: a pipeline in simulated time → how long a step takes, and how much CPU time.

Each thread of the pipeline is an actor; the machine on which they run is `machine`'s.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from workbench.core.simulation.machine import MEMORY_NS, Actor, Buffer, Machine
from workbench.core.simulation.pipeline import Input, Pipeline, PipelineStage, Work

# Steps until the steady state, beyond those that fill the buffers; and steps that count.
_WARM_UP, _COUNTED, _MOST_COUNTED = 6, 30, 120
_SETTLED_NS = 5 * MEMORY_NS
_MOST_WARM_UP = 300


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
    machine = Machine(cores, pool, packs)
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

    def __init__(self, machine: Machine, each: Input) -> None:
        self.input = each
        self.waits = _Cycle(each.waits_ns)
        # A token: the thread that holds it may ask the input.
        self.turn = Buffer(1, held=1)
        self.filled = Buffer(1) if each.ahead else None
        if self.filled:
            machine.ready.append(self._fill(self.filled))

    def _fill(self, filled: Buffer) -> Actor:
        while True:
            yield "wait", self.waits.next()
            yield "work", (self.input.work, 1.0)
            yield "put", filled


class _Beside:
    """What a thread computes while it gets its items."""

    def __init__(self, machine: Machine, work: Work) -> None:
        self.scale = 1.0
        self.begun, self.ended = Buffer(1), Buffer(1)
        machine.ready.append(self._run(work))

    def _run(self, work: Work) -> Actor:
        while True:
            yield "take", self.begun
            yield "work", (work, self.scale)
            yield "put", self.ended


def _start(machine: Machine, pipeline: Pipeline) -> None:
    """Hands the machine one actor for each thread of each stage."""
    buffers = [Buffer(stage.capacity) for stage in pipeline.stages]
    for stage, buffer in zip(pipeline.all_stages, [*buffers, None], strict=True):
        getters = [_Getter(machine, each) for each in stage.inputs]
        taken = [buffers[number] for number in stage.after]
        scales = _Cycle(pipeline.step_scales)
        for _ in range(stage.threads):
            beside = _Beside(machine, stage.beside) if stage.beside.pieces else None
            machine.ready.append(_thread(stage, getters, taken, buffer, scales, beside))


def _thread(
    stage: PipelineStage,
    getters: Sequence[_Getter],
    taken: Sequence[Buffer],
    buffer: Buffer | None,
    scales: _Cycle,
    beside: _Beside | None,
) -> Actor:
    while True:
        for each in taken:
            yield "take", each
        scale = scales.next()
        if beside:
            beside.scale = scale
            yield "put", beside.begun
        yield from _get(getters)
        if beside:
            yield "take", beside.ended
        yield "work", (stage.work, scale)
        yield ("put", buffer) if buffer else ("step", None)


def _get(getters: Sequence[_Getter]) -> Actor:
    """One item of each input; of those that wait when asked the longest wait counts."""
    waiting = [getter for getter in getters if not getter.filled]
    for getter in waiting:
        yield "take", getter.turn
    if waiting:
        yield "wait", max(getter.waits.next() for getter in waiting)
    for getter in waiting:
        yield "work", (getter.input.work, 1.0)
        yield "put", getter.turn
    for getter in getters:
        if getter.filled:
            yield "take", getter.filled

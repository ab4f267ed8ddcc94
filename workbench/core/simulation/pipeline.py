"""Pipeline: stages and the step behind them, as work, waits and buffers; no graph, no trace."""

from __future__ import annotations

import dataclasses

# Names of what may bound a step, besides a stage.
STEP, CORES, INPUT, POOL = "the step", "the cores", "the input", "the inter-op threads"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Work:
    """What a side computes for one item, as it would run alone.

    Attributes:
      pieces: (ns, ops, cores): how long each lasts, how many ops run in it, and how many cores
        they use. Ops are 0 for work outside the inter-op pool.
    """

    pieces: tuple[tuple[float, float, float], ...] = ()

    @property
    def alone_ns(self) -> float:
        """Time that it takes alone."""
        return sum(length for length, _, _ in self.pieces)

    @property
    def cpu_ns(self) -> float:
        """Time of one core that it takes."""
        return sum(length * cores for length, _, cores in self.pieces)

    @property
    def pool_ns(self) -> float:
        """Time of one inter-op thread that it takes."""
        return sum(length * ops for length, ops, _ in self.pieces)

    def longer(self, by: float) -> Work:
        """The same work, spread over `by` times the time."""
        return Work(pieces=tuple((ns * by, ops / by, cores / by) for ns, ops, cores in self.pieces))

    def then(self, after: Work) -> Work:
        """This, then that."""
        return Work(pieces=(*self.pieces, *after.pieces))


def outside_ops(ns: float, cores: float = 1.0) -> Work:
    """Work of a thread that is none of the inter-op pool."""
    return Work(pieces=((ns, 0.0, cores),) if ns > 0 else ())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Input:
    """What delivers the items, to one caller at a time; others stand in stage.

    Attributes:
      waits_ns: how long one item waits without a core, item by item, then from the first again.
      work: of one item, after its wait.
      ahead: whether it waits and works while nobody asks, an item or two ahead; else it does so
        when asked.
    """

    waits_ns: tuple[float, ...] = (0.0,)
    work: Work = dataclasses.field(default_factory=Work)
    ahead: bool = False

    def scaled(self, by: float) -> Input:
        """The same that waits and works `by` times as long."""
        pieces = tuple((ns * by, ops, cores) for ns, ops, cores in self.work.pieces)
        waits = tuple(ns * by for ns in self.waits_ns)
        return dataclasses.replace(self, waits_ns=waits, work=Work(pieces=pieces))

    @property
    def wait_ns(self) -> float:
        """Mean wait of one item."""
        return sum(self.waits_ns) / len(self.waits_ns)

    @property
    def item_ns(self) -> float:
        """Mean time from one item to the next when somebody always asks."""
        return self.wait_ns + self.work.alone_ns


@dataclasses.dataclass(frozen=True, kw_only=True)
class PipelineStage:
    """A stage, or the step: threads that get an item, work on it, and hand it on.

    Attributes:
      name: what it is called as a bound.
      work: for one item.
      inputs: what an item is made of; waited for at the same time.
      beside: what it computes for the item while it waits for these.
      after: numbers of the stages whose buffers it takes from.
      threads: how many get and work; of the step, its clients.
      capacity: items that its buffer holds.
    """

    name: str
    work: Work
    inputs: tuple[Input, ...] = ()
    beside: Work = dataclasses.field(default_factory=Work)
    after: tuple[int, ...] = ()
    threads: int = 1
    capacity: int = 1

    @property
    def item_ns(self) -> float:
        """Mean time that one thread takes for an item when it waits for no other stage."""
        asked = [each.item_ns for each in self.inputs if not each.ahead]
        return self.work.alone_ns + max(*asked, self.beside.alone_ns, 0.0)

    @property
    def cpu_ns(self) -> float:
        """CPU time of one item, without that of its inputs."""
        return self.work.cpu_ns + self.beside.cpu_ns

    @property
    def pool_ns(self) -> float:
        """Time of one inter-op thread that an item takes."""
        return self.work.pool_ns + self.beside.pool_ns


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Stages and the step.

    Attributes:
      stages: each stands after those that it takes from.
      step: takes from the last ones.
      step_scales: work of each step against the mean, step by step, then from the first again.
    """

    stages: tuple[PipelineStage, ...]
    step: PipelineStage
    step_scales: tuple[float, ...] = (1.0,)

    @property
    def all_stages(self) -> tuple[PipelineStage, ...]:
        """The stages and the step."""
        return (*self.stages, self.step)

    @property
    def cpu_ns(self) -> float:
        """CPU time in a step, of all stages and inputs."""
        inputs = (each.work for stage in self.all_stages for each in stage.inputs)
        return sum(stage.cpu_ns for stage in self.all_stages) + sum(each.cpu_ns for each in inputs)

    def bounds(self, *, cores: float, pool: int) -> dict[str, float]:
        """The least time of a step, in ns, that each part by itself allows, whatever the buffers.

        Args:
          cores: of the machine.
          pool: inter-op threads.
        """
        bounds = {stage.name: stage.item_ns / stage.threads for stage in self.all_stages}
        # One caller at a time: threads of a stage do not make an input faster.
        shared = [each.item_ns for stage in self.stages for each in stage.inputs]
        shared += [each.item_ns for each in self.step.inputs if each.ahead or self.step.threads > 1]
        if shared:
            bounds[INPUT] = max(shared)
        bounds[CORES] = self.cpu_ns / cores
        bounds[POOL] = sum(stage.pool_ns for stage in self.all_stages) / pool
        return bounds

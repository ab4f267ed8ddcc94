"""Racer: a setting whose session is open, and what its blocks measured."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from workbench.experiments.measurement.blocks import TimedSession, run_pilots
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import counted_steps, dropped_steps
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.wire.messages import Opened

# Seconds for warming a session up and for its pilot, beside what its executor has to learn.
PILOT_S = 1.5


@dataclasses.dataclass(kw_only=True)
class Racer:
    """A setting whose session is open.

    Attributes:
      variant: the setting, with its plan.
      worker: its child process, whose session "main" is measured.
      opened: what is known of its graph.
      timed: its session, as blocks are run.
      step_ns: time of a step, from its pilot.
      steps, dropped: of each of its blocks, and of them those that do not count.
      step_times: times of counted steps, ns, a block each.
    """

    variant: Variant
    worker: Worker
    opened: Opened
    timed: TimedSession
    step_ns: float = 0.0
    steps: int = 0
    dropped: int = 0
    step_times: list[np.ndarray] = dataclasses.field(default_factory=list)

    @property
    def block_s(self) -> float:
        """Seconds of a block, about."""
        return self.steps * self.step_ns / 1e9

    def warm_up(self) -> None:
        """Runs its first steps, and settles how many a block has.

        Raises:
          RunError: a step failed.
        """
        (pilot,) = run_pilots([self.timed], budget_s=2 * PILOT_S, progress=Progress(False))
        self.step_ns = pilot.step_ns
        self.dropped = dropped_steps(pilot.step_ns, self.timed.ahead)
        self.steps = self.dropped + counted_steps(pilot.step_ns)


@contextlib.contextmanager
def answers_within(workers: Sequence[Worker], seconds: float) -> Iterator[None]:
    """Ends each of these processes that is still to answer after so many seconds from now."""
    for worker in workers:
        worker.deadline_s = time.monotonic() + seconds
    try:
        yield
    finally:
        for worker in workers:
            worker.deadline_s = math.inf

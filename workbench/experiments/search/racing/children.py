"""Children: the child processes in which settings race, and the memory that they take."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence

from workbench.core.optimizations import Optimizations
from workbench.errors import WorkbenchError
from workbench.experiments.measurement.time_budget import START_S
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.program.variant import MOST_ENVIRONMENTS, environment_of
from workbench.experiments.worker.memory_use import resident_bytes
from workbench.experiments.worker.process import CANCELLED, Worker
from workbench.experiments.worker.warm_python import WarmPython, warm_python
from workbench.experiments.worker.wire.messages import Close

# What a child takes before anything is known of the program, and a process that imports TensorFlow.
_CHILD_BYTES, _WARM_BYTES = 500_000_000, 400_000_000
# Seconds that a child has for closing a session; one that takes longer is ended.
_CLOSE_S = 10.0


class Children:
    """Child processes of one program: started ahead, lent to a setting, used again.

    A process whose setting is out is lent to another one; not where numbers of threads are set or
    choices of toggles, which may be those of a process, nor for a `FunctionProgram`, whose
    variables and functions live in it. Each other environment than the baseline's has a process
    that imports TensorFlow.
    """

    def __init__(
        self,
        program: AnyProgram,
        warm: WarmPython,
        limit_bytes: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """No child yet.

        Args:
          program: what they run.
          warm: what forks those of the baseline's environment.
          limit_bytes: what all of them together may take; inf for no limit.
          environment: the baseline's.
        """
        self._program, self._warm = program, warm
        self._limit_bytes = limit_bytes
        self._environment = dict(environment or {})
        self._other_warm: dict[tuple[tuple[str, str], ...], WarmPython] = {}
        self._fresh: list[Worker] = []
        self._idle: list[Worker] = []
        self._lent: list[Worker] = []
        self._seen_bytes = 0
        self.peak_bytes = 0

    @property
    def each_bytes(self) -> int:
        """What one child takes, as far as that is known."""
        return self._seen_bytes or _CHILD_BYTES

    def room(self) -> float:
        """How many more settings can be lent a child."""
        if self._limit_bytes == math.inf:
            return math.inf
        used = self.look()
        # One that has no session yet will take what the others take.
        ready = [*self._fresh, *self._idle]
        growing = sum(max(0, self.each_bytes - resident_bytes(each.pid)) for each in ready)
        free = self._limit_bytes - used - growing
        if free < 0:
            return max(0, len(ready) + math.floor(free / self.each_bytes))
        return len(ready) + int(free // self.each_bytes)

    def look(self) -> int:
        """Bytes that all take now; the most of them is kept as `peak_bytes`."""
        lent = [resident_bytes(each.pid) for each in self._lent]
        used = sum(lent) + sum(resident_bytes(each.pid) for each in (*self._fresh, *self._idle))
        used += sum(resident_bytes(each.pid) for each in self._other_warm.values())
        self._seen_bytes = max([self._seen_bytes, *lent])
        self.peak_bytes = max(self.peak_bytes, used)
        return used

    @property
    def over_limit(self) -> bool:
        """Whether all take more than they may."""
        return self.look() > self._limit_bytes

    def bytes_of(self, worker: Worker) -> int:
        """What one takes now."""
        return resident_bytes(worker.pid)

    def start_ahead(self, count: int) -> None:
        """Starts some that nobody needs yet, without waiting for them."""
        for _ in range(count):
            self._fresh.append(Worker(self._program.name, self._program, self._warm))

    def to_start(self, settings: int) -> int:
        """How many processes have to be started for this number of settings, about."""
        return max(0, settings - len(self._fresh) - len(self._idle))

    def lend(self, wishes: Sequence[tuple[str, Optimizations]]) -> list[Worker]:
        """A child for each (label, setting); those that are missing are started at once.

        Raises:
          RunError: one did not start.
        """
        shared = [self._idle.pop() for each in wishes if self._idle and self._may_share(each[1])]
        apart = sum(not self.is_at_home(setting) for _, setting in wishes)
        self.start_ahead(len(wishes) - len(shared) - apart - len(self._fresh))
        lent, new = [], []
        for label, setting in wishes:
            if shared and self._may_share(setting):
                worker = shared.pop()
            else:
                worker = self._fresh.pop(0) if self.is_at_home(setting) else self._started(setting)
                new.append(worker)
            worker.label = label
            lent.append(worker)
        self._lent += lent
        for worker in new:
            worker.receive()
        return lent

    def give_back(self, worker: Worker, setting: Optimizations) -> None:
        """The setting of a child is out: its session is closed, or its process ends."""
        self._lent.remove(worker)
        worker.deadline_s = time.monotonic() + _CLOSE_S
        if not self._may_share(setting):
            self._end([worker])
            return
        try:
            worker.call(Close(session="main"))
        except WorkbenchError:
            worker.kill()
        else:
            worker.deadline_s = math.inf
            self._idle.append(worker)

    def end_idle(self) -> None:
        """Ends those that are lent to nobody."""
        ended, self._fresh, self._idle = [*self._fresh, *self._idle], [], []
        self._end(ended)

    def is_at_home(self, setting: Optimizations) -> bool:
        """Whether a setting has the environment of the baseline."""
        return environment_of(setting) == self._environment

    def unready(self, setting: Optimizations, seconds: float) -> str:
        """Why no child can be had for a setting in so many seconds, a clause; "" where one can."""
        if self.is_at_home(setting) or _key(setting) in self._other_warm:
            return ""
        if len(self._other_warm) >= MOST_ENVIRONMENTS:
            return (
                f"it needs a process that imports TensorFlow in an environment of its own, and "
                f"there are {MOST_ENVIRONMENTS} already"
            )
        if seconds < START_S:
            return (
                f"it needs a process that imports TensorFlow in an environment of its own, about "
                f"{START_S:.0f} s, and too little time was left"
            )
        if self.look() + _WARM_BYTES + self.each_bytes > self._limit_bytes:
            return (
                f"it needs a process that imports TensorFlow in an environment of its own, about "
                f"{_WARM_BYTES / 1e9:g} GB, for which there is no memory"
            )
        return ""

    def kill(self) -> None:
        """Ends all at once, and what forks for other environments."""
        for worker in (*self._fresh, *self._idle, *self._lent):
            worker.kill()
        for warm in self._other_warm.values():
            warm.close()
        self._other_warm.clear()

    def close(self) -> None:
        """Ends all in good order."""
        self.end_idle()
        ended, self._lent = self._lent, []
        self._end(ended)

    def _started(self, setting: Optimizations) -> Worker:
        """A child with the environment of a setting."""
        key = _key(setting)
        if key not in self._other_warm:
            self._other_warm[key] = WarmPython(dict(key))
        return Worker(self._program.name, self._program, self._other_warm[key])

    def _may_share(self, setting: Optimizations) -> bool:
        of_process = setting.inter_op_threads or setting.intra_op_threads or setting.switched
        return not of_process and not isinstance(self._program, FunctionProgram)

    def _end(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.ask_to_stop()
        for worker in workers:
            worker.stop()


def _key(setting: Optimizations) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(environment_of(setting).items()))


@contextlib.contextmanager
def children_of(
    program: AnyProgram, limit_bytes: float, environment: Mapping[str, str] | None = None
) -> Iterator[Children]:
    """Children of a program; none is left after the block.

    Args:
      program, limit_bytes, environment: as of `Children`.

    Raises:
      KeyboardInterrupt: with the words to show, after every child has ended.
    """
    home = contextlib.closing(WarmPython(environment)) if environment else warm_python()
    with home as warm:
        children = Children(program, warm, limit_bytes, environment)
        try:
            yield children
            children.close()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(CANCELLED) from None
        finally:
            children.kill()

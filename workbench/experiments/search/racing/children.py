"""Children: the child processes in which settings race, and the memory that they take."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

from workbench.core.optimizations import Optimizations
from workbench.errors import WorkbenchError
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.worker.memory_use import resident_bytes
from workbench.experiments.worker.process import CANCELLED, Worker
from workbench.experiments.worker.warm_python import WarmPython, warm_python
from workbench.experiments.worker.wire.messages import Close

# What a child takes before anything is known of the program.
_CHILD_BYTES = 500_000_000


class Children:
    """Child processes of one program: started ahead, lent to a setting, used again.

    A process whose setting is out is lent to another one; not where numbers of threads are set,
    which are those of a process, nor for a `FunctionProgram`, whose variables and functions live in
    it.
    """

    def __init__(self, program: AnyProgram, warm: WarmPython, limit_bytes: float) -> None:
        """No child yet.

        Args:
          program: what they run.
          warm: what forks them.
          limit_bytes: what all of them together may take; inf for no limit.
        """
        self._program, self._warm = program, warm
        self._limit_bytes = limit_bytes
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
        self.start_ahead(len(wishes) - len(shared) - len(self._fresh))
        lent, new = [], []
        for label, setting in wishes:
            if shared and self._may_share(setting):
                worker = shared.pop()
            else:
                worker = self._fresh.pop(0)
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
        if not self._may_share(setting):
            self._end([worker])
            return
        try:
            worker.call(Close(session="main"))
        except WorkbenchError:
            worker.kill()
        else:
            self._idle.append(worker)

    def end_idle(self) -> None:
        """Ends those that are lent to nobody."""
        ended, self._fresh, self._idle = [*self._fresh, *self._idle], [], []
        self._end(ended)

    def kill(self) -> None:
        """Ends all at once."""
        for worker in (*self._fresh, *self._idle, *self._lent):
            worker.kill()

    def close(self) -> None:
        """Ends all in good order."""
        self.end_idle()
        ended, self._lent = self._lent, []
        self._end(ended)

    def _may_share(self, setting: Optimizations) -> bool:
        own_threads = setting.inter_op_threads or setting.intra_op_threads
        return not own_threads and not isinstance(self._program, FunctionProgram)

    def _end(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.ask_to_stop()
        for worker in workers:
            worker.stop()


@contextlib.contextmanager
def children_of(program: AnyProgram, limit_bytes: float) -> Iterator[Children]:
    """Children of a program; none is left after the block.

    Raises:
      KeyboardInterrupt: with the words to show, after every child has ended.
    """
    with warm_python() as warm:
        children = Children(program, warm, limit_bytes)
        try:
            yield children
            children.close()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(CANCELLED) from None
        finally:
            children.kill()

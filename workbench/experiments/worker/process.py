"""Workers: child processes that run a program's steps, seen from the parent.

The parent imports no TensorFlow and owns no session. A worker that dies, hangs, or is cancelled
leaves no process and says what happened.
"""

from __future__ import annotations

import collections
import contextlib
import linecache
import math
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

import cloudpickle

from workbench.errors import RunError, WorkbenchError
from workbench.experiments.program.pickled import pickled
from workbench.experiments.worker.tolerance import Tolerance
from workbench.experiments.worker.warm_python import WarmPython, warm_python
from workbench.experiments.worker.wire.cancellation import CANCELLED, require_not_cancelled
from workbench.experiments.worker.wire.failure import Failure
from workbench.experiments.worker.wire.messages import Command, Result, Start, Stop
from workbench.experiments.worker.worker_errors import advice_for, ended_with, error_of

# What answers in the child of a program.
_CHILD = "workbench.experiments.worker.child:main"
_STOP_LIMIT_S = 5.0
# Until a cancelled wait is noticed, at most.
_POLL_S = 0.2


class Named(Protocol):
    """What travels to a child process: a program."""

    @property
    def name(self) -> str:
        """What messages call it."""


class Worker:
    """One child process. Commands are sent with `send`; `receive` gives their results in order.

    Attributes:
      label: its name in messages.
      failure: why it failed, where that is tolerated; None while it runs.
      deadline_s: when it has to have answered at the latest, on `time.monotonic`'s clock; inf where
        only the usual limit holds.
    """

    def __init__(
        self,
        label: str,
        program: Named,
        warm: WarmPython,
        tolerance: Tolerance | None = None,
        child: str = _CHILD,
    ) -> None:
        """Has `warm` start the child, whose main function is `child`; the program travels to it.

        Raises:
          RunError: the program cannot be pickled.
        """
        self.label, self.deadline_s = label, math.inf
        self.failure: WorkbenchError | None = None
        self._tolerance = tolerance or Tolerance()
        self._asked: collections.deque[tuple[Command[Any], float]] = collections.deque()
        self._is_paused = False
        try:
            written = pickled(program)
        except Exception as error:
            raise RunError(
                f"program {program.name!r} cannot travel to a child process: "
                f"{type(error).__name__}: {error}; {advice_for(program)}"
            ) from error
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = warm.fork(child, pass_fds=[theirs.fileno()])
        self._connection = Connection(ours.detach())
        self.send(Start(program=written, cells=_notebook_cells()))

    @property
    def pid(self) -> int:
        """Number of the child process; 0 until it runs."""
        self._process.poll()
        return self._process.pid

    def send(self, command: Command[Any]) -> None:
        """Sends a command, to be run after those sent before."""
        self._asked.append((command, time.monotonic()))
        if self.failure is not None:
            return
        if self._is_paused:
            self._process.resume()
            self._is_paused = False
        try:
            self._connection.send_bytes(cloudpickle.dumps(command))
            return
        except OSError:
            death = self._death()
        self.fail(death)

    def receive(self, expected_s: float = 0.0) -> Any:
        """The result of the oldest command not yet received.

        Of a worker that has failed, and may, it is the command's `unanswered`.

        Args:
          expected_s: seconds it should take; a few minutes more are granted.

        Raises:
          RunError: the command failed in the user's code, the child died, or does not answer.
          WorkbenchError: one of ours was raised there; its class is kept.
          KeyboardInterrupt: another thread cancelled; see `cancellation`.
        """
        command, asked_s = self._asked.popleft()
        if self.failure is None:
            try:
                return self._answer(asked_s, 10 * expected_s)
            except WorkbenchError as error:
                self.fail(error)
        return command.unanswered

    def fail(self, error: WorkbenchError) -> None:
        """Raises what went wrong with this worker, or ends it and notes why, where it may fail."""
        if not self._tolerance.may_fail(self.label):
            raise error
        self.failure = error
        self.begin_kill()

    def _answer(self, asked_s: float, more_s: float) -> Any:
        """Waits for a result.

        Args:
          asked_s: when its command was sent.
          more_s: seconds beyond the limit that it may take.
        """
        try:
            require_not_cancelled()
            waits = not self._connection.poll()
            while not self._connection.poll(_POLL_S):
                require_not_cancelled()
                # What the child has started may hold its end of the connection.
                if self._process.poll() is not None and not self._connection.poll():
                    raise self._death()
                limit_s = self._tolerance.limit_s(self.label) + more_s
                usual_s = asked_s + limit_s
                if time.monotonic() > min(usual_s, self.deadline_s):
                    self.kill()
                    raise self._too_late(limit_s, is_usual=usual_s < self.deadline_s)
            result = cloudpickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise self._death() from None
        if waits:
            # Of an answer that lay ready nobody knows how long it took.
            self._tolerance.answered(self.label, time.monotonic() - asked_s - more_s)
        if isinstance(result, Failure):
            raise error_of(result)
        return result

    def call(self, command: Command[Result], expected_s: float = 0.0) -> Result:
        """Sends a command and waits for its result; see `receive`."""
        self.send(command)
        result: Result = self.receive(expected_s)
        return result

    def pause(self) -> None:
        """Stops the child until the next command, where all that were sent are answered.

        Else its input would go on while others are measured: it would take their cores, and its
        next steps would find their batches ready.
        """
        if self.failure is None and not self._asked:
            self._process.pause()
            self._is_paused = True

    def ask_to_stop(self) -> None:
        """Lets the child end in good order; `stop` waits for it."""
        with contextlib.suppress(RunError):
            self.send(Stop())

    def stop(self) -> None:
        """Waits until the child has ended, or ends it by force after a few seconds.

        Raises:
          KeyboardInterrupt: another thread cancelled meanwhile.
        """
        limit = time.monotonic() + _STOP_LIMIT_S
        while not self._has_ended(_POLL_S) and time.monotonic() < limit:
            require_not_cancelled()
        self.kill()

    def begin_kill(self) -> None:
        """Tells the child to end at once; `kill` waits for it."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def kill(self) -> None:
        """Ends the child at once; does nothing when it has ended."""
        self.begin_kill()
        # One that is not forked yet finds its connection closed.
        self._connection.close()
        if not (self._process.pid and self._has_ended(_STOP_LIMIT_S)):
            # Or the process that forks is stopped, and tells nothing.
            self._process.forget()

    def _has_ended(self, within_s: float) -> bool:
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _too_late(self, usual_s: float, *, is_usual: bool) -> RunError:
        """What to say of one that was ended because it did not answer."""
        if not is_usual:
            return RunError(
                f"The run of {self.label!r} did not answer in the time that it was given, and was "
                "ended."
            )
        return RunError(
            f"The run of {self.label!r} has not answered for {usual_s:.0f} s and was ended; its "
            "code, its input or its stage is stuck."
        )

    def _death(self) -> RunError:
        """Why the child is gone."""
        try:
            code = self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self.kill()
            return RunError("The run ended without a result (it closed its connection).")
        return ended_with(code)


@contextlib.contextmanager
def started_workers(
    programs: Sequence[tuple[str, Named]],
    environments: Sequence[Mapping[str, str]] | None = None,
    tolerance: Tolerance | None = None,
    child: str = _CHILD,
) -> Iterator[list[Worker]]:
    """Workers for (label, program) pairs, all started at once; none is left after the block.

    Args:
      programs: the pairs.
      environments: variables that each of them has beside those of this process; those that are
        not empty are forked from processes of their own, one for each environment.
      tolerance: which of them may fail; None is none.
      child: the function that a child process runs, as "module:function".

    Raises:
      KeyboardInterrupt: after Ctrl-C, or once another thread cancelled what this one runs; with
        the words to show, after every child has ended.
    """
    workers: list[Worker] = []
    wished = [tuple(sorted(each.items())) for each in environments or [{}] * len(programs)]
    with contextlib.ExitStack() as stack:
        warm: dict[tuple[tuple[str, str], ...], WarmPython] = {}
        warm[()] = stack.enter_context(warm_python())
        for variables in wished:
            if variables not in warm:
                started = WarmPython(dict(variables))
                warm[variables] = stack.enter_context(contextlib.closing(started))
        try:
            for (label, program), variables in zip(programs, wished, strict=True):
                require_not_cancelled()
                workers.append(Worker(label, program, warm[variables], tolerance, child))
            for worker in workers:
                worker.receive()
            if tolerance is not None:
                tolerance.started()
            yield workers
            for worker in workers:
                worker.ask_to_stop()
            for worker in workers:
                worker.stop()
        except KeyboardInterrupt:
            _kill_all(workers)
            raise KeyboardInterrupt(CANCELLED) from None
        finally:
            _kill_all(workers)


def _kill_all(workers: Sequence[Worker]) -> None:
    # All at once: a large process takes a while to give its memory back.
    for worker in workers:
        worker.begin_kill()
    for worker in workers:
        worker.kill()


def _notebook_cells() -> dict[str, Any]:
    """The source of notebook cells, as `linecache` keeps it: no file has it.

    AutoGraph reads the source of what it converts, a traceback shows it.
    """
    marks = ("ipykernel", "<ipython-input")
    return {
        name: entry
        for name, entry in linecache.cache.items()
        if any(mark in name for mark in marks) and len(entry) == 4
    }

"""The child process of an experiment: builds programs, runs their steps on command.

Its arguments are the number of the pipe and the process id of the parent. It speaks one message per
command over the pipe and ends with it; nothing of it outlives the parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import linecache
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np

from workbench.core.options import Optimizations
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.worker.failure import failure_of
from workbench.experiments.worker.graph_session import Opened, Planned, ProgramSession, Steps
from workbench.experiments.worker.traced_steps import settle, traced_between

if TYPE_CHECKING:
    from workbench.core.trace.trace import Trace
    from workbench.experiments.worker.function_session import FunctionSession

_PR_SET_PDEATHSIG = 1


class _Commands:
    """The commands of a parent, as methods."""

    def __init__(self, program: AnyProgram) -> None:
        self._program = program
        self._sessions: dict[str, ProgramSession | FunctionSession] = {}

    def open(
        self,
        session: str,
        part: str,
        optimizations: Optimizations,
        sample: Trace | None = None,
        plan: str | None = None,
        recorded: bool = False,
    ) -> Opened:
        """Builds a part of the program and starts its session.

        `recorded` asks for an executor that records its ops, where nothing else is chosen.
        """
        program = self._program
        opened: ProgramSession | FunctionSession
        if isinstance(program, FunctionProgram):
            # It imports TensorFlow, which this module does on command alone.
            from workbench.experiments.worker.function_session import FunctionSession

            opened = FunctionSession(program, optimizations, recorded=recorded)
        else:
            opened = ProgramSession(
                program, part, optimizations, sample=sample, plan=plan, recorded=recorded
            )
        self._sessions[session] = opened
        return opened.opened

    def planned(self, session: str) -> Planned:
        """The plan of a session with a smart stage."""
        return self._sessions[session].planned()

    def run(self, session: str, steps: int, fetch: str = "nothing") -> Steps:
        """Runs steps."""
        return self._sessions[session].run(steps, fetch)

    def block(self, session: str, steps: int) -> Steps:
        """Runs the steps of a measured block, then waits until work ahead has settled."""
        fetch = "loss" if self._sessions[session].opened.has_loss else "nothing"
        measured = self._sessions[session].run(steps, fetch)
        settle()
        return dataclasses.replace(measured, values=np.empty(0))

    def trace(
        self,
        session: str,
        steps: int,
        beside: str | None = None,
        step_stats: bool = False,
    ) -> Trace:
        """Traces steps, with the time of those of `beside`, untraced, in its notes."""
        measured = self._sessions[beside or session]
        traced = self._sessions[session]
        return traced_between(
            measured.measure, lambda: traced.trace(steps, step_stats=step_stats), steps
        )

    def close(self, session: str) -> None:
        """Ends a session."""
        self._sessions.pop(session).close()

    def close_all(self) -> None:
        """Ends all sessions."""
        for name in list(self._sessions):
            self.close(name)


def main() -> None:
    """Serves a parent until it says stop or is gone."""
    connection = Connection(int(sys.argv[1]))
    _end_with_parent(int(sys.argv[2]))
    # What the user's code prints must not end among the parent's own output.
    os.dup2(2, 1)
    commands: _Commands | None = None
    while True:
        try:
            name, arguments = cloudpickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(1)
        except Exception as error:  # a program that cannot be unpickled here
            connection.send_bytes(cloudpickle.dumps(failure_of(error)))
            continue
        try:
            if name == "start":
                import_tensorflow()
                linecache.cache.update(arguments["cells"])
                commands = _Commands(cloudpickle.loads(arguments["program"]))
                result: Any = None
            elif name == "stop":
                result = None
                if commands:
                    commands.close_all()
            else:
                result = getattr(commands, name)(**arguments)
        except Exception as error:
            result = failure_of(error)
        connection.send_bytes(cloudpickle.dumps(result))
        if name == "stop":
            # Destructors of a half-dead TensorFlow have nothing to add.
            os._exit(0)


def _end_with_parent(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def import_tensorflow() -> None:
    """Imports TensorFlow without its words about processors and missing GPUs."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _held_back_stderr():
        import tensorflow as tf

        # On a machine without a GPU, the first look for one complains.
        tf.config.list_physical_devices()
    # Deprecations of graph-mode names are no news to who runs them.
    tf.get_logger().setLevel("ERROR")


@contextlib.contextmanager
def _held_back_stderr() -> Iterator[None]:
    """Keeps what is written to stderr to itself, unless the block fails."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as words:
        os.dup2(words.fileno(), 2)
        try:
            yield
        except BaseException:
            words.seek(0)
            os.write(kept, words.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)

"""The child process of an experiment: builds programs, runs their steps on command.

Its arguments are the number of the pipe and the process id of the parent. It speaks one message per
command over the pipe and ends with it; nothing of it outlives the parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

from workbench.core.options import Optimizations
from workbench.errors import WorkbenchError
from workbench.experiments.program import Program
from workbench.experiments.worker_session import Opened, Planned, ProgramSession, Steps

_PR_SET_PDEATHSIG = 1
_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failure:
    """An exception on its way to the parent.

    Attributes:
      kind: name of its class in workbench.errors, or "" when it is none of ours.
      message: one line, beginning with the user's own file and line where there is one.
      details: the whole traceback.
    """

    kind: str
    message: str
    details: str


class _Commands:
    """The commands of a parent, as methods."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._sessions: dict[str, ProgramSession] = {}

    def open(
        self,
        session: str,
        part: str,
        optimizations: Optimizations,
        sample: str | None = None,
        plan: str | None = None,
    ) -> Opened:
        """Builds a part of the program and starts its session."""
        self._sessions[session] = ProgramSession(
            self._program, part, optimizations, sample=sample, plan=plan
        )
        return self._sessions[session].opened

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
        _settle()
        return dataclasses.replace(measured, values=np.empty(0))

    def trace(self, session: str, steps: int, path: str) -> str:
        """Traces steps into a file."""
        return self._sessions[session].trace(steps, path)

    def close(self, session: str) -> None:
        """Ends a session."""
        self._sessions.pop(session).close()

    def close_all(self) -> None:
        """Ends all sessions."""
        for name in list(self._sessions):
            self.close(name)


def _settle() -> None:
    """Waits, half a second at most, until this process has no more work of its own.

    A stage fills its buffer after the last step; the next block belongs to another process.
    """
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        before = time.process_time()
        time.sleep(0.02)
        if time.process_time() - before < 0.002:
            return


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
            connection.send_bytes(cloudpickle.dumps(_failure(error)))
            continue
        try:
            if name == "start":
                import_tensorflow()
                commands = _Commands(cloudpickle.loads(arguments["program"]))
                result: Any = None
            elif name == "stop":
                result = None
                if commands:
                    commands.close_all()
            else:
                result = getattr(commands, name)(**arguments)
        except Exception as error:
            result = _failure(error)
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


def _failure(error: BaseException) -> Failure:
    kind = type(error).__name__ if isinstance(error, WorkbenchError) else ""
    place = "" if kind else _place(error)
    text = getattr(error, "message", None) or str(error)
    first = str(text).strip().splitlines()[0] if str(text).strip() else ""
    said = first if kind else f"{type(error).__name__}: {first}".rstrip(": ")
    return Failure(
        kind=kind,
        message=f"{place}{said}",
        details="".join(traceback.format_exception(error)),
    )


def _place(error: BaseException) -> str:
    """The innermost line of the user's own code, "`train.py`, line 41: ", or nothing."""
    frames: list[Any] = list(traceback.extract_tb(error.__traceback__))
    # An error of an op arises in a step; what the user wrote is where the op was built.
    built = getattr(getattr(error, "op", None), "traceback", None)
    own = _own_frames(list(built or ())) or _own_frames(frames)
    if not own:
        return ""
    frame = own[-1]
    name = frame.filename
    if "ipykernel" in name or name.startswith("<ipython"):
        return f"notebook cell, line {frame.lineno}: "
    with contextlib.suppress(ValueError):
        inside = os.path.relpath(name)
        name = name if inside.startswith("..") else inside
    return f"`{name}`, line {frame.lineno}: "


def _own_frames(frames: list[Any]) -> list[Any]:
    library = os.path.dirname(os.__file__) + os.sep
    return [
        frame
        for frame in frames
        if not frame.filename.startswith(("<frozen", library, _PACKAGE))
        and "site-packages" not in frame.filename
    ]

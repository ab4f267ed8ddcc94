"""How processes end: with the process that started them, and with all that they started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# Until what is asked to end has ended; a loader's resource tracker then clears shared memory.
_GRACE_S = 1.0
# Until what is killed is gone.
_KILLED_S = 5.0
_POLL_S = 0.01
# In a bare interpreter: it is replaced by the command at once, which keeps the kernel's promise.
_BOUND = (
    "import ctypes, os, sys\n"
    f"ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {int(signal.SIGKILL)})\n"
    "os.getppid() == int(sys.argv[1]) or os._exit(1)\n"
    "os.execvp(sys.argv[2], sys.argv[2:])\n"
)


class _Process(NamedTuple):
    pid: int
    parent: int
    session: int


def bound(command: Sequence[str]) -> list[str]:
    """A command that the kernel ends when the thread that starts it ends, even by a kill."""
    return [sys.executable, "-I", "-S", "-c", _BOUND, str(os.getpid()), *command]


def end_with_parent(parent: int) -> None:
    """Has the kernel end this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Makes this process the parent of what its children leave behind when they end."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_session(leader: int) -> None:
    """Ends what is left of a session, whose leader has ended; waits for that."""
    _end(lambda each: each.session == leader)


def end_children(but: Sequence[int] = ()) -> None:
    """Ends children of this process, and adopted ones, but for some; waits for that."""
    own = os.getpid()
    _end(lambda each: each.parent == own and each.pid not in but)


def _end(is_left: Callable[[_Process], bool]) -> None:
    for number, seconds in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _KILLED_S)):
        deadline = time.monotonic() + seconds
        told: set[int] = set()
        while left := {each.pid for each in _living() if is_left(each)}:
            for pid in left - told:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            told |= left
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)


def _living() -> Iterator[_Process]:
    """The processes of this machine that run, but for this one."""
    own = os.getpid()
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == own:
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                # Behind the command's name, which may have any signs in it.
                state, parent, _, session, *_ = file.read().rpartition(")")[2].split()
            if state not in ("Z", "X"):
                yield _Process(int(name), int(parent), int(session))


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value)

"""The process behind a `WarmPython`: imports TensorFlow, then forks on request.

A request is a message with file descriptors: a file with a JSON text, the streams, the pipe that is
told how the child goes, and what the child's function is called with. Each child has variables,
folder and module path of whoever asked, and dies with this process, which dies with the one that
started it. Each leads a session; what it leaves in there, such as the processes of a loader, is
ended with it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
import tempfile
from typing import Any, NoReturn

from workbench.experiments.worker.generated_code import remove_folder
from workbench.experiments.worker.process_ends import (
    adopt_orphans,
    end_children,
    end_session,
    end_with_parent,
)
from workbench.experiments.worker.tensorflow_import import import_tensorflow
from workbench.experiments.worker.warm_python import NUMBER_WIDTH

_MOST_FDS = 16
# Until the death of the parent is noticed where another process holds its end of the socket.
_LOOK_S = 2.0
# Without a child and a request, the memory is given back.
_IDLE_S = 120.0


class _Server:
    """Forks on request, and tells each child's number and exit code through a pipe of its own."""

    def __init__(self, requests: socket.socket, parent: int, folder: str) -> None:
        self._requests, self._parent, self._folder = requests, parent, folder
        self._statuses: dict[int, int] = {}  # by process id
        self._ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> tuple[dict[str, Any], list[int]]:
        """Returns in children only: what was asked, and the file descriptors passed on."""
        idle_s = 0.0
        while True:
            sources: list[Any] = [self._requests, self._ended]
            ready, _, _ = select.select(sources, [], [], _LOOK_S)
            if os.getppid() != self._parent:
                self._end(1)
            idle_s = idle_s + _LOOK_S if not ready and not self._statuses else 0.0
            if idle_s >= _IDLE_S:
                self._end(0)
            if self._ended in ready:
                os.read(self._ended, 512)
                self._reap()
            if self._requests in ready:
                request, fds = self._received()
                pid = os.fork()
                if pid == 0:
                    self._become(request, fds)
                    return request, fds[3:]
                self._statuses[pid] = fds.pop(2)
                self._tell(self._statuses[pid], pid)
                for fd in fds:
                    os.close(fd)

    def _received(self) -> tuple[dict[str, Any], list[int]]:
        message, fds, _, _ = socket.recv_fds(self._requests, 1, _MOST_FDS)
        if not message:
            self._end(0)
        with open(fds[0], "rb") as request:
            return json.load(request), fds[1:]

    def _end(self, code: int) -> NoReturn:
        for pid in self._statuses:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self._statuses:
            end_session(pid)
        end_children()
        remove_folder(self._folder)
        os._exit(code)

    def _reap(self) -> None:
        """Tells of the children that have ended, when what they left behind has ended too."""
        ended = []
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, used = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid not in self._statuses:  # adopted
                    continue
                numbers = (os.waitstatus_to_exitcode(status), used.ru_maxrss)
                ended.append((self._statuses.pop(pid), numbers))
                end_session(pid)
                if not self._statuses:
                    # What made a session of its own is nobody's any more.
                    end_children()
        for pipe, numbers in ended:
            self._tell(pipe, *numbers)
            os.close(pipe)

    @staticmethod
    def _tell(pipe: int, *numbers: int) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(pipe, "".join(f"{number:{NUMBER_WIDTH}}" for number in numbers).encode())

    def _become(self, request: dict[str, Any], fds: list[int]) -> None:
        """Makes this fork a process of its own, as whoever asked wants it."""
        server = os.getppid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        end_with_parent(server)
        self._requests.close()
        for pipe in (*self._statuses.values(), fds[2]):
            os.close(pipe)
        os.setsid()
        for number, fd in ((1, fds[0]), (2, fds[1])):
            os.dup2(fd, number)
            os.close(fd)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        sys.path[:] = request["path"]
        tempfile.tempdir = self._folder
        # Two forks must not draw the same numbers.
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()


def _import_all() -> None:
    """What children import: all of it only defines, nothing runs an op."""
    # What cannot be imported fails again in the child, whose parent is told why.
    with contextlib.suppress(Exception):
        import_tensorflow()
        import workbench.core.executor.policy
        import workbench.core.smart_stage
        import workbench.experiments.worker.child
        import workbench.experiments.worker.steps.function_session  # noqa: F401


def main() -> None:
    """Serves a parent.

    Arguments: the number of the socket to it, its process id, the folder for temporary files.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = socket.socket(fileno=int(sys.argv[1]))
    adopt_orphans()
    _import_all()
    # What is there now stays in pages that parent and children share.
    gc.collect()
    gc.freeze()
    request, fds = _Server(requests, int(sys.argv[2]), sys.argv[3]).serve()
    module, _, function = request["function"].partition(":")
    getattr(importlib.import_module(module), function)(*request["arguments"], *fds)

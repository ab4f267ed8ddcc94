"""Child processes that need not import TensorFlow: forks of a Python that did, and nothing more.

`import tensorflow` takes four seconds, a hundred children of tests as many minutes. A `WarmPython`
imports it once, uses nothing of it, and forks for each child: a process with arguments,
environment, folder, streams and an exit code of its own. What a start from nothing must prove is
proved with `subprocess`, which takes the same arguments.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import functools
import gc
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1
_MAX_MESSAGE = 1 << 17
_PID_WIDTH = 10


class Child:
    """A forked child, with what of `subprocess.Popen` its callers use."""

    def __init__(self, pid: int, arguments: Sequence[str], status: int) -> None:
        self.pid, self.args, self.returncode = pid, arguments, None
        self._status = status

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0.0)
            self.returncode = int(os.read(self._status, 64) or b"-9")
            os.close(self._status)
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class WarmPython:
    """The process that forks. It ends with the process that started it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.builders.warm_python", str(theirs.fileno())],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def popen(
        self,
        arguments: Sequence[Any],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Any = None,
        pass_fds: Sequence[int] = (),
        stdin: int = subprocess.DEVNULL,
        stdout: int = 1,
        stderr: int = 2,
        start_new_session: bool = True,
    ) -> Child:
        """Starts a child with a Python's command line: `-c CODE` or a script, and its arguments.

        An argument that is the number of a passed file descriptor, or this process's id, becomes
        the number that it has there, and the id of the child's parent.
        """
        assert start_new_session and stdin == subprocess.DEVNULL
        told = {
            "arguments": [str(a) for a in arguments[1:]],
            "env": dict(os.environ if env is None else env),
            "cwd": str(cwd or os.getcwd()),
            "fds": list(pass_fds),
            "caller": os.getpid(),
        }
        status, theirs = os.pipe()
        with open(os.devnull, "rb") as nothing:
            streams = [nothing.fileno(), stdout, stderr, theirs]
            socket.send_fds(self._socket, [json.dumps(told).encode()], [*streams, *pass_fds])
        os.close(theirs)
        pid = os.read(status, _PID_WIDTH)
        if not pid:
            raise RuntimeError("`python -m tests.builders.warm_python 0` says why it has ended")
        return Child(int(pid), told["arguments"], status)

    def run(
        self,
        arguments: Sequence[Any],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Any = None,
        timeout: float = 120.0,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a child to its end; what it wrote is in the result, as text."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            child = self.popen(
                arguments, env=env, cwd=cwd, stdout=out.fileno(), stderr=errors.fileno()
            )
            try:
                child.wait(timeout)
            finally:
                child.kill()
            written = []
            for stream in (out, errors):
                stream.seek(0)
                written.append(stream.read().decode())
        return subprocess.CompletedProcess(list(child.args), child.returncode or 0, *written)


@functools.cache
def warm_python() -> WarmPython:
    """The one of this process, started when it is first asked for."""
    return WarmPython()


def warm_subprocess() -> types.SimpleNamespace:
    """What `workbench.experiments.worker.process` uses of `subprocess`, with warm children."""
    return types.SimpleNamespace(
        Popen=warm_python().popen,
        DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    )


class _Server:
    """Forks on request, and tells each child's id and exit code through a pipe of its own."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._statuses: dict[int, int] = {}  # by process id
        self._ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Returns in children only."""
        while True:
            ready, _, _ = select.select([self._requests, self._ended], [], [])
            if self._ended in ready:
                os.read(self._ended, 512)
                self._reap()
            if self._requests in ready:
                message, fds, _, _ = socket.recv_fds(self._requests, _MAX_MESSAGE, 16)
                if not message:
                    os._exit(0)
                told = json.loads(message)
                pid = os.fork()
                if pid == 0:
                    self._become(told, fds)
                    return
                os.write(fds[3], f"{pid:{_PID_WIDTH}}".encode())
                self._statuses[pid] = fds.pop(3)
                for fd in fds:
                    os.close(fd)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                pipe = self._statuses.pop(pid)
                with contextlib.suppress(BrokenPipeError):
                    os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(pipe)

    def _become(self, told: dict[str, Any], fds: list[int]) -> None:
        """Makes this fork a process of its own, with the caller's settings."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._requests.close()
        for pipe in (*self._statuses.values(), fds[3]):
            os.close(pipe)
        _end_with_parent()
        os.setsid()
        for number, fd in enumerate(fds[:3]):
            os.dup2(fd, number)
            os.close(fd)
        os.environ.clear()
        os.environ.update(told["env"])
        os.chdir(told["cwd"])
        renamed = dict(zip(map(str, told["fds"]), map(str, fds[4:]), strict=True))
        renamed[str(told["caller"])] = str(os.getppid())
        sys.argv = [renamed.get(a, a) for a in told["arguments"]]
        random.seed()
        sys.modules["numpy"].random.seed()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _run_command_line() -> None:
    """Runs what `sys.argv` says as a `__main__` of its own, as Python does."""
    while sys.argv[0].startswith("-") and sys.argv[0] != "-c":
        del sys.argv[0]
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    if sys.argv[0] == "-c":
        exec(compile(sys.argv.pop(1), "<string>", "exec"), main.__dict__)
        return
    path = sys.argv[0]
    main.__file__ = path
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    with open(path, "rb") as source:
        exec(compile(source.read(), path, "exec"), main.__dict__)


def _import_all() -> None:
    """What children import: all of it only defines; nothing runs an op or makes a thread."""
    import keras  # noqa: F401
    import numpy as np  # noqa: F401
    import tensorflow as tf  # noqa: F401

    import workbench.compat
    import workbench.core.executor.policy
    import workbench.core.smart_stage
    import workbench.experiments.worker.child
    import workbench.experiments.worker.steps.function_session  # noqa: F401


def main() -> None:
    _end_with_parent()
    requests = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    gc.collect()
    gc.freeze()
    _Server(requests).serve()
    _run_command_line()


if __name__ == "__main__":
    main()

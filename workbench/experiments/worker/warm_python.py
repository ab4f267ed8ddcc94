"""WarmPython: a process that has imported TensorFlow, and forks for each child that is asked for.

The import takes seconds, a fork hundredths of one. The process runs no op and owns no session, so
that a fork is as good as a start from nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence

from workbench.errors import RunError
from workbench.experiments.worker.generated_code import make_folder, remove_folder
from workbench.experiments.worker.process_ends import end_session

# Characters of each number that a pipe tells: a process id, an exit code, kB.
NUMBER_WIDTH = 12
# Until the process that forks has ended its children.
_END_S = 2.0
# And how long the peak of a child may come behind its exit code.
_PEAK_S = 1.0
# How names of environment variables begin that are read while a process starts or imports.
_READ_AT_START = (
    *("TF_", "XLA_", "KERAS_", "CUDA_", "NVIDIA_", "ONEDNN_", "DNNL_", "MKL_", "OMP_", "OPENBLAS_"),
    *("GOMP_", "KMP_", "LD_", "MALLOC_", "GLIBC_", "PYTHON"),
)


class ForkedProcess:
    """A child that a `WarmPython` forks; its methods are those of `subprocess.Popen`.

    Attributes:
      pid: number of the process; 0 until it runs.
      returncode: its exit code, below 0 for a signal; None until it has ended.
      peak_bytes: most memory that it had, pages shared with others included; 0 until it has ended.
    """

    def __init__(self, status: int, on_end: Callable[[ForkedProcess], None]) -> None:
        """A child that was asked for.

        Args:
          status: the pipe that tells its number, then its exit code and its peak.
          on_end: called once it is known to have ended.
        """
        self._on_end = on_end
        self.pid, self.peak_bytes = 0, 0
        self.returncode: int | None = None
        self._status, self._reading = status, threading.Lock()
        # Not closed sooner: another thread may wait for it, and `_finish` reads it at the end of
        # this process.
        weakref.finalize(self, os.close, status).atexit = False

    def poll(self) -> int | None:
        """The exit code, without waiting; None while the child runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits until the child has ended; returns its exit code.

        Raises:
          subprocess.TimeoutExpired: it runs on after so many seconds.
        """
        while self.returncode is None:
            if not self._is_told(timeout):
                raise subprocess.TimeoutExpired("a forked child", timeout or 0.0)
            # One thread reads; it is done within `_PEAK_S`.
            if self._reading.acquire(timeout=_PEAK_S):
                try:
                    if self.returncode is None and self._is_told(0.0):
                        self._read()
                finally:
                    self._reading.release()
        return self.returncode

    def kill(self) -> None:
        """Ends the child at once. One that is not forked yet ends when its pipes are closed."""
        if self.poll() is None and self.pid:
            os.kill(self.pid, signal.SIGKILL)

    def pause(self) -> None:
        """Stops the child, and what it has started in its session, until `resume`."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets them run on."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        if self.poll() is None and self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def forget(self) -> None:
        """Does not wait for a child that was killed, or has not begun."""
        if self.pid:
            end_session(self.pid)
        self.returncode = -signal.SIGKILL
        self._on_end(self)

    def _is_told(self, timeout: float | None) -> bool:
        return bool(select.select([self._status], [], [], timeout)[0])

    def _read(self) -> None:
        number = os.read(self._status, NUMBER_WIDTH)
        if number and not self.pid:
            self.pid = int(number)
            return
        if not number and self.pid:
            # It went with the process that forks, which would have ended what it started.
            end_session(self.pid)
        # It comes right behind the exit code, unless the process that forks was killed in between.
        if number and self._is_told(_PEAK_S):
            self.peak_bytes = 1024 * int(os.read(self._status, NUMBER_WIDTH) or 0)
        self.returncode = int(number or -signal.SIGKILL)
        self._on_end(self)


class WarmPython:
    """The process that forks. It ends with the process that started it, and so do its children.

    Attributes:
      largest_child_bytes: most memory that any child had that has ended, pages shared with others
        included.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Starts it; it imports while the caller goes on.

        Args:
          environment: variables beside those of this process, for it and its children.
        """
        self.largest_child_bytes = 0
        self._environment = dict(environment or {})
        self._owner = os.getpid()
        self._inherited = _inherited()
        folder = make_folder()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-c"),
                    "from workbench.experiments.worker.fork_server import main; main()",
                    *(str(theirs.fileno()), str(os.getpid()), folder),
                ],
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(_path()),
                    **self._environment,
                },
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=_output_fd(1, subprocess.DEVNULL),
                stderr=_output_fd(2, subprocess.DEVNULL),
                # Ctrl-C in a terminal reaches the parent alone, which then ends its children.
                start_new_session=True,
            )
        self._live: weakref.WeakSet[ForkedProcess] = weakref.WeakSet()
        self._finish = weakref.finalize(
            self, _finish, self._socket, self._server, self._owner, folder, self._live
        )

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._server.pid

    @property
    def usable(self) -> bool:
        """Whether it runs, and children inherit what they would inherit from the caller now."""
        if self._owner != os.getpid():  # a fork of the caller, which has children of its own
            return False
        return self._server.poll() is None and self._inherited == _inherited()

    def fork(
        self,
        function: str,
        arguments: Sequence[str] = (),
        *,
        pass_fds: Sequence[int] = (),
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> ForkedProcess:
        """Asks for a child that calls a function, with this process's module path; does not wait.

        Args:
          function: a module and its function, "package.module:function".
          arguments: what it is called with first.
          pass_fds: file descriptors; it is called with the numbers that they have there, after
            `arguments`.
          env: its variables; None for those of this process. Those that the process which forks
            has of its own come beside them.
          cwd: its folder; None for that of this process.
          stdout, stderr: file descriptors that it writes to; None for those of this process.
        """
        call = {
            "function": function,
            "arguments": list(arguments),
            "env": {**(os.environ if env is None else env), **self._environment},
            "cwd": cwd or _folder(),
            "path": _path(),
        }
        status, theirs = os.pipe()
        child = ForkedProcess(status, self._note_end)
        self._live.add(child)
        # A file, since the environment may be larger than a message can be.
        with tempfile.TemporaryFile() as request, open(os.devnull, "wb") as null:
            request.write(json.dumps(call).encode())
            request.seek(0)
            try:
                out = _output_fd(1, null.fileno()) if stdout is None else stdout
                err = _output_fd(2, null.fileno()) if stderr is None else stderr
                fds = [request.fileno(), out, err, theirs, *pass_fds]
                # Where the process is gone, the pipe says so.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    if self._finish.alive:
                        socket.send_fds(self._socket, [b"."], fds)
            finally:
                os.close(theirs)
        return child

    def _note_end(self, child: ForkedProcess) -> None:
        self._live.discard(child)
        self.largest_child_bytes = max(self.largest_child_bytes, child.peak_bytes)

    def close(self) -> None:
        """Ends it, and with it every child of it that is left."""
        self._finish()


class _Shared:
    """The one of this process: from one measurement to the next, as long as it is usable."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._warm: WarmPython | None = None
        self._users = 0

    def take(self) -> WarmPython:
        with self._lock:
            if self._warm is None or not self._warm.usable:
                # One that another thread still forks from ends with its last user's reference.
                self._warm, self._users = WarmPython(), 0
            self._users += 1
            return self._warm

    def give_back(self, warm: WarmPython, *, end: bool) -> None:
        with self._lock:
            if warm is not self._warm:
                return
            self._users -= 1
            if end and not self._users:
                self._warm = None
                warm.close()


_shared = _Shared()


@contextlib.contextmanager
def warm_python() -> Iterator[WarmPython]:
    """The one that this process forks from, kept for the next block; after Ctrl-C none is left."""
    warm, cancelled = _shared.take(), False
    try:
        yield warm
    except KeyboardInterrupt:
        cancelled = True
        raise
    finally:
        _shared.give_back(warm, end=cancelled)


def _inherited() -> tuple[object, ...]:
    """What a process has from the one that starts it and no request changes later."""
    variables = {name: v for name, v in os.environ.items() if name.startswith(_READ_AT_START)}
    kinds = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
    limits = [resource.getrlimit(kind) for kind in kinds]
    return variables, os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0), limits


def _path() -> list[str]:
    return [_folder() if path == "" else path for path in sys.path]


def _output_fd(stream: int, null: int) -> int:
    """1 or 2 where that is an output of this process, or what to take in its place.

    Where Python found it closed, another file may have its number.
    """
    return null if (sys.__stdout__, sys.__stderr__)[stream - 1] is None else stream


def _folder() -> str:
    """The working folder, in which the child runs.

    Raises:
      RunError: it was removed.
    """
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise RunError(
            "The working folder of this process was removed, so a child process has none to run "
            "in. Call os.chdir with a folder that exists."
        ) from None


def _finish(
    ours: socket.socket,
    server: subprocess.Popen[bytes],
    owner: int,
    folder: str,
    live: weakref.WeakSet[ForkedProcess],
) -> None:
    ours.close()
    if owner != os.getpid():
        return
    if live:
        # It ends them, with all that they have started, unless it is stopped itself.
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(_END_S)
    server.kill()
    server.wait()
    for child in list(live):
        child.poll()
    remove_folder(folder)

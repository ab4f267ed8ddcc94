"""A cluster of local processes, each a task that runs the same command with its own TF_CONFIG."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from workbench.errors import RunError
from workbench.experiments.cluster.task import PS, WORKER, Task

# Lines of a task that failed, which its error shows.
_LAST_LINES = 15


def run_local_cluster(
    command: Sequence[str],
    *,
    ps: int = 1,
    workers: int = 2,
    timeout_s: float = 600.0,
    say: Callable[[str], None] = print,
) -> dict[str, list[str]]:
    """Starts a process for each task and waits until the workers have ended.

    Args:
      command: of every task; TF_CONFIG in its environment says which one it is.
      ps, workers: how many of each.
      timeout_s: after which all are ended.
      say: gets each line that a task prints, with the task's name before it.

    Returns:
      The lines of each task, by its name.

    Raises:
      RunError: a task failed, or the time was up; all others have been ended then.
    """
    with _started(command, _tasks(ps, workers), say) as running:
        ends_s = time.monotonic() + timeout_s
        while any(each.process.poll() is None for each in running):
            failed = [each for each in running if each.process.poll()]
            if failed:
                raise RunError(_failure(failed[0]))
            if time.monotonic() > ends_s:
                waiting = [each.name for each in running if each.process.poll() is None]
                raise RunError(
                    f"the cluster took more than {timeout_s:.0f} s; still running: "
                    f"{', '.join(waiting)}"
                )
            time.sleep(0.05)
        for each in running:
            each.join()
            if each.process.returncode:
                raise RunError(_failure(each))
        return {each.name: each.lines for each in running}


class _Running:
    """A task's process, and what it prints."""

    def __init__(self, command: Sequence[str], task: Task, say: Callable[[str], None]) -> None:
        self.name = task.name
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            list(command),
            env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, "TF_CONFIG": task.to_config()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=(say,), daemon=True)
        self._reader.start()

    def _read(self, say: Callable[[str], None]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            say(f"[{self.name}] {self.lines[-1]}")

    def join(self) -> None:
        """Waits until all that it printed is read."""
        self._reader.join()

    def end(self) -> None:
        """Ends the process, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def _started(
    command: Sequence[str], tasks: Sequence[Task], say: Callable[[str], None]
) -> Iterator[list[_Running]]:
    running: list[_Running] = []
    try:
        for task in tasks:
            running.append(_Running(command, task, say))
        yield running
    finally:
        for each in running:
            each.end()


def _tasks(ps: int, workers: int) -> list[Task]:
    ports = [f"localhost:{port}" for port in _free_ports(ps + workers)]
    cluster = {PS: tuple(ports[:ps]), WORKER: tuple(ports[ps:])}
    return [
        Task(job=job, index=index, cluster=cluster)
        for job, addresses in cluster.items()
        for index in range(len(addresses))
    ]


def _free_ports(count: int) -> list[int]:
    """Ports that were free just now, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _failure(task: _Running) -> str:
    task.join()
    said = "\n".join(task.lines[-_LAST_LINES:])
    return f"{task.name} ended with exit status {task.process.returncode}:\n{said}"

"""A cluster of local processes, each a task that runs the same command with its own TF_CONFIG."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from workbench.errors import RunError
from workbench.experiments.cluster.task import PS, WORKER, Task
from workbench.experiments.worker.process_ends import bound, end_session

# Lines of a task that failed, which its error shows.
_LAST_LINES = 15
_POLL_S = 0.05
# How long parameter servers may take to end after the last worker; one that was started again then
# is told by none.
_SERVERS_S = 10.0
# How long workers may take to end after the last parameter server; one that was started again then
# finds none.
_WORKERS_S = 30.0


def run_local_cluster(
    command: Sequence[str],
    *,
    ps: int = 1,
    workers: int = 2,
    timeout_s: float = 600.0,
    restarts: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, list[str]]:
    """Starts a process for each task and waits until the workers have ended.

    Args:
      command: of every task; TF_CONFIG in its environment says which one it is.
      ps, workers: how many of each.
      timeout_s: after which all are ended.
      restarts: how often, of all together, a task that was killed is started again.
      say: gets each line that a task prints, with the task's name before it, one after another.

    Returns:
      The lines of each task, by its name.

    Raises:
      RunError: a task failed, or the time was up; all others have been ended then.
    """
    turn = threading.Lock()

    def say_in_turn(line: str) -> None:
        # Each task is read by a thread of its own, and `print` writes a line's end by itself.
        with turn:
            say(line)

    with _started(command, local_tasks(ps, workers), say_in_turn) as running:
        left = _watch(running, timeout_s, restarts, say_in_turn)
        _end_left(left, say_in_turn)
        for each in running:
            each.end()
            each.join()
        return {each.name: each.lines for each in running}


def _watch(
    running: Sequence[_Running], timeout_s: float, restarts: int, say: Callable[[str], None]
) -> list[_Running]:
    """Waits until the workers have ended; returns what runs on: parameter servers, or workers that
    were started again after all of those had ended, and find none."""
    ends_s, alone_s = time.monotonic() + timeout_s, time.monotonic() + _WORKERS_S
    while True:
        ended = [task for task in running if task.process.poll() is not None]
        waiting = [task for task in running if task not in ended]
        for task in ended:
            if task.process.returncode < 0 and restarts:
                say(f"[{task.name}] killed by signal {-task.process.returncode}: starts again")
                task.end()
                task.start()
                waiting.append(task)
                restarts -= 1
            elif task.process.returncode:
                raise RunError(_failure(task))
        if any(task.job == PS for task in waiting):
            alone_s = time.monotonic() + _WORKERS_S
        if all(task.job == PS for task in waiting) or time.monotonic() > alone_s:
            return waiting
        if time.monotonic() > ends_s:
            raise RunError(
                f"the cluster took more than {timeout_s:.0f} s; still running: "
                f"{', '.join(task.name for task in waiting)}"
            )
        time.sleep(_POLL_S)


def _end_left(left: Sequence[_Running], say: Callable[[str], None]) -> None:
    """Waits for parameter servers whose workers have all ended, and ends what still runs."""
    ends_s = time.monotonic() + _SERVERS_S
    servers = [each for each in left if each.job == PS]
    while any(each.process.poll() is None for each in servers) and time.monotonic() < ends_s:
        time.sleep(_POLL_S)
    for each in left:
        if each.job == WORKER:
            say(f"[{each.name}] is ended: it was started again when all were done")
        each.end()


class _Running:
    """A task's process, and what it prints."""

    def __init__(self, command: Sequence[str], task: Task, say: Callable[[str], None]) -> None:
        self.name, self.job = task.name, task.job
        self.lines: list[str] = []
        self._command = list(command)
        self._config = task.to_config()
        self._say = say
        self.start()

    def start(self) -> None:
        """Starts the process, again if it has ended."""
        self.process = subprocess.Popen(
            bound(self._command),
            env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, "TF_CONFIG": self._config},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # Ctrl-C in a terminal reaches the parent alone, which then ends its tasks.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, printed: Iterable[str]) -> None:
        for line in printed:
            self.lines.append(line.rstrip("\n"))
            self._say(f"[{self.name}] {self.lines[-1]}")

    def join(self) -> None:
        """Waits until all that it printed is read."""
        self._reader.join()

    def end(self) -> None:
        """Ends the process, if it still runs, and what it has started."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        end_session(self.process.pid)


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


def local_tasks(ps: int, workers: int) -> list[Task]:
    ports = [f"localhost:{port}" for port in free_ports(ps + workers)]
    cluster = {PS: tuple(ports[:ps]), WORKER: tuple(ports[ps:])}
    return [
        Task(job=job, index=index, cluster=cluster)
        for job, addresses in cluster.items()
        for index in range(len(addresses))
    ]


def free_ports(count: int) -> list[int]:
    """Ports that were free just now, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _failure(task: _Running) -> str:
    task.end()
    task.join()
    said = "\n".join(task.lines[-_LAST_LINES:])
    return f"{task.name} ended with exit status {task.process.returncode}:\n{said}"

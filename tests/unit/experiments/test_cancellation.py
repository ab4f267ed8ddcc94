"""Cancelling what another thread runs: with real child processes that only sleep."""

from __future__ import annotations

import concurrent.futures
import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from workbench.core.optimizations import Optimizations
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker import process
from workbench.experiments.worker.process import CANCELLED, Worker, started_workers
from workbench.experiments.worker.wire.cancellation import cancellable, require_not_cancelled


def build(_: Optimizations) -> Built:
    return Built(train_op=None)


PROGRAM = Program(name="tiny", build=build)


class Children:
    """Starts children that hold their pipe open and never answer."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []
        self.first = threading.Event()

    def fork(self, function: str, *, pass_fds: list[int]) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(["sleep", "60"], pass_fds=pass_fds)
        self.started.append(child)
        self.first.set()
        return child

    def left(self) -> list[int]:
        return [child.pid for child in self.started if child.poll() is None]


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    made = Children()
    monkeypatch.setattr(process, "warm_python", lambda: contextlib.nullcontext(made))
    yield made
    for child in made.started:
        child.kill()
        child.wait()


class Cancelled:
    """Runs something on a thread and cancels it once `when` is set."""

    def __init__(self, run: Callable[[], object], when: threading.Event) -> None:
        self.said: BaseException | None = None
        event = threading.Event()

        def work() -> None:
            try:
                with cancellable(event):
                    run()
            except BaseException as error:
                self.said = error

        thread = threading.Thread(target=work)
        thread.start()
        assert when.wait(10)
        event.set()
        thread.join(10)
        assert not thread.is_alive()


def start_two() -> None:
    with started_workers([("a", PROGRAM), ("b", PROGRAM)]):
        raise AssertionError("they never answer")


def test_children_that_start_end_with_the_words(children: Children):
    found = Cancelled(start_two, children.first)
    assert isinstance(found.said, KeyboardInterrupt) and str(found.said) == CANCELLED
    assert children.started and children.left() == []


def test_what_is_cancelled_already_starts_no_child(children: Children):
    event = threading.Event()
    event.set()
    with cancellable(event), pytest.raises(KeyboardInterrupt, match="no process is left"):
        start_two()
    assert children.started == []


def test_the_wait_for_a_child_to_stop_is_cancelled_too(children: Children):
    worker = Worker("a", PROGRAM, children)  # type: ignore[arg-type]
    found = Cancelled(worker.stop, children.first)
    assert isinstance(found.said, KeyboardInterrupt)
    worker.kill()
    assert children.left() == []


def test_the_next_phase_does_not_begin():
    said: list[str] = []
    event = threading.Event()
    shown = Progress(said.append)
    with cancellable(event):
        shown.phase("one")
        event.set()
        with pytest.raises(KeyboardInterrupt) as stop:
            shown.phase("two")
    assert str(stop.value) == CANCELLED and said == ["one"]


def test_what_other_threads_and_what_comes_after_run_goes_on():
    event = threading.Event()
    event.set()
    with cancellable(event), concurrent.futures.ThreadPoolExecutor() as others:
        assert others.submit(require_not_cancelled).result() is None
    require_not_cancelled()

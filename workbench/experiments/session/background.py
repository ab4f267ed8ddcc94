"""Job: a measurement on a thread of its own, to be waited for or cancelled."""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from workbench.errors import OptionError
from workbench.experiments.worker.wire.cancellation import cancellable

Result = TypeVar("Result")


class Job(Generic[Result]):
    """What runs on a thread of its own while the caller goes on.

    It ends with the process that started it, and so do its child processes.

    Attributes:
      result: what the work returned; None until then.
      error: what ended it instead: of the user's code the error that a blocking call would raise,
        and after `cancel` a KeyboardInterrupt with the words to show; None otherwise.
      progress: the last line of progress.
    """

    def __init__(
        self,
        work: Callable[[Callable[[str], None]], Result],
        *,
        release: Callable[[], None],
        on_progress: Callable[[str], None] | None = None,
        on_end: Callable[[Job[Result]], None] | None = None,
    ) -> None:
        """Starts the work.

        Args:
          work: is given a function to call with lines of progress.
          release: called once the work is over, whatever came of it.
          on_progress: called with each line of progress, on the thread of the job.
          on_end: called with the job after all that, on its thread.
        """
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.progress = ""
        self._cancelled, self._over = threading.Event(), threading.Event()
        # The thread alone refers to the functions: what they hold is free when it has ended.
        given = (work, release, on_progress, on_end)
        self._thread = threading.Thread(
            target=self._run, args=given, name="workbench-job", daemon=True
        )
        self._thread.start()

    def __repr__(self) -> str:
        if self.running:
            return f"Job(running, {self.progress!r})" if self.progress else "Job(running)"
        if self.cancelled:
            return "Job(cancelled)"
        if self.error is not None:
            return f"Job(failed, {self.error!r})"
        return f"Job(over, {self.result!r})"

    @property
    def running(self) -> bool:
        """Whether the work goes on."""
        return not self._over.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled before it was over."""
        return isinstance(self.error, KeyboardInterrupt)

    def cancel(self) -> None:
        """Ends the work and its child processes within a second; does not wait for that.

        What is over is left as it is.
        """
        self._cancelled.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the work is over and `on_end` has returned; returns whether it is over.

        Args:
          timeout: seconds to wait at most; None waits as long as it takes.
        """
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return not self.running

    def _run(
        self,
        work: Callable[[Callable[[str], None]], Result],
        release: Callable[[], None],
        on_progress: Callable[[str], None] | None,
        on_end: Callable[[Job[Result]], None] | None,
    ) -> None:
        def say(text: str) -> None:
            self.progress = text
            if on_progress:
                on_progress(text)

        try:
            with cancellable(self._cancelled):
                self.result = work(say)
        except BaseException as error:
            # The frames that failed hold what they worked on as long as the error lives.
            traceback.clear_frames(error.__traceback__)
            self.error = error
        finally:
            release()
            self._over.set()
        if on_end:
            on_end(self)


class Turn:
    """Whose turn it is to run a program: two at the same time would slow each other."""

    def __init__(self, name: str) -> None:
        """Nobody's turn yet; `name` is the program's."""
        self._name, self._running = name, threading.Lock()

    def start(
        self,
        work: Callable[[Callable[[str], None]], Result],
        on_progress: Callable[[str], None] | None,
        on_end: Callable[[Job[Result]], None] | None,
    ) -> Job[Result]:
        """A job that has its turn until it is over; the arguments are those of `Job`.

        Raises:
          OptionError: another one has it.
        """
        self._take()
        try:
            return Job(work, release=self._running.release, on_progress=on_progress, on_end=on_end)
        except RuntimeError:  # no thread could be started
            self._running.release()
            raise

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """The turn of what runs in the block.

        Raises:
          OptionError: another one has it.
        """
        self._take()
        try:
            yield
        finally:
            self._running.release()

    def require_free(self) -> None:
        """Requires that nobody has the turn.

        Raises:
          OptionError: somebody has.
        """
        if self._running.locked():
            raise self._refusal()

    def _take(self) -> None:
        if not self._running.acquire(blocking=False):
            raise self._refusal()

    def _refusal(self) -> OptionError:
        return OptionError(
            f"a run of {self._name!r} goes on, and two at the same time would slow each other; "
            "wait for it, or cancel it"
        )

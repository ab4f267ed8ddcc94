"""What is said of a worker that failed, died, or whose program cannot travel."""

from __future__ import annotations

import signal

from workbench import errors
from workbench.errors import RunError, WorkbenchError
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Program
from workbench.experiments.worker.wire.failure import Failure


def ended_with(code: int) -> RunError:
    """Why a child is gone that ended without a result.

    Args:
      code: its exit code, below 0 for a signal.
    """
    if code == -signal.SIGKILL:
        return RunError(
            "The run ended without a result (signal 9, probably memory). "
            "Lower the batch or the capacity."
        )
    if code < 0:
        name = signal.strsignal(-code) or "unknown"
        return RunError(
            f"The run ended without a result (signal {-code}, {name}). "
            "Native code failed; its last words are above."
        )
    return RunError(f"The run ended without a result (exit code {code}). Its last words are above.")


def error_of(failure: Failure) -> WorkbenchError:
    """The exception of a child, of its own class where it is ours, with its traceback as a note."""
    kind = getattr(errors, failure.kind, RunError) if failure.kind else RunError
    error: WorkbenchError = kind(failure.message)
    error.add_note(f"Traceback of the child process:\n{failure.details}")
    return error


def advice_for(program: object) -> str:
    """What to change in a program that cannot be pickled."""
    if isinstance(program, FunctionProgram):
        return "make models, tf.functions, datasets and files inside its make function"
    where = "build function" if isinstance(program, Program) else "function of requests"
    return f"open files, sessions and graphs inside its {where} instead of outside"

"""The child process of an experiment: builds programs, runs their steps on command.

It answers each command of its parent with one message, and ends with the connection; nothing of it
outlives the parent.
"""

from __future__ import annotations

import dataclasses
import functools
import linecache
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Protocol

import cloudpickle
import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.program.own.program_file import find_program
from workbench.experiments.program.program import Program
from workbench.experiments.program.refusals import refusals_named
from workbench.experiments.worker.described_graph import describe_graph
from workbench.experiments.worker.sampled_ids import sample_ids
from workbench.experiments.worker.steps.graph_session import ProgramSession
from workbench.experiments.worker.steps.stubbed_steps import StubbedStep, StubbedSteps
from workbench.experiments.worker.steps.threads import set_threads
from workbench.experiments.worker.steps.traced_steps import settle, traced_between
from workbench.experiments.worker.tensorflow_import import import_tensorflow, look_for_devices
from workbench.experiments.worker.wire.failure import failure_of
from workbench.experiments.worker.wire.messages import (
    Close,
    Command,
    DescribeGraph,
    FindProgram,
    GetPlan,
    Open,
    Opened,
    RunBlock,
    RunSteps,
    SampleIds,
    Start,
    Steps,
    Stop,
    TraceSteps,
    VerifyFusion,
)
from workbench.freed_memory import keep_freed_memory

if TYPE_CHECKING:
    from workbench.core.trace.trace import Trace
    from workbench.experiments.worker.steps.function_session import FunctionSession


class _Sessions:
    """A program and its open sessions; answers the commands of a parent."""

    def __init__(self, program: AnyProgram) -> None:
        self._program = program
        self._by_name: dict[str, ProgramSession | FunctionSession] = {}
        self._stubs: StubbedSteps | None = None

    def answer(self, command: Command[Any]) -> Any:
        """Runs one command; returns its result."""
        match command:
            case Open():
                return self._open(command)
            case GetPlan():
                return self._by_name[command.session].planned()
            case RunSteps():
                return self._by_name[command.session].run(command.steps, command.fetch)
            case RunBlock():
                return self._run_block(command)
            case TraceSteps():
                return self._trace(command)
            case VerifyFusion():
                return self._by_name[command.session].verify()
            case SampleIds():
                return sample_ids(self._program, command.batches, command.chosen)
            case DescribeGraph():
                return describe_graph(self._program, command.optimizations, command.options)
            case FindProgram():
                return find_program(command.place)
            case Close():
                return self._by_name.pop(command.session).close()
            case Stop():
                return self._close_all()
        raise TypeError(f"the worker knows no command {type(command).__name__}")

    def _open(self, command: Open) -> Opened:
        program = self._program
        set_threads(command.optimizations)
        self._prepare(command.optimizations)
        session: ProgramSession | FunctionSession
        if isinstance(program, FunctionProgram):
            if command.without:
                raise TypeError("a function has no session whose graph is changed")
            # It imports TensorFlow, which this module does on command alone.
            from workbench.experiments.worker.steps.function_session import FunctionSession

            session = FunctionSession(
                program,
                command.optimizations,
                recorded=command.recorded,
                rounding=command.rounding,
                scored=command.scored,
            )
        else:
            session = ProgramSession(
                program,
                command.part,
                command.optimizations,
                sample=command.sample,
                plan=command.plan,
                recorded=command.recorded,
                stub=self._stub(program, command.without) if command.without else None,
                rounding=command.rounding,
                scored=command.scored,
            )
        self._by_name[command.session] = session
        return session.opened

    def _prepare(self, optimizations: Optimizations) -> None:
        """Sets what toggles have for the whole process."""
        is_function = isinstance(self._program, FunctionProgram)
        for each in optimizations.switched:
            with refusals_named(self._program.name, each.label):
                each.toggle.prepare(each.value, is_function=is_function)

    def _stub(self, program: Program, work: str) -> Callable[[], StubbedStep]:
        if self._stubs is None:
            self._stubs = StubbedSteps(program)
        return functools.partial(self._stubs.build, work)

    def _run_block(self, command: RunBlock) -> Steps:
        session = self._by_name[command.session]
        if command.after_rest:
            session.end_rest()
        measured = session.run(command.steps, "loss" if session.opened.has_loss else "nothing")
        if command.settles:
            settle()
        return dataclasses.replace(measured, values=np.empty(0))

    def _trace(self, command: TraceSteps) -> Trace:
        untraced = self._by_name[command.beside or command.session]
        traced = self._by_name[command.session]
        return traced_between(
            untraced.measure,
            lambda: traced.trace(command.steps, step_stats=command.step_stats),
            command.steps,
        )

    def _close_all(self) -> None:
        for session in self._by_name.values():
            session.close()
        self._by_name.clear()


class Answering(Protocol):
    """What answers the commands of a parent."""

    def answer(self, command: Command[Any]) -> Any:
        """Runs one command; returns its result."""


def main(descriptor: int) -> None:
    """Serves the parent of a program, at the other end of a socket."""
    serve(descriptor, _started)


def serve(descriptor: int, start: Callable[[Start], Answering]) -> None:
    """Serves a parent, at the other end of a socket, until it says stop or is gone.

    Args:
      descriptor: of the socket.
      start: takes the parent's program, and returns what answers all later commands.
    """
    connection = Connection(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What the user's code prints must not end among the parent's own output.
    os.dup2(2, 1)
    sessions: Answering | None = None
    while True:
        try:
            command = cloudpickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(1)
        except Exception as error:  # options that cannot be unpickled here
            connection.send_bytes(cloudpickle.dumps(failure_of(error)))
            continue
        result: Any = None
        try:
            if isinstance(command, Start):
                sessions = start(command)
            elif sessions is not None:
                result = sessions.answer(command)
        except Exception as error:
            result = failure_of(error)
        connection.send_bytes(cloudpickle.dumps(result))
        if isinstance(command, Stop):
            # Destructors of a half-dead TensorFlow have nothing to add.
            os._exit(0)


def begin_process(command: Start) -> None:
    """Makes this process ready for a program: TensorFlow, memory, the source of cells."""
    # Else how fast a variant is depends on which process it got.
    keep_freed_memory()
    import_tensorflow()
    look_for_devices()
    linecache.cache.update(command.cells)


def _started(command: Start) -> _Sessions:
    begin_process(command)
    return _Sessions(cloudpickle.loads(command.program))

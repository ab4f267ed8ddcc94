"""The child process of a served model: answers the commands of a measurement."""

from __future__ import annotations

from typing import Any

import cloudpickle

from workbench.errors import RunError
from workbench.experiments.program.refusals import refusals_named
from workbench.experiments.serving.served_model import ServedModel
from workbench.experiments.serving.server.messages import (
    AnswerSample,
    LoadModel,
    MakeRequests,
    RunLoad,
)
from workbench.experiments.serving.server.request_set import request_set
from workbench.experiments.serving.server.served_sessions import ServedSessions, described
from workbench.experiments.worker.child import begin_process, serve
from workbench.experiments.worker.steps.threads import set_threads
from workbench.experiments.worker.wire.messages import Command, Start, Stop


class _ServedChild:
    """A served model and, once they are loaded, its sessions."""

    def __init__(self, program: ServedModel) -> None:
        self._program = program
        self._sessions: ServedSessions | None = None

    def answer(self, command: Command[Any]) -> Any:
        """Runs one command; returns its result."""
        match command:
            case MakeRequests():
                meta_graph, signature = described(self._program)
                return request_set(
                    self._program, meta_graph, signature, command.rows, command.count
                )
            case LoadModel():
                return self._load(command)
            case RunLoad():
                return self._loaded().run(command)
            case AnswerSample():
                return self._loaded().answers(command)
            case Stop():
                # The process ends at once, and with it all that sessions hold.
                return None
        raise TypeError(f"the child of a served model knows no {type(command).__name__}")

    def _load(self, command: LoadModel) -> Any:
        set_threads(command.optimizations)
        for choice in command.optimizations.switched:
            with refusals_named(self._program.name, choice.label):
                choice.toggle.prepare(choice.value, is_function=False)
        self._sessions = ServedSessions(self._program, command.optimizations, command.requests)
        return self._sessions.loaded

    def _loaded(self) -> ServedSessions:
        if self._sessions is None:
            raise RunError("no model is loaded yet")
        return self._sessions


def _started(command: Start) -> _ServedChild:
    begin_process(command)
    return _ServedChild(cloudpickle.loads(command.program))


def main(descriptor: int) -> None:
    """Serves a parent, at the other end of a socket, until it says stop or is gone."""
    serve(descriptor, _started)

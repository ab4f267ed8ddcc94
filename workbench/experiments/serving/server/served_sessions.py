"""ServedSessions: the sessions of one setting, and the loads that its clients run."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy
from workbench.errors import OptionError, RunError
from workbench.experiments.program.variant import LEARNING
from workbench.experiments.serving.load.arrivals import poisson_arrivals
from workbench.experiments.serving.load.generator import run_clients, run_open_loop
from workbench.experiments.serving.load.step_limit import NoLimit, StepLimit
from workbench.experiments.serving.load.summary import block_of, spans_of
from workbench.experiments.serving.served_model import ServedModel
from workbench.experiments.serving.server.c_session import CSender, CSession, TensorPool
from workbench.experiments.serving.server.messages import (
    Answers,
    AnswerSample,
    Loaded,
    RanLoad,
    RequestSet,
    RunLoad,
)
from workbench.experiments.serving.server.model_config import model_config
from workbench.experiments.serving.server.signature import (
    SERVE,
    Signature,
    read_meta_graph,
    signature_of,
)
from workbench.experiments.serving.toggles import sessions_of, steps_at_once_of
from workbench.experiments.worker.memory_use import resident_bytes

# Requests of each session before any counts, of each number of rows, and how long they may take.
_WARM_UP, _WARM_UP_S = 20, 5.0


class ServedSessions:
    """A saved model, loaded once or several times."""

    def __init__(
        self, program: ServedModel, optimizations: Optimizations, requests: RequestSet
    ) -> None:
        """Loads the model and warms it up.

        Raises:
          DataError: it cannot be loaded.
          OptionError: the setting has no effect on it.
          RunError: every request fails.
        """
        meta_graph = read_meta_graph(program.path)
        self._signature = signature = signature_of(meta_graph, program.signature)
        config, fused = model_config(meta_graph, program.signature, optimizations)
        self._pools = {
            rows: TensorPool(requests, signature.kinds)
            for rows, requests in requests.by_rows.items()
        }
        before = resident_bytes(os.getpid())
        self._sessions = [
            CSession(
                program.path,
                [SERVE],
                config.SerializeToString(),
                signature.feeds,
                signature.fetches,
            )
            for _ in range(sessions_of(optimizations))
        ]
        learns = optimizations.executor == ExecutorPolicy.COST_MODEL
        self._warm_up(LEARNING.stop_step + LEARNING.TRIAL_STEPS if learns else _WARM_UP)
        steps = steps_at_once_of(optimizations)
        self._limit = StepLimit(steps) if steps else NoLimit()
        (sender,) = self._senders(next(iter(self._pools)), 1)
        self._call_cost_ns = sender.call_cost_ns()
        sender.close()
        self.loaded = Loaded(
            memory_bytes=max(0, resident_bytes(os.getpid()) - before),
            sessions=len(self._sessions),
            steps_at_once=steps,
            fused_ops=fused,
        )

    def _warm_up(self, requests: int) -> None:
        deadline = time.monotonic() + _WARM_UP_S
        for rows in self._pools:
            for sender in self._senders(rows, len(self._sessions)):
                answered = [
                    sender.send(number)
                    for number in range(requests)
                    if not number or time.monotonic() < deadline
                ]
                first_error = sender.first_error
                sender.close()
                if not any(answered):
                    raise RunError(f"every request fails: {first_error}")

    def _senders(self, rows: int, clients: int) -> list[CSender]:
        if rows not in self._pools:
            raise OptionError(f"there are no requests of {rows} rows")
        sessions, fetches = self._sessions, len(self._signature.fetches)
        return [
            CSender(sessions[client % len(sessions)], self._pools[rows], fetches)
            for client in range(clients)
        ]

    def run(self, command: RunLoad) -> RanLoad:
        """Runs one block of a load."""
        load, seconds = command.load, command.seconds
        senders = self._senders(command.rows, load.clients)
        if load.rate is None:
            sent = run_clients(senders, seconds, limit=self._limit)
        else:
            arrivals = poisson_arrivals(load.rate, seconds, command.seed)
            sent = run_open_loop(senders, arrivals, limit=self._limit)
        first_error = _first_error(senders)
        for sender in senders:
            sender.close()
        if sent.unsent and not first_error:
            first_error = "not sent, since those before were not answered in time"
        return RanLoad(
            block=block_of(
                sent,
                seconds,
                is_open=load.rate is not None,
                call_cost_ns=self._call_cost_ns,
            ),
            unsent=sent.unsent,
            first_error=first_error,
            spans=spans_of(sent) if command.with_spans else (),
        )

    def answers(self, command: AnswerSample) -> Answers:
        """What the first requests are answered, one after the other."""
        (sender,) = self._senders(command.rows, 1)
        values, errors = [], []
        for number in range(command.count):
            try:
                values.append(tuple(sender.answer(number)))
                errors.append("")
            except RunError as error:
                values.append(())
                errors.append(str(error))
        sender.close()
        return Answers(
            outputs=self._signature.outputs,
            values=tuple(values),
            errors=tuple(errors),
            types=self._signature.output_types,
        )


def described(program: ServedModel) -> tuple[object, Signature]:
    """The MetaGraphDef and the signature of a program.

    Raises:
      DataError, OptionError: as of `read_meta_graph` and `signature_of`.
    """
    meta_graph = read_meta_graph(program.path)
    return meta_graph, signature_of(meta_graph, program.signature)


def _first_error(senders: Sequence[CSender]) -> str:
    return next((sender.first_error for sender in senders if sender.first_error), "")

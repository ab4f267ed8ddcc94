"""SessionOpener: opens the sessions of settings, each on the plan that its graph has."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from workbench.core.optimizations import Optimizations
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.applicable_toggles import NO_STAGE, no_lookup
from workbench.experiments.comparison.running.open_sessions import sample_trace
from workbench.experiments.measurement.blocks import TimedSession
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    require_possible,
)
from workbench.experiments.program.toggles import own_choices
from workbench.experiments.program.variant import Variant
from workbench.experiments.search.racing.racer import Racer
from workbench.experiments.search.racing.refused import (
    REFUSALS,
    Refused,
    graph_of,
    moves_nothing,
    refused_by,
)
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.wire.messages import GetPlan, Open, Opened

# Steps and seconds of a trace that a smart stage is planned on.
_SAMPLE_STEPS, _SAMPLE_S = 12, 3.0


class SessionOpener:
    """Opens sessions of one program; the traces and the plans of its graphs are kept.

    Several are opened at a time: all are prepared, then all asked for, then all waited for.
    """

    def __init__(self, program: AnyProgram) -> None:
        """Nothing is traced or planned yet."""
        self._program = program
        self._samples: dict[Optimizations, Trace] = {}
        self._plans: dict[object, StagePlan] = {}

    def keep_sample(self, setting: Optimizations, trace: Trace) -> None:
        """A trace of a setting; smart stages are planned on it if that is un-staged."""
        self._samples[setting] = trace

    def prepare(self, variant: Variant, worker: Worker, others: Iterable[Worker]) -> Refused | None:
        """Whether a setting is possible at all; takes the trace that it is planned on.

        Args:
          variant: the setting, without a plan.
          worker: its process.
          others: processes of settings that race already.
        """
        wish = variant.optimizations
        unstaged, needs_trace = _unstaged(wish), wish.smart_stage is not None
        try:
            require_possible(self._program, wish)
            if not needs_trace or graph_of(wish) in self._plans or unstaged in self._samples:
                return None
            # A function's plan is always the widest.
            if not isinstance(self._program, FunctionProgram):
                # Not in a process of its own: its first session says how many threads it has. What
                # an author's choice sets in a process must not reach the baseline's.
                where = worker if unstaged.switched else next(iter(others), worker)
                self._samples[unstaged] = sample_trace(where, unstaged, _SAMPLE_STEPS, _SAMPLE_S)
        except REFUSALS as error:
            return refused_by(variant, error)
        return None

    def ask(self, variant: Variant, worker: Worker) -> Refused | None:
        """Sends what opens a session, without waiting for it."""
        wish, plan, sample = variant.optimizations, None, None
        if wish.smart_stage is not None:
            plan = self._plans.get(graph_of(wish))
            sample = None if plan else self._samples.get(_unstaged(wish))
        try:
            worker.send(
                Open(
                    session="main",
                    optimizations=wish,
                    sample=sample,
                    plan=plan.to_json() if plan else None,
                )
            )
        except REFUSALS as error:
            return refused_by(variant, error)
        return None

    def opened(self, variant: Variant, worker: Worker) -> Racer | Refused:
        """Waits for a session that was asked for; refused where it is not what the setting says."""
        wish = variant.optimizations
        try:
            opened: Opened = worker.receive()
            if wish.smart_stage:
                graph = graph_of(wish)
                if graph not in self._plans:
                    self._plans[graph] = worker.call(GetPlan(session="main")).to_plan()
                variant = dataclasses.replace(variant, plan=self._plans[graph])
        except REFUSALS as error:
            return refused_by(variant, error)
        if wish.stage and not opened.stages:
            return Refused(
                label=variant.label, reason=NO_STAGE, holds_for=lambda other: bool(other.stage)
            )
        if wish.fused_embeddings and not opened.fused_ops:
            return Refused(
                label=variant.label,
                reason=no_lookup(wish),
                holds_for=lambda other: (
                    bool(other.fused_embeddings) and other.fuses_graph == wish.fuses_graph
                ),
            )
        if variant.plan and not variant.plan.stages:
            return moves_nothing(variant)
        timed = TimedSession(
            label=variant.label,
            worker=worker,
            name="main",
            ahead=variant.ahead,
            learning_steps=variant.learning_steps,
        )
        return Racer(variant=variant, worker=worker, opened=opened, timed=timed)


def _unstaged(wish: Optimizations) -> Optimizations:
    """What a smart stage is planned on: TensorFlow's own toggles leave the program's graph alone.

    An author's may build another one. The first session of a process says how many threads it has.
    """
    chosen = own_choices(wish)
    is_switched = any(not each.is_usual for each in chosen)
    return Optimizations(
        fused_embeddings=wish.fused_embeddings,
        inter_op_threads=wish.inter_op_threads if is_switched else None,
        intra_op_threads=wish.intra_op_threads if is_switched else None,
        chosen=chosen,
    )

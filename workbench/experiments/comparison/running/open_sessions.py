"""Opens the sessions to measure; a smart stage is planned on a trace of the program as it is.

The trace is taken in a session of its own while every other process rests.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.trace.trace import Trace
from workbench.errors import OptionError
from workbench.experiments.comparison.applicable_toggles import no_lookup
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import BUILD, PLAN, SAMPLE
from workbench.experiments.measurement.time_budget import steps_within, warm_step_s
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    require_possible,
)
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.steps.first_steps import WARM_UP_STEPS
from workbench.experiments.worker.wire.messages import (
    Close,
    GetPlan,
    Open,
    Opened,
    RunSteps,
    TraceSteps,
)

_FIRST_STEPS = 5
# What a trace has at least, however slow a step is.
FEWEST_TRACED_STEPS = 5


def open_sessions(
    program: AnyProgram,
    variants: Sequence[Variant],
    workers: Sequence[Worker],
    *,
    sample_steps: int,
    sample_s: float = math.inf,
    samples: Mapping[Optimizations, Trace] | None = None,
    progress: Progress,
    recorded: bool = False,
) -> tuple[Opened, list[Variant]]:
    """Opens the session "main" in every worker.

    Args:
      program: what is run.
      variants: one for each worker.
      workers: started, without a session.
      sample_steps: steps of the un-staged program to trace for the smart stages; 0
        plans them without a trace.
      sample_s: seconds for each such trace; fewer steps are traced where they are too few.
      samples: such traces that were taken before, by the setting that they are of.
      progress: shows what is done.
      recorded: on an executor that records its ops: the normal one, where none is chosen.

    Returns:
      What is known of the first session's graph, and the variants with their plans. A variant
      whose worker has failed, and may, has none.

    Raises:
      OptionError: a variant wants the user's own stage or fused lookups, and the program builds
        none or can have none.
      PlanError: a smart stage finds no input, or several.
    """
    for variant in variants:
        require_possible(program, variant.optimizations)
    pairs = list(zip(variants, workers, strict=True))
    unplanned = [(v, worker, None) for v, worker in pairs if not v.optimizations.smart_stage]
    smart = [(v, worker) for v, worker in pairs if v.optimizations.smart_stage]
    # In the process of the first variant that is planned on it, whose environment it has.
    samples = dict(samples or {})
    samplers = {
        _unstaged(v.optimizations): worker
        for v, worker in reversed(smart)
        if _unstaged(v.optimizations) not in samples
    }
    # A function's plan needs none.
    sampled = bool(sample_steps and not isinstance(program, FunctionProgram))
    progress.phase("Building the graphs", BUILD)
    for unstaged, worker in samplers.items() if sampled else ():
        worker.send(_sample_of(unstaged))
    opened = _opened(program, unplanned, recorded)
    for worker in samplers.values() if sampled else ():
        worker.receive()
    if smart:
        for unstaged, worker in samplers.items() if sampled else ():
            progress.phase(
                f"Tracing {sample_steps} steps for the smart stage to be planned on", SAMPLE
            )
            samples[unstaged] = _traced_sample(worker, sample_steps, sample_s)
        progress.phase("Planning the smart stage", PLAN)
        planned_on = [(v, w, samples.get(_unstaged(v.optimizations))) for v, w in smart]
        opened |= _opened(program, planned_on, recorded)
    planned = [
        _with_plan(variant, worker) if variant.optimizations.smart_stage else variant
        for variant, worker in pairs
    ]
    return opened[variants[0].label], planned


def _unstaged(wish: Optimizations) -> Optimizations:
    """What a smart stage is planned on: no executor, as the plan's predictions speak of stock's."""
    return Optimizations(fused_embeddings=wish.fused_embeddings, chosen=wish.chosen)


def _opened(
    program: AnyProgram,
    sampled: Sequence[tuple[Variant, Worker, Trace | None]],
    recorded: bool,
) -> dict[str, Opened]:
    """Opens the session "main" of variants, each with the trace that its plan is made on."""
    for variant, worker, sample in sampled:
        worker.send(
            Open(
                session="main",
                optimizations=variant.optimizations,
                sample=sample,
                recorded=recorded,
            )
        )
    opened = {variant.label: worker.receive() for variant, worker, _ in sampled}
    for variant, worker, _ in sampled:
        if worker.failure is None:
            _require_effect(program, variant.optimizations, opened[variant.label])
    return opened


def _require_effect(program: AnyProgram, wish: Optimizations, opened: Opened) -> None:
    if wish.stage and not opened.stages:
        raise OptionError(
            f"program {program.name!r} builds no stage when optimizations.stage is set, so "
            "there is nothing to compare; hand it to workbench.staged(…) in the build function"
        )
    if not wish.fused_embeddings or opened.fused_ops:
        return
    if wish.fuses_graph:
        raise OptionError(f"program {program.name!r}: {no_lookup(wish)}")
    raise OptionError(
        f"program {program.name!r} builds no embedding lookup through Workbench, so there "
        "is nothing to fuse; call workbench.safe_embedding_lookup_sparse(…), or import "
        "workbench.compat.v1 as tf, in the build function; fused_embeddings='auto' (toggle "
        "auto_fused) fuses stock lookups, batch normalizations and interactions of vectors"
    )


def sample_trace(worker: Worker, setting: Optimizations, steps: int, seconds: float) -> Trace:
    """Traces warm steps in a session of their own; they must not be those compared later.

    Args:
      worker: where; no session "sample" is open there, before and afterwards.
      setting: what is traced.
      steps: most steps to trace, fewer where the time is short.
      seconds: for warming up and tracing.
    """
    worker.call(_sample_of(setting))
    return _traced_sample(worker, steps, seconds)


def _sample_of(setting: Optimizations) -> Open:
    return Open(session="sample", optimizations=setting, recorded=True)


def _traced_sample(worker: Worker, steps: int, seconds: float) -> Trace:
    """The trace of a session that `_sample_of` has opened; it is closed then."""
    step_s = warm_step_s(worker.call(RunSteps(session="sample", steps=_FIRST_STEPS)))
    warm_up = steps_within(seconds / 3, step_s, least=0, most=WARM_UP_STEPS - _FIRST_STEPS)
    worker.call(RunSteps(session="sample", steps=warm_up))
    kept = steps_within(seconds / 2, step_s, least=min(FEWEST_TRACED_STEPS, steps), most=steps)
    trace = worker.call(TraceSteps(session="sample", steps=kept))
    worker.call(Close(session="sample"))
    return trace


def _with_plan(variant: Variant, worker: Worker) -> Variant:
    planned = worker.call(GetPlan(session="main"))
    if worker.failure is not None:
        return variant
    return dataclasses.replace(variant, plan=planned.to_plan())

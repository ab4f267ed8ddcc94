"""Traces of variants once their blocks are over, of as many steps as there is time for."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.running.open_sessions import FEWEST_TRACED_STEPS
from workbench.experiments.measurement.bounds import COMPUTE, INPUT
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import TRACE
from workbench.experiments.measurement.time_budget import steps_within
from workbench.experiments.program.function_program import AnyProgram, untraced
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.steps.first_steps import WARM_UP_STEPS
from workbench.experiments.worker.wire.messages import Close, Open, RunBlock, TraceSteps

# Each trace goes with steps that are not kept: untraced ones before and after, and those under the
# tracer that settle it and tell what the input uses. And seconds to open its session and build it,
# where that is not known.
_RUNS_OF_A_TRACED_STEP, _TRACE_S = 4, 2.5


def steps_to_trace(
    steps: int, steps_s: Sequence[float], seconds: float, open_s: float | None = None
) -> tuple[int, float]:
    """How many steps of each variant to trace, and what that takes in seconds.

    Args:
      steps: most of them.
      steps_s: seconds of a step of each variant.
      seconds: for all of it; the fewest steps that say something are traced in any case.
      open_s: seconds to open the sessions that are traced; None where that is not known.
    """
    if not steps:
        return 0, 0.0
    all_s = sum(steps_s)
    opened_s = _TRACE_S * len(steps_s) if open_s is None else open_s
    fixed_s = WARM_UP_STEPS * all_s + opened_s
    kept_s = _RUNS_OF_A_TRACED_STEP * all_s
    least = min(FEWEST_TRACED_STEPS, steps)
    count = steps_within(seconds - fixed_s, kept_s, least=least, most=steps)
    return count, fixed_s + count * kept_s


def traced_variants(
    program: AnyProgram,
    variants: Sequence[Variant],
    workers: Sequence[Worker],
    steps: int,
    *,
    step_stats: bool,
    progress: Progress,
) -> dict[str, Trace]:
    """Traces of a few steps of each variant, by label, whose session "main" is warm.

    TensorFlow's own executor records no ops, so a variant on it is traced in a second session, on
    the normal executor, interleaved with the measured one.
    """
    if not steps or untraced(program):
        return {}
    progress.phase(f"Tracing {steps} steps", TRACE)
    traces = {}
    if program.build_input and program.build_compute:
        for part in (INPUT, COMPUTE):
            workers[0].call(Close(session=part))
    pairs = list(zip(variants, workers, strict=True))
    again = [
        (variant, worker)
        for variant, worker in pairs
        if variant.optimizations.executor is None and not step_stats
    ]
    # All at once: what is built is not measured.
    for variant, worker in again:
        plan = variant.plan.to_json() if variant.plan else None
        on = variant.optimizations
        worker.send(Open(session="traced", optimizations=on, plan=plan, recorded=True))
    for _, worker in again:
        worker.receive()
    for variant, worker in pairs:
        session = "traced" if (variant, worker) in again else "main"
        if session == "traced":
            worker.call(RunBlock(session=session, steps=WARM_UP_STEPS))
        trace = traced(worker, session, steps, step_stats=step_stats)
        if worker.failure is None:
            traces[variant.label] = trace
        if session == "traced":
            worker.call(Close(session=session))
    return traces


def traced(worker: Worker, session: str, steps: int, *, step_stats: bool) -> Trace:
    """Traces a few steps of a session, between untraced steps of the session "main"."""
    return worker.call(
        TraceSteps(session=session, steps=steps, beside="main", step_stats=step_stats)
    )

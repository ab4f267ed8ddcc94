"""InterleavedRun: variants whose child processes live at the same time and run in turn.

Opens their sessions, compares their training, measures blocks, then traces a few steps.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.running.checks import run_checks
from workbench.experiments.comparison.running.failures import (
    Pairs,
    failure_words,
    failures,
    running,
    split,
    tolerance_of,
)
from workbench.experiments.comparison.running.open_sessions import (
    FEWEST_TRACED_STEPS,
    open_sessions,
)
from workbench.experiments.measurement.blocks import (
    MeasuredBlocks,
    TimedSession,
    run_blocks,
    run_pilots,
)
from workbench.experiments.measurement.bounds import COMPUTE, INPUT
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.equivalence_runs import verify_fusion
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import BlockPlan
from workbench.experiments.measurement.time_budget import TimeBudget, steps_within
from workbench.experiments.program.function_program import AnyProgram, untraced
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.steps.first_steps import WARM_UP_STEPS
from workbench.experiments.worker.wire.messages import Close, Open, Opened, RunBlock, TraceSteps

# A part may prefetch a little to hide what a session run costs.
_PART_AHEAD = 2
# What a part of a comparison gets of the time that is left when it begins; blocks get the rest. And
# what each gets at least: a budget that was spent on starting is exceeded by little.
_SAMPLE_SHARE, _PILOTS_SHARE, _TRACES_SHARE = 0.1, 0.2, 0.3
_LEAST_S = 1.0
# Each trace goes with steps that are not kept: untraced ones before and after, and those under the
# tracer that settle it and tell what the input uses. And seconds to open its session and build it.
_RUNS_OF_A_TRACED_STEP, _TRACE_S = 4, 2.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterleavedRun:
    """What variants that ran beside each other gave.

    Attributes:
      variants: the baseline first, with their plans.
      opened: what is known of the baseline's graph.
      checks: whether training stayed the same.
      plan: how blocks were laid out.
      measured: rates by label, those of the program's parts included.
      traces: by label; empty where none was asked for.
      failed: why variants with a choice of a toggle failed, a sentence each, by label. Those that
        are not among `variants` were left out, the others have no trace.
    """

    variants: tuple[Variant, ...]
    opened: Opened
    checks: tuple[Equivalence, ...]
    plan: BlockPlan
    measured: dict[str, MeasuredBlocks]
    traces: dict[str, Trace]
    failed: Mapping[str, str] = dataclasses.field(default_factory=dict)


def run_interleaved(
    program: AnyProgram,
    variants: Sequence[Variant],
    *,
    budget_s: float,
    trace_steps: int,
    step_stats: bool,
    equivalence_steps: int,
    progress: Progress,
    verify: bool = False,
    answer_limit_s: float | None = None,
) -> InterleavedRun:
    """Measures variants, each in a child process of its own; the first is the baseline.

    Args:
      program, trace_steps, step_stats, equivalence_steps, verify, answer_limit_s: as of `compare`.
      budget_s: seconds for all of it, starting and tracing included.
      variants: without their plans.
      progress: shows what is done.

    Raises:
      OptionError, PlanError, RunError, KeyboardInterrupt: as `compare`.
    """
    budget = TimeBudget(budget_s)
    progress.phase(f"Starting {len(variants)} child processes")
    with started_workers(
        [(s.label, program) for s in variants],
        [s.environment for s in variants],
        tolerance_of(variants, answer_limit_s, budget_s),
    ) as workers:
        opened, planned = open_sessions(
            program,
            variants,
            workers,
            sample_steps=trace_steps,
            sample_s=budget.share_s(_SAMPLE_SHARE, _LEAST_S),
            progress=progress,
        )
        pairs = list(zip(planned, workers, strict=True))
        left = running(pairs)
        checks = run_checks(program, left, opened, equivalence_steps, budget, progress)
        left = running(left)
        if verify:
            progress.phase("Verifying what is fused")
            checks += verify_fusion(*split(left[1:]))
            left = running(left)
        sessions = _timed_sessions(program, left)
        pilots = run_pilots(
            sessions, budget_s=budget.share_s(_PILOTS_SHARE, _LEAST_S), progress=progress
        )
        left = running(left)
        runs = [session.worker.failure is None for session in sessions]
        sessions = list(itertools.compress(sessions, runs))
        pilots = list(itertools.compress(pilots, runs))
        # The sessions begin with those of the variants, in their order.
        steps_s = [pilot.step_ns / 1e9 for pilot in pilots[: len(left)]]
        steps, trace_s = steps_to_trace(
            trace_steps, steps_s, budget.share_s(_TRACES_SHARE, _LEAST_S)
        )
        plan, measured = run_blocks(
            sessions,
            pilots,
            budget_s=max(_LEAST_S, budget.left_s() - trace_s),
            then_s=trace_s,
            progress=progress,
        )
        left = running(left)
        traces = traced_variants(
            program, *split(left), steps, step_stats=step_stats, progress=progress
        )
    measured_labels = {variant.label for variant, _ in left}
    return InterleavedRun(
        variants=tuple(variant for variant, _ in left),
        opened=opened,
        checks=tuple(check for check in checks if check.label in measured_labels),
        plan=plan,
        measured=measured,
        traces=traces,
        failed={label: failure_words(label, error) for label, error in failures(pairs).items()},
    )


def _timed_sessions(program: AnyProgram, pairs: Pairs) -> list[TimedSession]:
    """The variants and, where the program has them, its parts for the bound."""
    sessions = [
        TimedSession(
            label=variant.label,
            worker=worker,
            name="main",
            ahead=variant.ahead,
            learning_steps=variant.learning_steps,
        )
        for variant, worker in pairs
    ]
    baseline, worker = pairs[0]
    if program.build_input and program.build_compute:
        for label, part in ((INPUT, "build_input"), (COMPUTE, "build_compute")):
            # In the child of the baseline: a part is no variant, and while it runs all else waits.
            plain = Optimizations(chosen=baseline.optimizations.chosen)
            worker.call(Open(session=label, part=part, optimizations=plain))
            sessions.append(TimedSession(label=label, worker=worker, name=label, ahead=_PART_AHEAD))
    return sessions


def steps_to_trace(steps: int, steps_s: Sequence[float], seconds: float) -> tuple[int, float]:
    """How many steps of each variant to trace, at most `steps`, and what that takes in seconds."""
    if not steps:
        return 0, 0.0
    all_s = sum(steps_s)
    fixed_s = WARM_UP_STEPS * all_s + _TRACE_S * len(steps_s)
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
    progress.phase(f"Tracing {steps} steps")
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

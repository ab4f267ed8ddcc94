"""InterleavedRun: variants whose child processes live at the same time and run in turn.

Opens their sessions, compares their training, measures blocks, then traces a few steps.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.running.checks import (
    check_batches,
    check_losses,
    seconds_of_batches,
)
from workbench.experiments.comparison.running.failures import (
    Pairs,
    failure_words,
    failures,
    running,
    split,
    tolerance_of,
)
from workbench.experiments.comparison.running.open_sessions import open_sessions
from workbench.experiments.comparison.running.traces import steps_to_trace, traced_variants
from workbench.experiments.measurement.blocks import (
    MeasuredBlocks,
    TimedSession,
    run_blocks,
    run_pilots,
)
from workbench.experiments.measurement.bounds import COMPUTE, INPUT
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.equivalence_runs import verify_fusion
from workbench.experiments.measurement.evidence import Evidence, paired_ratio
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import BATCHES, BUILD, START, TRACE
from workbench.experiments.measurement.statistics import BlockPlan
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.function_program import AnyProgram, own_batch_size
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import Open, Opened

# A part may prefetch a little to hide what a session run costs.
_PART_AHEAD = 2
# What a part of a comparison gets of the time that is left when it begins; blocks get the rest. And
# what each gets at least: a budget that was spent on starting is exceeded by little.
_SAMPLE_SHARE, _PILOTS_SHARE, _TRACES_SHARE = 0.1, 0.2, 0.3
_LEAST_S = 1.0


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
      stop_when_clear: whether a look at the blocks might end them; then intervals hold at every
        look.
      failed: why variants with a choice of a toggle failed, a sentence each, by label. Those that
        are not among `variants` were left out, the others have no trace.
    """

    variants: tuple[Variant, ...]
    opened: Opened
    checks: tuple[Equivalence, ...]
    plan: BlockPlan
    measured: dict[str, MeasuredBlocks]
    traces: dict[str, Trace]
    stop_when_clear: bool = False
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
    stop_when_clear: bool = False,
    samples: Mapping[Optimizations, Trace] | None = None,
    seed: int = 0,
) -> InterleavedRun:
    """Measures variants, each in a child process of its own; the first is the baseline.

    Args:
      program, trace_steps, step_stats, equivalence_steps, verify, answer_limit_s, stop_when_clear,
        samples, seed: as of `compare`.
      budget_s: seconds for all of it, starting and tracing included.
      variants: without their plans.
      progress: shows what is done.

    Raises:
      OptionError, PlanError, RunError, KeyboardInterrupt: as `compare`.
    """
    budget = TimeBudget(budget_s)
    progress.phase(f"Starting {len(variants)} child processes", START)
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
            samples=samples,
            progress=progress,
        )
        pairs = list(zip(planned, workers, strict=True))
        left = running(pairs)
        checks = check_losses(left, opened, equivalence_steps, budget, progress)
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
        # As many graphs as were built are built once more for the batches, and for the traces.
        steps_of_batches_s, batches_s = seconds_of_batches(
            program, left, opened, equivalence_steps, budget, progress.took_s(BUILD)
        )
        for_traces_s = max(_LEAST_S, _TRACES_SHARE * (budget.left_s() - batches_s))
        steps, trace_s = steps_to_trace(trace_steps, steps_s, for_traces_s, progress.took_s(BUILD))
        progress.expect(BATCHES, batches_s)
        progress.expect(TRACE, trace_s)
        scales = _scales(program, [variant for variant, _ in left])
        plan, measured = run_blocks(
            sessions,
            pilots,
            budget_s=max(_LEAST_S, budget.left_s() - trace_s - batches_s),
            then_s=trace_s + batches_s,
            progress=progress,
            compared=scales,
            stop_when_clear=stop_when_clear,
        )
        left = running(left)
        progress.evidence(_measured_ratios(left, measured, scales, stop_when_clear, seed))
        # In sessions of their own, so that nobody waits for them before the first number.
        checks += check_batches(
            program, left, opened, equivalence_steps, steps_of_batches_s, progress
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
        stop_when_clear=stop_when_clear,
        failed={label: failure_words(label, error) for label, error in failures(pairs).items()},
    )


def _timed_sessions(program: AnyProgram, pairs: Pairs) -> list[TimedSession]:
    """The variants and, where the program has them, its parts for the bound."""
    baseline, worker = pairs[0]
    has_parts = bool(program.build_input and program.build_compute)
    sessions = [
        TimedSession(
            label=variant.label,
            worker=own,
            name="main",
            ahead=variant.ahead,
            learning_steps=variant.learning_steps,
            is_alone=not (has_parts and own is worker),
        )
        for variant, own in pairs
    ]
    for label, part in ((INPUT, "build_input"), (COMPUTE, "build_compute")) if has_parts else ():
        # In the child of the baseline: a part is no variant, and while it runs all else waits.
        plain = Optimizations(chosen=baseline.optimizations.chosen)
        worker.call(Open(session=label, part=part, optimizations=plain))
        sessions.append(
            TimedSession(label=label, worker=worker, name=label, ahead=_PART_AHEAD, is_alone=False)
        )
    return sessions


def _scales(program: AnyProgram, variants: Sequence[Variant]) -> dict[str, float]:
    """Samples of a step of each variant over the baseline's, which is the first."""
    first = samples_of_a_step(program, variants[0])
    return {each.label: samples_of_a_step(program, each) / first for each in variants[1:]}


def samples_of_a_step(program: AnyProgram, variant: Variant) -> float:
    """Rows of a batch; 1 where they do not count, since all variants have as many."""
    return variant.optimizations.batch_size or own_batch_size(program) or 1


def _measured_ratios(
    pairs: Pairs,
    measured: Mapping[str, MeasuredBlocks],
    scales: Mapping[str, float],
    stop_when_clear: bool,
    seed: int,
) -> list[Evidence]:
    """The ratios of variants once no more blocks come, as the result has them."""
    baseline = measured[pairs[0][0].label].rates
    said = []
    for variant, _ in pairs[1:]:
        rates, scale = measured[variant.label].rates, scales[variant.label]
        ratio = paired_ratio(rates, baseline, scale, seed=seed, anytime=stop_when_clear)
        ratios = tuple(scale * a / b for a, b in zip(rates, baseline, strict=True))
        said.append(
            Evidence(
                label=variant.label,
                ratios=ratios,
                rounds=len(ratios),
                interval=ratio,
                final=True,
            )
        )
    return said

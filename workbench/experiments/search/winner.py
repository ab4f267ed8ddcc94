"""The winner of a race: whether it trains the same, a few traced steps, the comparison of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.running.interleaved_run import InterleavedRun
from workbench.experiments.comparison.running.traces import traced_variants
from workbench.experiments.measurement.blocks import MeasuredBlocks
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.equivalence_runs import compare_batches, compare_losses
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import CHECK
from workbench.experiments.measurement.statistics import BlockPlan
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.search.racing.race import Race
from workbench.experiments.search.racing.racer import Racer, answers_within
from workbench.experiments.worker.steps.first_steps import WARM_UP_STEPS
from workbench.experiments.worker.wire.messages import Close, Open, RunBlock

# Most steps whose losses and batches are compared.
_STEPS = 100
# A setting that takes longer than this many times its time for that is stuck; seconds at least.
_CHECK_FACTOR, _LEAST_CHECK_S = 4.0, 20.0


def checked(
    program: AnyProgram, baseline: Racer, racer: Racer, seconds: float, progress: Progress
) -> list[Equivalence]:
    """Compares losses and batches of a racer with the baseline's, in new sessions of both.

    Args:
      program: what they run.
      baseline, racer: those whose sessions "main" are begun anew.
      seconds: for running the steps; fewer are compared where they are too few.
      progress: shows what is done.

    Raises:
      RunError: a run failed.
    """
    progress.phase(f"Checking that {racer.variant.label} trains the same", CHECK)
    with answers_within([racer.worker], max(_LEAST_CHECK_S, _CHECK_FACTOR * seconds)):
        return _checks(program, [baseline, racer], seconds)


def _checks(program: AnyProgram, pair: Sequence[Racer], seconds: float) -> list[Equivalence]:
    """Those of the second one beside the first."""
    for each in pair:
        plan = each.variant.plan.to_json() if each.variant.plan else None
        each.worker.send(Close(session="main"))
        each.worker.send(Open(session="main", optimizations=each.variant.optimizations, plan=plan))
    for each in pair:
        each.worker.receive()
        each.worker.receive()
    variants, workers = [each.variant for each in pair], [each.worker for each in pair]
    checks: list[Equivalence] = []
    opened = pair[0].opened
    if opened.has_loss:
        checks += compare_losses(variants, workers, opened, _STEPS, seconds / 2)
    return checks + compare_batches(program, variants, workers, opened, _STEPS, seconds / 2)


def no_number(check: Equivalence) -> str:
    """Why a check of another training, as was asked, speaks against it; "" where it does not."""
    finite = np.isfinite(np.array(check.losses, np.float64))
    if finite.all() or not np.isfinite(np.array(check.baseline_losses, np.float64)).all():
        return ""
    step = int(np.argmin(finite))
    return f"its loss is {check.losses[step]!s} from step {step + 1} on"


def traced_pair(
    program: AnyProgram, racers: Sequence[Racer], steps: int, progress: Progress
) -> dict[str, Trace]:
    """Traces of a few steps of each, by label.

    Raises:
      RunError: a run failed.
    """
    if steps:
        for racer in racers:
            count = max(WARM_UP_STEPS, racer.timed.learning_steps)
            racer.worker.call(RunBlock(session="main", steps=count))
    return traced_variants(
        program,
        [racer.variant for racer in racers],
        [racer.worker for racer in racers],
        steps,
        step_stats=False,
        progress=progress,
    )


def as_run(
    race: Race,
    baseline: Racer,
    racer: Racer,
    checks: Sequence[Equivalence],
    traces: dict[str, Trace],
) -> InterleavedRun:
    """A racer beside the baseline, in the rounds that it ran."""
    racer_rates, base_rates = race.rates(racer.variant.label)
    pair = [baseline] if racer is baseline else [baseline, racer]
    measured = {
        raced.variant.label: MeasuredBlocks(
            rates=rates, step_ns_median=float(np.median(np.concatenate(raced.step_times)))
        )
        for raced, rates in zip(pair, (base_rates, racer_rates), strict=False)
    }
    plan = BlockPlan(
        rounds=len(racer_rates),
        steps=tuple(raced.steps for raced in pair),
        dropped=tuple(raced.dropped for raced in pair),
        seconds=0.0,
    )
    return InterleavedRun(
        variants=tuple(each.variant for each in pair),
        opened=baseline.opened,
        checks=tuple(checks),
        plan=plan,
        measured=measured,
        traces={label: trace for label, trace in traces.items() if label in measured},
    )


def without_parts(program: AnyProgram) -> AnyProgram:
    """The program without the parts whose times a search does not measure."""
    if program.build_input is None and program.build_compute is None:
        return program
    return dataclasses.replace(program, build_input=None, build_compute=None)

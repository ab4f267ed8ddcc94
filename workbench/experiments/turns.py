"""TakenTurns: variants whose child processes live at the same time and take turns.

Opens their sessions, compares their training, measures blocks, then traces a few steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.options import Optimizations
from workbench.core.trace import Trace
from workbench.experiments.blocks import Candidate, Measured, run_blocks
from workbench.experiments.equivalence import Equivalence
from workbench.experiments.function_program import AnyProgram
from workbench.experiments.measure import BlockPlan
from workbench.experiments.opening import open_sessions
from workbench.experiments.progress import Progress
from workbench.experiments.same_training import compare_batches, compare_losses
from workbench.experiments.setting import Setting
from workbench.experiments.worker import Worker, started_workers
from workbench.experiments.worker_session import Opened

# A part may prefetch a little to hide what a session run costs.
_PART_AHEAD = 2
INPUT, COMPUTE = "input alone", "compute alone"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TakenTurns:
    """What variants that took turns gave.

    Attributes:
      settings: the variants, the baseline first, with their plans.
      opened: what is known of the baseline's graph.
      checks: whether training stayed the same.
      plan: how blocks were laid out.
      measured: rates by label, those of the program's parts included.
      traces: by label; empty where none was asked for.
    """

    settings: tuple[Setting, ...]
    opened: Opened
    checks: tuple[Equivalence, ...]
    plan: BlockPlan
    measured: dict[str, Measured]
    traces: dict[str, Trace]


def take_turns(
    program: AnyProgram,
    settings: Sequence[Setting],
    *,
    budget_s: float,
    trace_steps: int,
    equivalence_steps: int,
    progress: Progress,
) -> TakenTurns:
    """Measures settings, each in a child process of its own; the first is the baseline.

    Args:
      program, budget_s, trace_steps, equivalence_steps: as of `compare`.
      settings: without their plans.
      progress: told what is done.

    Raises:
      OptionError, PlanError, RunError, KeyboardInterrupt: as `compare`.
    """
    progress.phase(f"Starting {len(settings)} child processes")
    with started_workers([(s.label, program) for s in settings]) as workers:
        opened, planned = open_sessions(
            program, settings, workers, sample_steps=trace_steps, progress=progress
        )
        checks = _checks(program, planned, workers, opened, equivalence_steps, progress)
        candidates = _candidates(program, planned, workers)
        plan, measured = run_blocks(candidates, budget_s=budget_s, progress=progress)
        traces = traced(planned, workers, trace_steps, progress)
    return TakenTurns(
        settings=tuple(planned),
        opened=opened,
        checks=tuple(checks),
        plan=plan,
        measured=measured,
        traces=traces,
    )


def _checks(
    program: AnyProgram,
    settings: Sequence[Setting],
    workers: Sequence[Worker],
    opened: Opened,
    steps: int,
    said: Progress,
) -> list[Equivalence]:
    """Whether training stays the same; the first steps of the sessions to measure are compared."""
    checks: list[Equivalence] = []
    if steps:
        said.phase("Checking that training stays the same")
        if opened.has_loss:
            checks += compare_losses(settings, workers, steps)
        checks += compare_batches(program, settings, workers, opened, steps)
    return checks


def _candidates(
    program: AnyProgram, settings: Sequence[Setting], workers: Sequence[Worker]
) -> list[Candidate]:
    """The variants and, where the program has them, its parts for the bound."""
    candidates = [
        Candidate(
            label=setting.label,
            worker=worker,
            session="main",
            ahead=setting.ahead,
            learning_steps=setting.learning_steps,
        )
        for setting, worker in zip(settings, workers, strict=True)
    ]
    if program.build_input and program.build_compute:
        for label, part in ((INPUT, "build_input"), (COMPUTE, "build_compute")):
            # In the child of the baseline: a part is no variant, and while it runs all else waits.
            workers[0].call("open", session=label, part=part, optimizations=Optimizations())
            candidates.append(
                Candidate(label=label, worker=workers[0], session=label, ahead=_PART_AHEAD)
            )
    return candidates


def traced(
    settings: Sequence[Setting], workers: Sequence[Worker], steps: int, said: Progress
) -> dict[str, Trace]:
    """Traces of a few steps of each, by label."""
    if not steps:
        return {}
    said.phase(f"Tracing {steps} steps")
    return {
        setting.label: worker.call("trace", session="main", steps=steps)
        for setting, worker in zip(settings, workers, strict=True)
    }

"""Runs the blocks of a measurement: pilot, then rounds in which every candidate has its turn."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np

from workbench.core.options import Optimizations
from workbench.errors import RunError
from workbench.experiments.measure import BlockPlan, block_order, block_rate, plan_blocks
from workbench.experiments.program import Program
from workbench.experiments.progress import Progress
from workbench.experiments.worker import Worker, started_workers
from workbench.experiments.worker_session import Steps

_FIRST_STEPS = 5
_WARM_UP_S = 2.0
_WARM_UP_STEPS = (5, 60)
_PILOT_STEPS = (10, 30)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Candidate:
    """What takes turns: a session of a worker.

    Attributes:
      label: its name in results.
      worker: the child process.
      session: the name of a session open there.
      ahead: items it can hold ready when its block begins.
      learning_steps: steps that it must have run before it is measured.
    """

    label: str
    worker: Worker
    session: str
    ahead: int = 0
    learning_steps: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """What the blocks of one candidate gave.

    Attributes:
      rates: steps/s of each block, in the order of the rounds.
      step_ns_median: median time of a counted step.
    """

    rates: tuple[float, ...]
    step_ns_median: float


def run_blocks(
    candidates: Sequence[Candidate], *, budget_s: float, progress: Progress
) -> tuple[BlockPlan, dict[str, Measured]]:
    """Warms every candidate up, measures a pilot, then runs interleaved blocks.

    Args:
      candidates: with open sessions; every label once.
      budget_s: seconds for the blocks; warm-up and pilot come on top.
      progress: told about every block.

    Returns:
      The plan that the pilot led to, and by label what was measured.

    Raises:
      RunError: a candidate's data ended.
    """
    progress.phase("Warming up")
    pilots = [_pilot_step_ns(candidate) for candidate in candidates]
    plan = plan_blocks(pilots, [candidate.ahead for candidate in candidates], budget_s)
    total = plan.rounds * len(candidates)
    rates: dict[str, list[float]] = {candidate.label: [] for candidate in candidates}
    steps: dict[str, list[np.ndarray]] = {candidate.label: [] for candidate in candidates}
    begun = time.monotonic()
    done = 0
    for number in range(plan.rounds):
        for index in block_order(number, len(candidates)):
            spent = time.monotonic() - begun
            left_s = spent / done * (total - done) if done else plan.seconds
            progress.block(done + 1, total, left_s)
            candidate = candidates[index]
            ends = _block(candidate, plan.steps[index], pilots[index]).ends_ns
            rates[candidate.label].append(block_rate(ends, plan.dropped[index]))
            steps[candidate.label].append(np.diff(ends)[plan.dropped[index] :])
            done += 1
    return plan, {
        label: Measured(
            rates=tuple(rates[label]),
            step_ns_median=float(np.median(np.concatenate(steps[label]))),
        )
        for label in rates
    }


def _pilot_step_ns(candidate: Candidate) -> float:
    """Time of a warm step, in ns."""
    first = _block(candidate, _FIRST_STEPS + candidate.ahead, 0.0)
    step_ns = 1e9 / block_rate(first.ends_ns, candidate.ahead)
    warm_up = int(np.clip(_WARM_UP_S * 1e9 / step_ns, *_WARM_UP_STEPS))
    pilot = int(np.clip(_WARM_UP_S * 1e9 / step_ns, *_PILOT_STEPS))
    dropped = max(warm_up, candidate.learning_steps) + candidate.ahead
    return 1e9 / block_rate(_block(candidate, dropped + pilot, step_ns).ends_ns, dropped)


def _block(candidate: Candidate, steps: int, step_ns: float) -> Steps:
    measured: Steps = candidate.worker.call(
        "block", expected_s=steps * step_ns / 1e9, session=candidate.session, steps=steps
    )
    if measured.ended:
        raise RunError(
            f"The data of {candidate.label!r} ended after {len(measured.ends_ns) - 1} steps of a "
            "block; repeat the dataset, so that a measurement of any length can run"
        )
    return measured


def step_time_ms(
    program: Program, part: str = "build", *, progress: bool | Callable[[str], None] = True
) -> float:
    """Time of a warm step of one part of a program, in ms, from a short run in a child process."""
    said = Progress(progress)
    said.phase(f"Timing {program.name} for a moment")
    try:
        with started_workers([(program.name, program)]) as workers:
            workers[0].call("open", session=part, part=part, optimizations=Optimizations())
            pilot = Candidate(label=program.name, worker=workers[0], session=part)
            return _pilot_step_ns(pilot) / 1e6
    finally:
        said.end()

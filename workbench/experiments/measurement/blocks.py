"""Runs the blocks of a measurement: pilot, then rounds in which every candidate has its turn."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np

from workbench.core.options import Optimizations
from workbench.errors import RunError
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import (
    FEWEST_ROUNDS,
    BlockPlan,
    block_order,
    block_rate,
    plan_blocks,
)
from workbench.experiments.program.program import Program
from workbench.experiments.worker.messages import Open, RunBlock, Steps
from workbench.experiments.worker.process import Worker, started_workers

_FIRST_STEPS = 5
# Of each candidate, warming up and piloting each: most seconds, and bounds of steps.
_WARM_UP_S = 2.0
_WARM_UP_STEPS = (5, 60)
_PILOT_STEPS = (6, 30)


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pilot:
    """What a short run of a warm candidate says of its blocks.

    Attributes:
      step_ns: time of a step.
      rest_s: what a block takes beside its steps.
    """

    step_ns: float
    rest_s: float


def run_pilots(
    candidates: Sequence[Candidate], *, budget_s: float, progress: Progress
) -> list[Pilot]:
    """Warms every candidate up and runs a pilot of it.

    Args:
      candidates: with open sessions; every label once.
      budget_s: seconds for all of them. What a candidate must have run before it is measured is
        run in any case.
      progress: told what is done.

    Raises:
      RunError: a candidate's data ended.
    """
    progress.phase("Warming up")
    most_s = budget_s / len(candidates) / 2
    return [_pilot(candidate, min(_WARM_UP_S, most_s)) for candidate in candidates]


def run_blocks(
    candidates: Sequence[Candidate],
    pilots: Sequence[Pilot],
    *,
    budget_s: float,
    then_s: float = 0.0,
    progress: Progress,
) -> tuple[BlockPlan, dict[str, Measured]]:
    """Runs interleaved blocks of candidates that are warm.

    Args:
      candidates: with open sessions; every label once.
      pilots: what `run_pilots` found of them.
      budget_s: seconds for the blocks. Where they take longer than planned, there are fewer rounds.
      then_s: seconds of what comes after them, for what progress says is left.
      progress: told about every block.

    Returns:
      The plan, with the rounds that ran, and by label what was measured.

    Raises:
      RunError: a candidate's data ended.
    """
    step_ns = [pilot.step_ns for pilot in pilots]
    ahead = [candidate.ahead for candidate in candidates]
    plan = plan_blocks(step_ns, ahead, budget_s, [pilot.rest_s for pilot in pilots])
    total = plan.rounds * len(candidates)
    rates: dict[str, list[float]] = {candidate.label: [] for candidate in candidates}
    steps: dict[str, list[np.ndarray]] = {candidate.label: [] for candidate in candidates}
    begun = time.monotonic()
    done = 0
    for number in range(plan.rounds):
        spent = time.monotonic() - begun
        # An even number of rounds runs every order as often as its reverse.
        if number >= FEWEST_ROUNDS and number % 2 == 0 and spent * (1 + 2 / number) > budget_s:
            plan = dataclasses.replace(plan, rounds=number)
            break
        for index in block_order(number, len(candidates)):
            spent = time.monotonic() - begun
            left_s = spent / done * (total - done) if done else plan.seconds
            progress.block(done + 1, total, left_s + then_s)
            candidate = candidates[index]
            ends = _block(candidate, plan.steps[index], step_ns[index]).ends_ns
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


def _pilot(candidate: Candidate, most_s: float) -> Pilot:
    first = _block(candidate, _FIRST_STEPS + candidate.ahead, 0.0)
    step_ns = 1e9 / block_rate(first.ends_ns, candidate.ahead)
    warm_up = int(np.clip(most_s * 1e9 / step_ns, *_WARM_UP_STEPS))
    pilot = int(np.clip(most_s * 1e9 / step_ns, *_PILOT_STEPS))
    dropped = max(warm_up, candidate.learning_steps) + candidate.ahead
    begun = time.monotonic()
    ends_ns = _block(candidate, dropped + pilot, step_ns).ends_ns
    rest_s = time.monotonic() - begun - float(ends_ns[-1] - ends_ns[0]) / 1e9
    return Pilot(step_ns=1e9 / block_rate(ends_ns, dropped), rest_s=max(0.0, rest_s))


def _block(candidate: Candidate, steps: int, step_ns: float) -> Steps:
    measured = candidate.worker.call(
        RunBlock(session=candidate.session, steps=steps), expected_s=steps * step_ns / 1e9
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
            workers[0].call(Open(session=part, part=part, optimizations=Optimizations()))
            pilot = Candidate(label=program.name, worker=workers[0], session=part)
            return _pilot(pilot, _WARM_UP_S).step_ns / 1e6
    finally:
        said.end()

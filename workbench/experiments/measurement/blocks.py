"""Runs the blocks of a measurement: a pilot, then rounds in which each session runs a block."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.errors import RunError
from workbench.experiments.measurement.evidence import Evidence, evidence_of
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import BLOCKS, WARM_UP
from workbench.experiments.measurement.statistics import (
    FEWEST_ROUNDS,
    BlockPlan,
    block_order,
    block_rate,
    plan_blocks,
)
from workbench.experiments.program.program import Program
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.wire.messages import Open, RunBlock, Steps

_FIRST_STEPS = 5
# Of warming a session up and of its pilot, for each: most seconds, and bounds of steps.
_WARM_UP_S = 2.0
_WARM_UP_STEPS = (5, 60)
_PILOT_STEPS = (6, 30)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimedSession:
    """A session whose blocks are measured, between blocks of others.

    Attributes:
      label: its name in results.
      worker: the child process.
      name: of the session, which is open there.
      ahead: items it can hold ready when its block begins.
      learning_steps: steps that it must have run before it is measured.
      is_alone: whether its process has no other session that is measured. Else its input goes on
        while they are, and its blocks begin with steps that use up what was read ahead.
    """

    label: str
    worker: Worker
    name: str
    ahead: int = 0
    learning_steps: int = 0
    is_alone: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuredBlocks:
    """What the blocks of one session gave.

    Attributes:
      rates: steps/s of each block, in the order of the rounds.
      step_ns_median: median time of a counted step.
    """

    rates: tuple[float, ...]
    step_ns_median: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pilot:
    """What a short run of a warm session says of its blocks.

    Attributes:
      step_ns: time of a step.
      rest_s: what a block takes beside its steps.
    """

    step_ns: float
    rest_s: float


_NO_PILOT = Pilot(step_ns=0.0, rest_s=0.0)


def run_pilots(
    sessions: Sequence[TimedSession], *, budget_s: float, progress: Progress
) -> list[Pilot]:
    """Warms every session up and runs a pilot of it.

    Args:
      sessions: open; every label once.
      budget_s: seconds for all of them. What a session must have run before it is measured is
        run in any case.
      progress: shows what is done.

    Returns:
      One for each session; an empty one where a worker failed that may.

    Raises:
      RunError: a session's data ended.
    """
    progress.phase("Warming up", WARM_UP)
    most_s = budget_s / len(sessions) / 2
    return [_pilot(session, min(_WARM_UP_S, most_s)) for session in sessions]


def run_blocks(
    sessions: Sequence[TimedSession],
    pilots: Sequence[Pilot],
    *,
    budget_s: float,
    then_s: float = 0.0,
    progress: Progress,
    compared: Mapping[str, float] | None = None,
    stop_when_clear: bool = False,
) -> tuple[BlockPlan, dict[str, MeasuredBlocks]]:
    """Runs interleaved blocks of sessions that are warm.

    Args:
      sessions: open; every label once.
      pilots: what `run_pilots` returned for them.
      budget_s: seconds for the blocks. Where they take longer than planned, there are fewer rounds.
      then_s: seconds of what comes after them, for what progress says is left.
      progress: shows every block.
      compared: labels that are compared with the first session; of each the samples of a step over
        those of the first. After each round progress shows what is known of them.
      stop_when_clear: whether no more rounds run once all these are clear, by intervals that hold
        at every look.

    Returns:
      The plan, with the rounds that ran, and by label what was measured. Both lack the sessions
      whose workers failed meanwhile, and may.

    Raises:
      RunError: a session's data ended.
    """
    step_ns = [pilot.step_ns for pilot in pilots]
    ahead = [session.ahead for session in sessions]
    plan = plan_blocks(step_ns, ahead, budget_s, [pilot.rest_s for pilot in pilots])
    progress.begin(BLOCKS)
    blocks = _Blocks(sessions, plan, step_ns, compared or {})
    begun = time.monotonic()
    for number in range(plan.rounds):
        spent = time.monotonic() - begun
        # An even number of rounds runs every order as often as its reverse.
        may_end = number >= FEWEST_ROUNDS and number % 2 == 0
        is_over = may_end and spent * (1 + 2 / number) > budget_s
        if is_over or (may_end and stop_when_clear and blocks.is_clear):
            plan = dataclasses.replace(plan, rounds=number)
            break
        for done, index in enumerate(
            block_order(number, len(sessions)), start=number * len(sessions)
        ):
            spent = time.monotonic() - begun
            total = plan.rounds * len(sessions)
            left_s = spent / done * (total - done) if done else plan.seconds
            progress.block(done + 1, total, left_s, then_s)
            blocks.run(index)
        blocks.look()
        progress.evidence(blocks.evidence)
    return blocks.result(plan)


class _Blocks:
    """Blocks that run, and what they say so far."""

    def __init__(
        self,
        sessions: Sequence[TimedSession],
        plan: BlockPlan,
        step_ns: Sequence[float],
        compared: Mapping[str, float],
    ) -> None:
        self._sessions, self._plan, self._step_ns = sessions, plan, step_ns
        self._compared = compared
        self._rates: dict[str, list[float]] = {session.label: [] for session in sessions}
        self._steps: dict[str, list[np.ndarray]] = {session.label: [] for session in sessions}
        self.evidence: tuple[Evidence, ...] = ()

    def run(self, index: int) -> None:
        """Runs a block of one session."""
        session, dropped = self._sessions[index], self._plan.dropped[index]
        ends = run_block(session, self._plan.steps[index], self._step_ns[index]).ends_ns
        if session.worker.failure is None:
            self._rates[session.label].append(block_rate(ends, dropped))
            self._steps[session.label].append(np.diff(ends)[dropped:])

    def look(self) -> None:
        """Works out what the rounds so far say."""
        runs = {each.label for each in self._sessions if each.worker.failure is None}
        compared = {label: scale for label, scale in self._compared.items() if label in runs}
        self.evidence = evidence_of(self._rates, compared, self._plan.rounds)

    @property
    def is_clear(self) -> bool:
        """Whether more rounds would say nothing new of any variant."""
        return bool(self.evidence) and all(each.is_clear for each in self.evidence)

    def result(self, plan: BlockPlan) -> tuple[BlockPlan, dict[str, MeasuredBlocks]]:
        """The plan and what was measured, without the sessions that failed."""
        runs = [session.worker.failure is None for session in self._sessions]
        plan = dataclasses.replace(
            plan,
            steps=tuple(itertools.compress(plan.steps, runs)),
            dropped=tuple(itertools.compress(plan.dropped, runs)),
        )
        return plan, {
            session.label: MeasuredBlocks(
                rates=tuple(self._rates[session.label]),
                step_ns_median=float(np.median(np.concatenate(self._steps[session.label]))),
            )
            for session in itertools.compress(self._sessions, runs)
        }


def _pilot(session: TimedSession, most_s: float) -> Pilot:
    first = run_block(session, _FIRST_STEPS + session.ahead, 0.0)
    if session.worker.failure is not None:
        return _NO_PILOT
    step_ns = 1e9 / block_rate(first.ends_ns, session.ahead)
    warm_up = int(np.clip(most_s * 1e9 / step_ns, *_WARM_UP_STEPS))
    pilot = int(np.clip(most_s * 1e9 / step_ns, *_PILOT_STEPS))
    dropped = max(warm_up, session.learning_steps) + session.ahead
    begun = time.monotonic()
    ends_ns = run_block(session, dropped + pilot, step_ns).ends_ns
    if session.worker.failure is not None:
        return _NO_PILOT
    rest_s = time.monotonic() - begun - float(ends_ns[-1] - ends_ns[0]) / 1e9
    return Pilot(step_ns=1e9 / block_rate(ends_ns, dropped), rest_s=max(0.0, rest_s))


def run_block(session: TimedSession, steps: int, step_ns: float) -> Steps:
    """Runs one block of a session; no step where its worker has failed, and may.

    The session's process stands still after it, until it is asked for something else.

    Args:
      session: warm, or to be warmed up by it.
      steps: of the block, those that do not count included.
      step_ns: what a step takes, about; 0 where that is not known.

    Raises:
      RunError: its data ended.
    """
    measured = session.worker.call(
        RunBlock(
            session=session.name,
            steps=steps,
            after_rest=not session.is_alone,
            settles=not session.is_alone,
        ),
        expected_s=steps * step_ns / 1e9,
    )
    session.worker.pause()
    if measured.ended and session.worker.failure is None:
        session.worker.fail(
            RunError(
                f"The data of {session.label!r} ended after {len(measured.ends_ns) - 1} steps of a "
                "block; repeat the dataset, so that a measurement of any length can run"
            )
        )
    return measured


def step_time_ms(
    program: Program, part: str = "build", *, progress: bool | Callable[[str], None] = True
) -> float:
    """Time of a warm step of one part of a program, in ms, from a short run in a child process."""
    shown = Progress(progress)
    shown.phase(f"Timing {program.name} for a moment")
    try:
        with started_workers([(program.name, program)]) as workers:
            workers[0].call(Open(session=part, part=part, optimizations=Optimizations()))
            session = TimedSession(label=program.name, worker=workers[0], name=part)
            return _pilot(session, _WARM_UP_S).step_ns / 1e6
    finally:
        shown.end()

"""Racers: settings that run in child processes, a block of each in a round."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.core.options import Optimizations
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.errors import OptionError, RunError
from workbench.experiments.comparison.applicable_toggles import NO_STAGE, no_lookup
from workbench.experiments.comparison.open_sessions import sample_trace
from workbench.experiments.measurement.blocks import TimedSession, run_block, run_pilots
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import block_order, block_rate
from workbench.experiments.measurement.time_budget import FORK_S
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    require_possible,
)
from workbench.experiments.program.variant import Variant
from workbench.experiments.search.children import Children
from workbench.experiments.search.race import Dropped
from workbench.experiments.search.refused import (
    REFUSALS,
    Refused,
    graph_of,
    moves_nothing,
    refused_by,
)
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.wire.messages import GetPlan, Open, Opened

# Fewest settings that race at a time beside the baseline, the best so far and another one; and
# most: with more of them a round takes long until it says something new.
_FEWEST, _MOST = 2, 6
# Of a block: steps that do not count, and fewest and most that do.
_SETTLING_STEPS, _COUNTED_STEPS = 3, (6, 400)
# Seconds for warming a session up and for its pilot, beside what its executor has to learn.
_PILOT_S = 1.5
# Steps and seconds of a trace that a smart stage is planned on.
_SAMPLE_STEPS, _SAMPLE_S = 12, 3.0
# Seconds to open a session until one was timed.
_FIRST_OPEN_S = 3.0


@dataclasses.dataclass(kw_only=True)
class Racer:
    """A setting whose session is open.

    Attributes:
      variant: the setting, with its plan.
      worker: its child process, whose session "main" is measured.
      opened: what is known of its graph.
      timed: its session, as blocks are run.
      step_ns: time of a step, from its pilot.
      steps, dropped: of each of its blocks, and of them those that do not count.
      step_times: times of counted steps, ns, a block each.
    """

    variant: Variant
    worker: Worker
    opened: Opened
    timed: TimedSession
    step_ns: float = 0.0
    steps: int = 0
    dropped: int = 0
    step_times: list[np.ndarray] = dataclasses.field(default_factory=list)


class Racers:
    """The settings that race, and all that have: a `Field` of child processes."""

    def __init__(
        self,
        program: AnyProgram,
        children: Children,
        *,
        block_s: float,
        cores: int,
        progress: Progress,
    ) -> None:
        """No setting runs yet.

        Args:
          program: what they run.
          children: their processes.
          block_s: seconds of a block, about.
          cores: how many processes start as fast as one.
          progress: shows what is done.
        """
        self._program = program
        self._children = children
        self._block_s = block_s
        self._cores = cores
        self._progress = progress
        self._running: dict[str, Racer] = {}
        self._samples: dict[str | None, Trace] = {}
        self._plans: dict[object, StagePlan] = {}
        self._start_s, self._open_s = FORK_S, _FIRST_OPEN_S
        self.ever: dict[str, Racer] = {}
        self.memory: dict[str, int] = {}

    def enter_baseline(self, label: str, setting: Optimizations) -> Racer:
        """Opens the first session, beside which all others race.

        Raises:
          WorkbenchError: it cannot run.
        """
        for refused in self.enter([label], {label: setting}):
            raise refused.error or OptionError(
                f"the baseline {label!r} has no effect: {refused.reason}"
            )
        return self._running[label]

    def keep_sample(self, fused: str | None, trace: Trace) -> None:
        """A trace of the un-staged program, on which smart stages are planned."""
        self._samples[fused] = trace

    def start_ahead(self, most: int) -> None:
        """Starts processes that settings will need, while something else runs in one."""
        self._children.start_ahead(max(0, min(most, self.places() - 1)))

    def places(self) -> int:
        others = len(self._running) - 1
        room = self._children.room()
        # That the best so far and one more fit beside the baseline was required at first.
        return int(max(_FEWEST - others, min(_MOST - others, room)))

    def open_s(self, count: int) -> float:
        """Seconds to open this number of sessions at the same time, about."""
        return count * self._open_s / max(1, min(self._cores, count))

    def graphs_s(self, count: int) -> float:
        """Seconds to build this number of graphs in turn, in a new process, about."""
        return self._start_s + count * self._open_s

    def start_s(self, count: int) -> float:
        new = self._children.to_start(count)
        at_once = max(1, min(self._cores, new))
        return new * self._start_s / at_once + self.open_s(count) + count * _PILOT_S

    def enter(self, labels: Sequence[str], settings: Mapping[str, Optimizations]) -> list[Refused]:
        """Opens the sessions of settings and warms them up.

        Args:
          labels: their names.
          settings: what each is.

        Returns:
          Those that cannot run.

        Raises:
          RunError: a child did not start.
        """
        self._progress.phase(f"Starting {' · '.join(labels)}")
        begun_s, new = time.monotonic(), self._children.to_start(len(labels))
        workers = self._children.lend([(label, settings[label]) for label in labels])
        if new:
            self._start_s = (time.monotonic() - begun_s) * min(self._cores, new) / new
        wishes = [
            (Variant(label=label, optimizations=settings[label]), worker)
            for label, worker in zip(labels, workers, strict=True)
        ]
        # All that is traced before anything else runs.
        refused = [self._prepared(variant, worker) for variant, worker in wishes]
        begun_s = time.monotonic()
        for number, (variant, worker) in enumerate(wishes):
            refused[number] = refused[number] or self._ask_to_open(variant, worker)
        for number, (variant, worker) in enumerate(wishes):
            refused[number] = refused[number] or self._opened(variant, worker)
        at_once = max(1, min(self._cores, len(labels)))
        self._open_s = max(0.5, (time.monotonic() - begun_s) * at_once / len(labels))
        for number, (variant, worker) in enumerate(wishes):
            refused[number] = refused[number] or self._warmed_up(variant)
            if refused[number]:
                self._running.pop(variant.label, None)
                self._children.give_back(worker, variant.optimizations)
        self._children.look()
        return [each for each in refused if each]

    def run_round(
        self, number: int, labels: Sequence[str]
    ) -> tuple[dict[str, float], list[Dropped]]:
        rates: dict[str, float] = {}
        failed: list[Dropped] = []
        for index in block_order(number, len(labels)):
            racer = self._running[labels[index]]
            try:
                ends = run_block(racer.timed, racer.steps, racer.step_ns).ends_ns
            except RunError as error:
                if index == 0:
                    raise
                failed.append(Dropped(label=labels[index], reason=f"it failed: {error}"))
                continue
            rates[labels[index]] = block_rate(ends, racer.dropped)
            racer.step_times.append(np.diff(ends)[racer.dropped :])
        self._children.look()
        return rates, failed

    def leave(self, labels: Sequence[str]) -> None:
        for label in labels:
            racer = self._running.pop(label)
            self.memory[label] = self._children.bytes_of(racer.worker)
            self._children.give_back(racer.worker, racer.variant.optimizations)

    def over_memory(self) -> str:
        if not self._children.over_limit:
            return ""
        return "all that raced took more memory than they may, and it was the slowest of them"

    def runs(self, label: str) -> bool:
        """Whether a setting's session is open."""
        return label in self._running

    def keep_only(self, labels: Sequence[str]) -> None:
        """Ends all others, and notes what memory these take."""
        self.leave([label for label in self._running if label not in labels])
        for label in labels:
            self.memory[label] = self._children.bytes_of(self._running[label].worker)

    def racer(self, label: str) -> Racer:
        """One that is running."""
        return self._running[label]

    def _prepared(self, variant: Variant, worker: Worker) -> Refused | None:
        """Whether a setting is possible at all; takes the trace that it is planned on."""
        wish = variant.optimizations
        fused, needs_trace = wish.fused_embeddings, wish.smart_stage is not None
        try:
            require_possible(self._program, wish)
            if not needs_trace or graph_of(wish) in self._plans or fused in self._samples:
                return None
            # A function's plan is always the widest.
            if not isinstance(self._program, FunctionProgram):
                # Not in a process of its own: its first session says how many threads it has.
                others = (racer.worker for racer in self._running.values())
                unstaged = Optimizations(fused_embeddings=fused)
                self._samples[fused] = sample_trace(
                    next(others, worker), unstaged, _SAMPLE_STEPS, _SAMPLE_S
                )
        except REFUSALS as error:
            return refused_by(variant, error)
        return None

    def _ask_to_open(self, variant: Variant, worker: Worker) -> Refused | None:
        """Sends what opens a session, without waiting for it."""
        wish, plan, sample = variant.optimizations, None, None
        if wish.smart_stage is not None:
            plan = self._plans.get(graph_of(wish))
            sample = None if plan else self._samples.get(wish.fused_embeddings)
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

    def _opened(self, variant: Variant, worker: Worker) -> Refused | None:
        """Waits for a session, and takes it in where it is what the setting says."""
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
        if wish.fused_embeddings and not opened.fused_lookups:
            return Refused(
                label=variant.label,
                reason=no_lookup(wish),
                holds_for=lambda other: (
                    bool(other.fused_embeddings) and other.fuses_graph == wish.fuses_graph
                ),
            )
        if variant.plan and not variant.plan.stages:
            return moves_nothing(variant)
        before = self.ever.get(variant.label)
        timed = TimedSession(
            label=variant.label,
            worker=worker,
            name="main",
            ahead=variant.ahead,
            learning_steps=variant.learning_steps,
        )
        racer = Racer(
            variant=variant,
            worker=worker,
            opened=opened,
            timed=timed,
            step_times=before.step_times if before else [],
        )
        self._running[variant.label] = self.ever[variant.label] = racer
        return None

    def _warmed_up(self, variant: Variant) -> Refused | None:
        racer = self._running[variant.label]
        try:
            (pilot,) = run_pilots([racer.timed], budget_s=2 * _PILOT_S, progress=Progress(False))
        except RunError as error:
            return refused_by(variant, error)
        racer.step_ns = pilot.step_ns
        racer.dropped = racer.timed.ahead + _SETTLING_STEPS
        counted = math.ceil(self._block_s * 1e9 / pilot.step_ns) - racer.dropped
        racer.steps = racer.dropped + int(np.clip(counted, *_COUNTED_STEPS))
        return None

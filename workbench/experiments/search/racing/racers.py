"""Racers: settings that run in child processes, a block of each in a round."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.core.trace.trace import Trace
from workbench.errors import OptionError, RunError
from workbench.experiments.measurement.blocks import run_block
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import block_order, block_rate
from workbench.experiments.measurement.time_budget import FORK_S, TimeBudget
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.variant import Variant
from workbench.experiments.search.racing.children import Children
from workbench.experiments.search.racing.race import Dropped
from workbench.experiments.search.racing.racer import PILOT_S, Racer, answers_within
from workbench.experiments.search.racing.refused import Refused, far_too_slow, refused_by
from workbench.experiments.search.racing.session_opener import SessionOpener
from workbench.experiments.worker.process import Worker

# Fewest settings that race at a time beside the baseline, the best so far and another one; and
# most: with more of them a round takes long until it says something new.
_FEWEST, _MOST = 2, 6
# A setting with other choices is out that has not opened, or is not warm, after this many times
# what the baseline took for both, and after this share of the time that is left. Workbench's own
# have so many times as long.
_START_FACTOR, _START_SHARE, _OWN_FACTOR = 3.0, 1 / 8, 4.0
# Of a block: how many times as long as expected it may take, and seconds more.
_BLOCK_FACTOR, _BLOCK_S = 10.0, 5.0
# A setting whose block takes longer than these seconds, and than these blocks of the baseline,
# would take the time of others.
_LONG_S, _MOST_BLOCKS = 0.75, 3.0
# Seconds to open a session until one was timed.
_FIRST_OPEN_S = 3.0


class Racers:
    """The settings that race, and all that have: a `Field` of child processes."""

    def __init__(
        self,
        program: AnyProgram,
        children: Children,
        *,
        cores: int,
        progress: Progress,
        clock: TimeBudget | None = None,
    ) -> None:
        """No setting runs yet.

        Args:
          program: what they run.
          children: their processes.
          cores: how many processes start as fast as one.
          progress: shows what is done.
          clock: the time of the search, of which no setting may take much; None sets no limit.
        """
        self._clock = clock
        self._base: Racer | None = None
        self._base_s = 0.0
        self._opener = SessionOpener(program)
        self._children = children
        self._cores = cores
        self._progress = progress
        self._running: dict[str, Racer] = {}
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
        self._base = self._running[label]
        return self._base

    def keep_sample(self, setting: Optimizations, trace: Trace) -> None:
        """A trace of a setting; smart stages are planned on it if that is un-staged."""
        self._opener.keep_sample(setting, trace)

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
        return new * self._start_s / at_once + self.open_s(count) + count * PILOT_S

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
        # With the first one, and with those of another environment, TensorFlow is imported.
        if self._base and new and all(map(self._children.is_at_home, settings.values())):
            self._start_s = (time.monotonic() - begun_s) * min(self._cores, new) / new
        wishes = [
            (Variant(label=label, optimizations=settings[label]), worker)
            for label, worker in zip(labels, workers, strict=True)
        ]
        begun_s = time.monotonic()
        refused = self._opened(wishes)
        for number, (variant, _) in enumerate(wishes):
            refused[number] = refused[number] or self._warmed_up(variant)
        if self._base is None:
            self._base_s = time.monotonic() - begun_s
        for number, (variant, worker) in enumerate(wishes):
            if refused[number]:
                self._running.pop(variant.label, None)
                self._children.give_back(worker, variant.optimizations)
        self._children.look()
        return [each for each in refused if each]

    def _opened(self, wishes: Sequence[tuple[Variant, Worker]]) -> list[Refused | None]:
        """Opens the sessions of settings that have a process, at the same time."""
        at_a_time = math.ceil(len(wishes) / self._cores)
        with contextlib.ExitStack() as limits:
            for variant, worker in wishes:
                limit_s = at_a_time * self._start_limit_s(variant.optimizations)
                limits.enter_context(answers_within([worker], limit_s))
            return self._asked_for(wishes)

    def _asked_for(self, wishes: Sequence[tuple[Variant, Worker]]) -> list[Refused | None]:
        # All that is traced before anything else runs.
        raced = [racer.worker for racer in self._running.values()]
        refused = [self._opener.prepare(*wish, raced) for wish in wishes]
        begun_s = time.monotonic()
        for number, wish in enumerate(wishes):
            refused[number] = refused[number] or self._opener.ask(*wish)
        for number, wish in enumerate(wishes):
            refused[number] = refused[number] or self._take_in(self._opener.opened(*wish))
        at_once = max(1, min(self._cores, len(wishes)))
        self._open_s = max(0.5, (time.monotonic() - begun_s) * at_once / len(wishes))
        return refused

    def _start_limit_s(self, setting: Optimizations) -> float:
        """Seconds that a setting has to open, and again to warm up; inf for the baseline.

        Workbench's own toggles plan and rewrite a graph, which takes a while and does not hang.
        """
        if self._clock is None or self._base is None:
            return math.inf
        usual_s = _START_FACTOR * self._base_s
        if setting.switched == self._base.variant.optimizations.switched:
            return max(_OWN_FACTOR * usual_s, self._clock.left_s())
        # The first ones are measured in any case.
        left_s = self._clock.left_s() if len(self.ever) > 1 else math.inf
        return max(usual_s / 2, min(left_s, max(usual_s, _START_SHARE * self._clock.left_s())))

    def _block_limit_s(self, racer: Racer) -> float:
        """Seconds that a setting has for a block; inf for the baseline."""
        if self._clock is None or racer is self._base:
            return math.inf
        most_s = _BLOCK_FACTOR * racer.block_s + _BLOCK_S
        return max(_BLOCK_S, min(self._clock.left_s(), most_s))

    def run_round(
        self, number: int, labels: Sequence[str]
    ) -> tuple[dict[str, float], list[Dropped]]:
        rates: dict[str, float] = {}
        failed: list[Dropped] = []
        for index in block_order(number, len(labels)):
            racer = self._running[labels[index]]
            try:
                with answers_within([racer.worker], self._block_limit_s(racer)):
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

    def unready(self, setting: Optimizations, seconds: float) -> str:
        return self._children.unready(setting, seconds)

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

    def _take_in(self, opened: Racer | Refused) -> Refused | None:
        """It races from now on; one that raced before keeps what was measured of it."""
        if isinstance(opened, Refused):
            return opened
        label = opened.variant.label
        if label in self.ever:
            opened.step_times = self.ever[label].step_times
        self._running[label] = self.ever[label] = opened
        return None

    def _warmed_up(self, variant: Variant) -> Refused | None:
        racer = self._running[variant.label]
        try:
            with answers_within([racer.worker], self._start_limit_s(variant.optimizations)):
                racer.warm_up()
        except RunError as error:
            return refused_by(variant, error)
        base = self._base or racer
        most_s = max(_LONG_S, _MOST_BLOCKS * base.block_s)
        if racer.block_s > most_s:
            return far_too_slow(variant, base.step_ns / racer.step_ns, base.variant.label)
        return None

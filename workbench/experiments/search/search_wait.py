"""What a search will take, phase by phase, and what of its end fits into the budget."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.wait import times_of
from workbench.experiments.measurement.machine_load import MachineLoad
from workbench.experiments.measurement.phase_times import PhaseTimes
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import (
    CHECK,
    GRAPHS,
    RACE,
    START,
    TRACE,
    Expected,
)
from workbench.experiments.program.function_program import AnyProgram

# Seconds where no search before has told; of the predictions a share of the budget.
_USUAL_S = {START: 9.0, CHECK: 6.0, TRACE: 5.0}
_GRAPHS_SHARE, _RACE_S = 0.25, 3.0
# Graphs that are built once more, each for both settings: for losses and for batches, for the
# traces; and steps that run then.
_GRAPHS_OF_CHECKS, _STEPS_OF_CHECKS = 2, 200
_GRAPHS_OF_TRACES, _STEPS_OF_TRACES = 1, 100
# Of the budget, for all that comes after the race; and for the checks alone.
_MOST_AFTER, _MOST_CHECKS = 0.35, 0.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ending:
    """What comes after the race.

    Attributes:
      seconds: of the budget that are kept for it.
      trace_steps: how many to trace at most; 0 where the budget has no room for traces.
      trace_s: what the traces take at least.
    """

    seconds: float
    trace_steps: int
    trace_s: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchWait:
    """What a search will take.

    Attributes:
      phases: in their order.
      budget_s: what it may take.
      trace_steps: how many are wanted.
      times: what searches before took.
    """

    phases: tuple[Expected, ...]
    budget_s: float
    trace_steps: int
    times: PhaseTimes

    def words(self) -> str:
        """How long it will take in all, said before anything runs."""
        seconds = {phase.name: phase.seconds for phase in self.phases}
        least_s = sum(seconds.values())
        before_s = seconds[START] + seconds[GRAPHS]
        after_s = seconds[CHECK] + seconds.get(TRACE, 0.0)
        parts = (
            f"about {before_s:.0f}\u00a0s to start and predict, {after_s:.0f}\u00a0s to check and "
            "trace the best"
        )
        if least_s < self.budget_s:
            return f"About {self.budget_s:.0f}\u00a0s in all: {parts}, the rest to race"
        return (
            f"More than the budget of {self.budget_s:.0f}\u00a0s: {parts}, and the shortest race; "
            "where the time is up, nothing is traced"
        )

    def ending(self, open_s: float, step_s: float) -> Ending:
        """What of the end fits into the budget: checks always, traces where there is room.

        Args:
          open_s: seconds to open the sessions of two settings at the same time.
          step_s: seconds of a step of the baseline.
        """
        checks_s = _GRAPHS_OF_CHECKS * open_s + _STEPS_OF_CHECKS * step_s
        traces_s = _GRAPHS_OF_TRACES * open_s + _STEPS_OF_TRACES * step_s
        if self.trace_steps and checks_s + traces_s <= _MOST_AFTER * self.budget_s:
            return Ending(
                seconds=checks_s + traces_s, trace_steps=self.trace_steps, trace_s=traces_s
            )
        seconds = min(checks_s, _MOST_CHECKS * self.budget_s)
        return Ending(seconds=seconds, trace_steps=0, trace_s=0.0)

    def learn(self, progress: Progress) -> None:
        """Keeps what the phases took, once all are over."""
        if progress.schedule is not None:
            progress.schedule.end()
            self.times.learn(_setting(self.budget_s), progress.schedule.durations())


def planned_search(
    program: AnyProgram, load: MachineLoad, *, budget_s: float, trace_steps: int
) -> SearchWait:
    """What a search will take, from what searches before it took.

    Args:
      program, trace_steps: as of `find_best`.
      load: how busy the machine is.
      budget_s: seconds for all of it.
    """
    times, setting = times_of(program, is_quiet=load.is_quiet), _setting(budget_s)
    usual = {**_USUAL_S, GRAPHS: _GRAPHS_SHARE * budget_s, RACE: _RACE_S}
    names = (START, GRAPHS, RACE, CHECK, *((TRACE,) if trace_steps else ()))
    known = {name: times.seconds(name, setting) for name in names if name != RACE}
    return SearchWait(
        phases=tuple(
            Expected(
                name=name,
                seconds=usual[name] if known.get(name) is None else float(known[name] or 0.0),
                fills=name == RACE,
            )
            for name in names
        ),
        budget_s=budget_s,
        trace_steps=trace_steps,
        times=times,
    )


def untraced_notes(trace_steps: int, traces: Mapping[str, Trace]) -> list[str]:
    """That the budget had no room for traces, where some were wanted."""
    if not trace_steps or traces:
        return []
    return [
        "Nothing is traced: the budget has no room for it beside the checks; run the best setting "
        "to see its timeline."
    ]


def _setting(budget_s: float) -> str:
    return f"search; {budget_s:g} s"

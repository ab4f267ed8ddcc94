"""Wait: the phases of a comparison, what each should take, and what it took the next time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.experiments.comparison.environment import machine
from workbench.experiments.measurement.machine_load import MachineLoad
from workbench.experiments.measurement.phase_times import PhaseTimes, phase_times
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import (
    BATCHES,
    BLOCKS,
    BUILD,
    CHECK,
    PLAN,
    SAMPLE,
    START,
    TRACE,
    WARM_UP,
    Expected,
)
from workbench.experiments.measurement.time_budget import (
    OPEN_S,
    expected_words,
    start_seconds,
)
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.program.variant import Variant

# Shares of the budget, and seconds at least, where no run before has told.
_SHARES = {SAMPLE: 0.1, PLAN: 0.03, CHECK: 0.08, WARM_UP: 0.1, BATCHES: 0.1, TRACE: 0.15}
_LEAST_S = {SAMPLE: 3.0, PLAN: 1.0, CHECK: 2.0, WARM_UP: 2.0, BATCHES: 3.0, TRACE: 4.0}
# The shortest blocks that say something, a variant.
_BLOCKS_S = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wait:
    """What a comparison will take.

    Attributes:
      phases: in their order.
      budget_s: what it may take.
      processes, graphs, cores: as of `expected_words`.
      times: what runs before took.
      setting: what is run, as these name it.
    """

    phases: tuple[Expected, ...]
    budget_s: float
    processes: int
    graphs: int
    cores: int
    times: PhaseTimes
    setting: str

    def words(self, later_s: float) -> str:
        """How long it will take in all, said before anything runs.

        Args:
          later_s: seconds of what comes after it.
        """
        least_s = sum(phase.seconds for phase in self.phases)
        started = [self.times.seconds(name, self.setting) for name in (START, BUILD)]
        known_s = None if None in started else sum(filter(None, started))
        return expected_words(
            self.budget_s,
            processes=self.processes,
            graphs=self.graphs,
            cores=self.cores,
            known_s=known_s,
            least_s=least_s,
            later_s=later_s,
        )

    def learn(self, progress: Progress) -> None:
        """Keeps what the phases took, once all are over."""
        if progress.schedule is not None:
            progress.schedule.end()
            self.times.learn(self.setting, progress.schedule.durations())


def times_of(program: AnyProgram, *, is_quiet: bool = True) -> PhaseTimes:
    """What phases of a program took on this machine.

    Args:
      program: what was run.
      is_quiet: whether nothing else ran; what a busy machine takes says nothing of a quiet one.
    """
    facts = machine()
    known = " ".join(str(facts.get(key, "")) for key in ("cpu", "cores", "tensorflow", "workbench"))
    return phase_times(program.name, program.settings, known if is_quiet else f"{known} busy")


def planned_wait(
    program: AnyProgram,
    variants: Sequence[Variant],
    *,
    budget_s: float,
    trace_steps: int,
    equivalence_steps: int,
    samples: bool,
    tries: bool,
    load: MachineLoad,
) -> Wait:
    """What a comparison will take, from what runs before it took.

    Args:
      program, budget_s, trace_steps, equivalence_steps: as of `compare`.
      variants: the baseline first.
      samples: whether traces to plan on are there already.
      tries: whether it is tried first which toggles have an effect.
      load: how busy the machine is.
    """
    times, cores = times_of(program, is_quiet=load.is_quiet), load.cores
    setting = f"{', '.join(each.label for each in variants)}; {budget_s:g} s"
    smart = any(each.optimizations.smart_stage for each in variants)
    sampled = smart and trace_steps and not samples and not isinstance(program, FunctionProgram)
    # Each variant builds its graph, and again to be compared. What has an effect is tried in one
    # more process, with three graphs.
    processes = len(variants) + tries
    graphs = len(variants) * (2 if equivalence_steps else 1) + 3 * tries
    happens = {
        START: True,
        BUILD: True,
        SAMPLE: sampled,
        PLAN: smart,
        CHECK: equivalence_steps and len(variants) > 1,
        WARM_UP: True,
        BLOCKS: True,
        BATCHES: equivalence_steps and len(variants) > 1,
        TRACE: trace_steps,
    }
    usual = {
        START: start_seconds(processes, cores),
        BUILD: OPEN_S * len(variants) / max(1, min(cores, len(variants))),
        BLOCKS: _BLOCKS_S * len(variants),
        **{name: max(_LEAST_S[name], share * budget_s) for name, share in _SHARES.items()},
    }
    phases = []
    for name, wanted in happens.items():
        known = None if name == BLOCKS else times.seconds(name, setting)
        if wanted:
            seconds = usual[name] if known is None else known
            phases.append(Expected(name=name, seconds=seconds, fills=name == BLOCKS))
    return Wait(
        phases=tuple(phases),
        budget_s=budget_s,
        processes=processes,
        graphs=graphs,
        cores=cores,
        times=times,
        setting=setting,
    )

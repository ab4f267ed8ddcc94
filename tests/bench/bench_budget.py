"""Runs of a session in turn: whether each keeps its budget, how right its estimates are.

A session of one model runs settings one after the other, as the panel does. Prints a line for each
run: seconds in all, seconds until the first number (the first round of blocks), the estimate of the
whole wait that was said first, after the first phase and after the second one, each beside what it
was; what each phase took; and whether the machine was quiet. Then, of all but the first run, which
also builds every graph: the share within one and a half times the budget, medians with their
quartiles, and whether the estimate after the first phase was off by less than a third. With
--search, `find_best` in so many seconds, and how many settings it measured.

    python -m tests.bench.bench_budget [--model dlrm] [--runs 20] [--budget 30] [--search 40]
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import workbench as wb
from tests.bench.bench_predict import program_of
from workbench.core.optimizations import Optimizations
from workbench.experiments.measurement.machine_load import machine_load
from workbench.experiments.measurement.progress_line import state_of
from workbench.experiments.measurement.schedule import PhaseState
from workbench.experiments.program.function_program import AnyProgram

# What a run may take, and how far an estimate may be off.
MOST, OFF = 1.5, 1 / 3
SETTINGS = (
    Optimizations(smart_stage=wb.SmartStageOptions()),
    Optimizations(executor="inline"),
    Optimizations(smart_stage=wb.SmartStageOptions(), executor="cost_model"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watched:
    """One run, as its lines of progress told it; seconds."""

    label: str
    total_s: float
    first_number_s: float
    said_s: tuple[float, ...]
    phases: tuple[PhaseState, ...]
    is_quiet: bool

    @property
    def off(self) -> float:
        """How far the estimate after the first phase was off, as a share."""
        return abs(self.said_s[1] / self.total_s - 1) if len(self.said_s) > 1 else float("nan")


class Watch:
    """Listens to the lines of progress of a run."""

    def __init__(self) -> None:
        """The run begins now."""
        self._begun = time.monotonic()
        self._first_number_s = float("nan")
        self._totals: list[float] = []
        self._phase = ""
        self._phases: tuple[PhaseState, ...] = ()

    def __call__(self, text: str) -> None:
        """A line of progress."""
        state, spent_s = state_of(text), time.monotonic() - self._begun
        if state.evidence and not np.isfinite(self._first_number_s):
            self._first_number_s = spent_s
        if state.phase != self._phase and state.left_s is not None:
            self._phase = state.phase
            self._totals.append(spent_s + state.left_s)
        self._phases = state.phases or self._phases

    def watched(self, label: str, is_quiet: bool) -> Watched:
        """The run is over."""
        return Watched(
            label=label,
            total_s=time.monotonic() - self._begun,
            first_number_s=self._first_number_s,
            said_s=tuple(self._totals[:3]),
            phases=self._phases,
            is_quiet=is_quiet,
        )


def runs_of(program: AnyProgram, count: int, budget_s: float) -> list[Watched]:
    """Runs settings of one session in turn; prints a line for each."""
    session = wb.Session(program, budget_s=budget_s)
    watched = []
    for number, setting in zip(range(count), itertools.cycle(SETTINGS), strict=False):
        is_quiet, watch = machine_load().is_quiet, Watch()
        run = session.run(setting, progress=watch)
        watched.append(watch.watched(run.label, is_quiet))
        print(f"{number + 1:>3}. {_line(watched[-1])}", flush=True)
    return watched


def _line(run: Watched) -> str:
    said = ", ".join(f"{seconds:.0f}" for seconds in run.said_s)
    phases = ", ".join(f"{phase.title} {phase.seconds:.1f}" for phase in run.phases)
    return (
        f"{run.total_s:6.1f} s, first number {run.first_number_s:5.1f} s, said {said} s, "
        f"{'quiet' if run.is_quiet else 'busy '}  {run.label}\n       {phases}"
    )


def _quartiles(values: Sequence[float]) -> str:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def _summary(runs: Sequence[Watched], budget_s: float) -> None:
    """What the runs after the first one say."""
    for name, chosen in (("quiet", True), ("busy", False)):
        held = [run for run in runs if run.is_quiet is chosen]
        if not held:
            continue
        kept = sum(run.total_s <= MOST * budget_s for run in held)
        right = sum(run.off < OFF for run in held)
        print(
            f"{len(held)} runs on a {name} machine: {kept} within {MOST * budget_s:.0f} s, "
            f"{right} estimates after the first phase off by less than a third\n"
            f"  total over budget {_quartiles([run.total_s / budget_s for run in held])}\n"
            f"  first number over total "
            f"{_quartiles([run.first_number_s / run.total_s for run in held])}\n"
            f"  estimate after the first phase off by {_quartiles([run.off for run in held])}"
        )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="dlrm")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--budget", type=float, default=30.0)
    parser.add_argument(
        "--search", type=float, default=0.0, help="seconds of find_best; 0 for none"
    )
    parser.add_argument("--data", type=Path, default=Path("build/bench_budget"))
    given = parser.parse_args()
    given.data.mkdir(parents=True, exist_ok=True)
    program = program_of(given.model, given.data)
    if given.runs:
        runs = runs_of(program, given.runs, given.budget)
        _summary(runs[1:], given.budget)
    if given.search:
        begun = time.monotonic()
        best = wb.find_best(program, budget=given.search, progress=False)
        print(
            f"find_best({given.search:.0f} s): {time.monotonic() - begun:.1f} s, "
            f"{1 + len(best.runners_up)} settings measured, {len(best.not_measured)} not: {best!r}"
        )


if __name__ == "__main__":
    main()

"""Twenty planted faults, each mended as its finding says: the predicted gain beside the measured.

Each program is traced, the mend of the finding that names its fault is predicted from that trace,
and then program and mended program are measured in interleaved blocks. A mend is a toggle, a
setting, or a change of code. A change of code is a second build; it is predicted as work that is
left out or faster. Prints a row for each program: what was applied, the predicted ratio with its
interval and the width of that, the measured ratio with its 95 % interval, and whether the measured
ratio lies in the predicted interval. What is not found, or not predicted, lies in none. The traces
and comparisons are kept below --out; with --again they are read from there, and only predicted
anew.

    python -m tests.bench.bench_planted [NAME …] [--budget 12] [--again] [--out …]
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

import workbench as wb
from tests.bench.planted_faults import PLANTED, Build, Planted
from workbench.core.analysis.findings.finding import Finding
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.toggle import Toggle
from workbench.core.trace.trace import load_trace
from workbench.core.what_if.predictions import Predicted, Withheld
from workbench.core.what_if.scenario import Scenario, scenario_of
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.program.toggles import optimizations_of
from workbench.experiments.what_if.predict import predicted

# Costs that an executor learns are learned by then, as in a comparison.
_STEPS, _WARM_UP = 40, 30
_CODE = Toggle("code", ["as planted", "mended"], training="another")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help=f"of {', '.join(PLANTED)}; none runs all")
    parser.add_argument("--budget", type=float, default=12.0, help="seconds for each comparison")
    parser.add_argument("--out", type=Path, default=Path("data/bench/planted"))
    parser.add_argument("--again", action="store_true", help="predict anew, measure nothing")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    names = chosen.name or list(PLANTED)
    print("| fault | finding | applied | predicted | width | measured | in it |")
    print("|---|---|---|---|---|---|---|")
    held = 0
    for name in names:
        row = mended(name, chosen.out, chosen.budget, chosen.again)
        held += row.holds
        print(row, flush=True)
    print(f"\n{held} of {len(names)} measured gains lie in the predicted interval")
    return int(held < 0.9 * len(names))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A mended program.

    Attributes:
      fault: of the program.
      finding: key of what names the fault; "" where nothing does.
      applied: what mends it, in words.
      foreseen: what was predicted, or why nothing was.
      measured, low, high: steps/s against the program as planted, with the 95 % interval.
      replay: how far the replay of the trace is off, in words.
    """

    fault: str
    finding: str
    applied: str
    foreseen: Predicted | Withheld
    measured: float
    low: float
    high: float
    replay: str

    @property
    def holds(self) -> bool:
        """Whether the measured gain lies in the predicted interval."""
        foreseen = self.foreseen
        if not self.finding or not isinstance(foreseen, Predicted):
            return False
        return foreseen.low <= self.measured <= foreseen.high

    def __str__(self) -> str:
        foreseen, width = self.foreseen, ""
        if isinstance(foreseen, Predicted):
            said = f"{foreseen.ratio:.2f} ({foreseen.low:.2f}–{foreseen.high:.2f})"
            width = f"{100 * (foreseen.high - foreseen.low) / foreseen.ratio:.0f} %"
        else:
            said = f"not predicted: {foreseen.reason}"
        measured = f"{self.measured:.2f} ({self.low:.2f}–{self.high:.2f})"
        cells = (self.fault, self.finding or "not found", self.applied, said, width, measured)
        return f"| {' | '.join(cells)} | {'yes' if self.holds else 'NO'} {self.replay} |"


def mended(name: str, home: Path, budget_s: float, again: bool) -> Row:
    """A planted program: found, predicted and measured."""
    planted = PLANTED[name]
    program = wb.Program(name=name, build=_both_builds(planted))
    before = planted.on
    traced, compared = home / f"{name}.parquet", home / name
    if not again:
        wb.trace(program, before, steps=_STEPS, warm_up_steps=_WARM_UP, progress=False).save(traced)
    trace = load_trace(traced)
    named = next((each for each in wb.findings(trace) if each.key in planted.keys), None)
    applied, after, scenario = _mend(planted, named)
    found = predicted(trace, program, [scenario], traced=before, progress=False)
    foreseen = [each for each in (*found.predicted, *found.withheld) if each.scenario == scenario]
    if not again:
        wb.compare(
            program,
            [after],
            baseline=before,
            budget_s=budget_s,
            trace_steps=0,
            equivalence_steps=0,
            samples=None if before.stage else {before: trace},
            progress=False,
        ).save(compared)
    ratio = load_comparison(compared).ratios[0]
    return Row(
        fault=planted.fault,
        finding=named.key if named else "",
        applied=applied,
        foreseen=foreseen[0],
        measured=ratio.ratio,
        low=ratio.low,
        high=ratio.high,
        replay=f"({100 * found.replay.error:+.0f} %)" if found.replay else "",
    )


def _both_builds(planted: Planted) -> Build:
    """The program as planted, and without the fault where a change of code takes it out."""
    if planted.change is None:
        return planted.build
    mended = planted.change.build
    return lambda on: mended(on) if on[_CODE] == "mended" else planted.build(on)


def _mend(planted: Planted, found: Finding | None) -> tuple[str, Optimizations, Scenario]:
    """What mends a program: in words, as what it is measured with, and as what is predicted."""
    before = planted.on
    if planted.change:
        after = dataclasses.replace(before, chosen=(*before.chosen, _CODE.at("mended")))
        return "another code", after, Scenario(optimizations=before, faster=planted.change.faster)
    if planted.setting is not None:
        after = planted.setting
    else:
        toggle = found.toggle if found and found.toggle in planted.mends else planted.mends[0]
        on = optimizations_of(toggle, before.stage or StageOptions(), SmartStageOptions())
        after = dataclasses.replace(on, stage=on.stage or before.stage)
    return after.label(in_full=True), after, scenario_of(after)


if __name__ == "__main__":
    sys.exit(main())

"""Two settings measured beside each other alone: which of them is really the faster one.

The best of many measured settings owes some of its lead to chance, so what was chosen is compared
with it once more.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.comparison.compare import compare
from workbench.experiments.program.program import Program


@dataclasses.dataclass(frozen=True, kw_only=True)
class Duel:
    """How fast a chosen setting is, as a share of the steps/s of the one that measured best."""

    chosen: str
    best: str
    ratio: float
    low: float
    high: float

    def as_good(self, within: float) -> bool:
        """Whether the chosen one is at most this share slower."""
        return self.ratio >= 1 - within

    def __str__(self) -> str:
        return f"{self.ratio:.3f} ({self.low:.3f}–{self.high:.3f})"


def duel(
    program: Program,
    chosen: Optimizations,
    best: Optimizations,
    *,
    budget_s: float,
    stage: StageOptions | None = None,
    smart_stage: SmartStageOptions | None = None,
    kept: Path | None = None,
) -> Duel:
    """Measures two settings in interleaved blocks; one that is its own rival is as good as it.

    Args:
      program: what is run.
      chosen: the setting to judge.
      best: the one that measured best among all.
      budget_s: seconds.
      stage, smart_stage: options of the stages.
      kept: a file with the result; where it holds one of these two, nothing is measured.
    """
    names = {"chosen": chosen.label(in_full=True), "best": best.label(in_full=True)}
    if chosen == best:
        return Duel(**names, ratio=1.0, low=1.0, high=1.0)
    known = json.loads(kept.read_text()) if kept and kept.exists() else []
    for each in known:
        if {name: each[name] for name in names} == names:
            return Duel(**each)
    found = compare(
        program,
        [chosen],
        baseline=best,
        stage=stage,
        smart_stage=smart_stage,
        budget_s=budget_s,
        trace_steps=15,
        equivalence_steps=0,
    ).ratios[0]
    measured = Duel(**names, ratio=found.ratio, low=found.low, high=found.high)
    if kept:
        kept.write_text(json.dumps([*known, dataclasses.asdict(measured)], indent=1))
    return measured

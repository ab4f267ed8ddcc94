"""find_best beside measuring everything: six models, every combination of toggles.

All settings of a model are measured in interleaved groups, each beside a baseline of its own, with
as much time as that takes. Then `find_best` searches the same settings in a quarter of that time.
Prints, as Markdown, a row for each model: the setting that measured best, the one that was chosen,
how much slower than the best that one measured, and both times; then for how many models it is
within 2 %. What was measured is kept below --out; with --again it is read from there, and the
settings are only searched anew.

    python -m tests.bench.bench_search [--quick] [--model dlrm] [--each 12] [--again]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.bench_predict import program_of
from tests.bench.model_jobs import MODELS
from workbench.core.options import Optimizations, SmartStageOptions, StageOptions
from workbench.experiments.comparison.applicable_toggles import without_effect
from workbench.experiments.comparison.compare import compare
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.program import Program
from workbench.experiments.program.toggles import TOGGLES
from workbench.experiments.search.candidates import settings_of
from workbench.experiments.search.find_best import find_best

QUICK_TOGGLES = ("smart_stage", "fused_v2", "cost_model_executor")
STAGE, SMART = StageOptions(num_threads=2, capacity=2), SmartStageOptions(reorder=True)
# Settings that run beside each other, with their baseline.
GROUP = 5
WITHIN = 0.02


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """One model.

    Attributes:
      model: its name.
      best, chosen: names of the setting that measured best, and of the chosen one.
      best_ratio, chosen_ratio: what they measured when everything was.
      low, high: interval of the best one's ratio.
      exhaustive_s, search_s: seconds.
      settings, raced: how many there are, and how many the search measured.
    """

    model: str
    best: str
    chosen: str
    best_ratio: float
    chosen_ratio: float
    low: float
    high: float
    exhaustive_s: float
    search_s: float
    settings: int
    raced: int

    @property
    def loss(self) -> float:
        """How much slower the chosen one is, as a share."""
        return 1 - self.chosen_ratio / self.best_ratio


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="only this model")
    parser.add_argument("--quick", action="store_true", help="three toggles, few rounds")
    parser.add_argument("--each", type=float, help="seconds for each setting (12, quick 6)")
    parser.add_argument("--again", action="store_true", help="search anew, measure nothing else")
    parser.add_argument("--out", type=Path, default=Path("data/bench/search"))
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    toggles = QUICK_TOGGLES if chosen.quick else TOGGLES
    each_s = chosen.each or (6.0 if chosen.quick else 12.0)
    found = []
    for model in chosen.model or MODELS:
        program = program_of(model, chosen.out)
        kept = chosen.out / f"{model}{'-quick' if chosen.quick else ''}.json"
        if not chosen.again:
            kept.write_text(json.dumps(measured(program, toggles, each_s)))
        found.append(searched(model, program, json.loads(kept.read_text())))
        print(markdown(found), flush=True)
    return 0


def measured(program: Program, toggles: Sequence[str], each_s: float) -> dict:
    """The ratio of every setting, measured in groups; and the seconds that took."""
    begun_s = time.monotonic()
    left_out = without_effect(program, STAGE, SMART, Progress(True))
    kept = [name for name in toggles if name not in left_out]
    settings = settings_of(kept, STAGE, SMART, Optimizations())
    ratios = {"off": (1.0, 1.0, 1.0)}
    for at in range(0, len(settings), GROUP):
        group = settings[at : at + GROUP]
        found = compare(
            program,
            group,
            budget_s=each_s * (len(group) + 1),
            trace_steps=15,
            equivalence_steps=0,
        )
        names = [variant.label for variant in found.variants[1:]]
        full = dict(zip(names, (each.label(in_full=True) for each in group), strict=True))
        ratios |= {full[each.label]: (each.ratio, each.low, each.high) for each in found.ratios}
    return {"ratios": ratios, "seconds": time.monotonic() - begun_s, "toggles": kept}


def searched(model: str, program: Program, known: dict) -> Found:
    """What a search finds in a quarter of the time."""
    best = find_best(
        program,
        budget=known["seconds"] / 4,
        toggles=known["toggles"],
        stage=STAGE,
        smart_stage=SMART,
        refine=False,
        trace_steps=0,
    )
    ratios = {label: tuple(each) for label, each in known["ratios"].items()}
    first = max(ratios, key=lambda label: ratios[label][0])
    ratio, low, high = ratios[first]
    return Found(
        model=model,
        best=first,
        chosen=best.label,
        best_ratio=ratio,
        chosen_ratio=ratios[best.label][0],
        low=low,
        high=high,
        exhaustive_s=known["seconds"],
        search_s=best.took_s,
        settings=len(ratios) - 1,
        raced=len(best.runners_up) + (best.label != "off"),
    )


def markdown(found: Sequence[Found]) -> str:
    """The table, and for how many models the chosen setting is good."""
    lines = [
        "",
        "| model | best of all | ratio | chosen | loss | all measured | searched |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.model} | {each.best} | {each.best_ratio:.2f} ({each.low:.2f}–{each.high:.2f}) | "
        f"{each.chosen} | {100 * each.loss:.1f} % | {each.settings} in {each.exhaustive_s:.0f} s | "
        f"{each.raced} in {each.search_s:.0f} s |"
        for each in found
    ]
    good = sum(each.loss <= WITHIN for each in found)
    lines.append(f"\nWithin {100 * WITHIN:.0f} % of the best in {good} of {len(found)} models.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

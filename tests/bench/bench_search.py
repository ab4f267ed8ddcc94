"""find_best beside measuring everything: six models, every combination of toggles.

All settings of a model are measured in interleaved groups, each beside a baseline of its own, with
as much time as that takes. Then `find_best` searches the same settings in a quarter of that time.
Where it chose another one than measured best, the two are measured beside each other alone: the
best of many owes some of its lead to chance. Prints, as Markdown, a row for each model: the setting
that measured best, the one that was chosen, how much slower that one is, and both times; then for
how many models it is within 2 %. What was measured is kept below --out; with --again it is read
from there, and the settings are only searched anew.

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
from tests.bench.duel import Duel, duel
from tests.bench.model_jobs import MODELS
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.comparison.applicable_toggles import without_effect
from workbench.experiments.comparison.compare import compare
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.program import Program
from workbench.experiments.program.toggles import TOGGLES
from workbench.experiments.search.contenders import settings_of
from workbench.experiments.search.find_best import find_best

QUICK_TOGGLES = ("smart_stage", "fused_v2", "cost_model_executor")
STAGE, SMART = StageOptions(num_threads=2, capacity=2), SmartStageOptions(reorder=True)
# Settings that run beside each other, with their baseline.
GROUP = 5
WITHIN = 0.02
# Seconds for the two settings beside each other; with fewer the interval is too wide to tell.
DUEL_S = 150.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """One model.

    Attributes:
      model: its name.
      duel: the chosen setting beside the one that measured best.
      best_ratio: steps/s of that one against the baseline's when everything was measured.
      low, high: its interval.
      exhaustive_s, search_s: seconds.
      settings, raced: how many there are, and how many the search measured.
    """

    model: str
    duel: Duel
    best_ratio: float
    low: float
    high: float
    exhaustive_s: float
    search_s: float
    settings: int
    raced: int


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
        duels = kept.with_suffix(".duels.json")
        found.append(searched(model, program, json.loads(kept.read_text()), duels))
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


def searched(model: str, program: Program, known: dict, duels: Path | None = None) -> Found:
    """What a search finds in a quarter of the time; `duels` keeps how good that is."""
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
    settings = [Optimizations(), *settings_of(known["toggles"], STAGE, SMART, Optimizations())]
    named = {each.label(in_full=True): each for each in settings}
    return Found(
        model=model,
        duel=duel(
            program,
            named[best.label],
            named[first],
            budget_s=DUEL_S,
            stage=STAGE,
            smart_stage=SMART,
            kept=duels,
        ),
        best_ratio=ratio,
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
        "| model | best of all | ratio | chosen | beside the best | all measured | searched |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.model} | {each.duel.best} | {each.best_ratio:.2f} ({each.low:.2f}–"
        f"{each.high:.2f}) | {each.duel.chosen} | {each.duel} | {each.settings} in "
        f"{each.exhaustive_s:.0f} s | {each.raced} in {each.search_s:.0f} s |"
        for each in found
    ]
    good = sum(each.duel.as_good(WITHIN) for each in found)
    lines.append(f"\nWithin {100 * WITHIN:.0f} % of the best in {good} of {len(found)} models.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

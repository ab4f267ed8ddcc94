"""Predictions on models that know nothing of Workbench, beside measurements.

Each model of `foreign_models` is traced once as it is and predicted. The same settings are then
measured in interleaved blocks. Prints the settings of each model and its row as they come. The best
of a list of settings is asked for in five lists: stages, fusion, executors, what the program needs
no change for, and all. A trace whose replay does not hold is taken again, three times at most.
With --again, traces and comparisons are read from --out and only predicted anew.

    python -m tests.bench.bench_foreign [--model NAME] [--budget 60] [--again] [--out …]
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.bench_predict import rows_of
from tests.bench.foreign_models import PROGRAMS, WITHOUT_A_STAGE
from workbench.core.prediction.fit import HOLDS
from workbench.core.prediction.replay import Replay
from workbench.core.trace.trace import load_trace
from workbench.core.what_if.calibration import Calibration, Check, joined
from workbench.core.what_if.predictions import AS_GOOD
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.comparison.trace import trace
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.what_if.calibration import calibration
from workbench.experiments.what_if.predict import predict

TRACED_STEPS = 40
MOST_TRACES = 3
ALONE = ("stage", "smart_stage", "auto_fused", "inline_executor", "cost_model_executor")
TOGETHER = (
    *("smart_stage+auto_fused", "smart_stage+inline_executor"),
    *("auto_fused+cost_model_executor", "smart_stage+auto_fused+inline_executor"),
)
# Nobody needs a prediction that is nearer than twice what a measurement itself is sure of.
ERROR, OF_INTERVAL = 0.06, 2.0
LISTS = {
    "stages": ("stage", "smart stage"),
    "fusion": ("auto fused", "smart stage + auto fused"),
    "executors": ("inline executor", "cost model executor"),
    "unasked": ("smart stage", "auto fused", "inline executor", "cost model executor"),
    "all": (),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """One model, predicted and measured."""

    model: str
    replay: Replay | None
    found: Calibration
    took_s: float

    @property
    def holds(self) -> bool:
        return self.replay is not None and self.replay.holds

    @property
    def near(self) -> int:
        """Settings whose error is small, or within twice the measured interval."""
        return sum(_is_near(check) for check in self.found.checks)

    @property
    def picks(self) -> dict[str, bool]:
        """By list of settings, whether the best one was named."""
        found = {}
        for name, labels in LISTS.items():
            kept = tuple(c for c in self.found.checks if not labels or c.label in labels)
            picked = Calibration(checks=kept).picks_best(self.model, within=AS_GOOD)
            if picked is not None:
                found[name] = picked
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=PROGRAMS, help="only this model")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each comparison")
    parser.add_argument("--out", type=Path, default=Path("data/bench/foreign"))
    parser.add_argument("--again", action="store_true", help="predict anew, measure nothing")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    results = []
    for model in chosen.model or PROGRAMS:
        results.append(checked(model, chosen.out, chosen.budget, chosen.again))
        print(rows_of(results[-1].found), end="\n\n", flush=True)
        print(f"{HEAD}\n{row_of(results[-1])}", end="\n\n", flush=True)
    print("\n".join([HEAD, *map(row_of, results)]))
    print(summary(results))
    return 0


def checked(model: str, home: Path, budget_s: float, again: bool) -> Result:
    """One model, predicted and measured."""
    begun = time.monotonic()
    program = PROGRAMS[model]()
    toggles = toggles_of(program)
    traced, compared = home / f"{model}.parquet", home / model
    for _ in range(1 if again else MOST_TRACES):
        if not again:
            trace(program, steps=TRACED_STEPS, progress=False).save(traced)
        predictions = predict(load_trace(traced), program, toggles, progress=False)
        replay = predictions.replay
        if replay and abs(replay.error) <= HOLDS:
            break
    if not again:
        compare(
            program, toggles, budget_s=budget_s, equivalence_steps=0, trace_steps=30, progress=False
        ).save(compared)
    found = calibration(predictions, load_comparison(compared))
    return Result(model=model, replay=replay, found=found, took_s=time.monotonic() - begun)


def toggles_of(program: AnyProgram) -> tuple[str, ...]:
    """The settings that a program can take."""
    staged = not isinstance(program, FunctionProgram) and program.name not in WITHOUT_A_STAGE
    return tuple(name for name in (*ALONE, *TOGETHER) if staged or name != "stage")


HEAD = (
    "| model | step | replay | settings | mean error | near | sign right, of clear ones "
    "| intervals meet | best named |\n|---|---|---|---|---|---|---|---|---|"
)


def row_of(result: Result) -> str:
    """One model's row."""
    found, replay = result.found, result.replay
    right, clear = found.signs
    error = "" if found.mean_error is None else f"{100 * found.mean_error:.1f} %"
    step = f"{replay.untraced_ms:.1f} ms" if replay else ""
    off = f"{100 * replay.error:+.1f} %" if replay else "unknown"
    count = len(found.checks)
    return (
        f"| {result.model} | {step} | {off} | {count} of {count + len(found.missing)} | {error} "
        f"| {result.near} | {right} of {clear} | {found.inside} "
        f"| {sum(result.picks.values())} of {len(result.picks)} |"
    )


def summary(results: Sequence[Result]) -> str:
    """The figures over all models."""
    found = joined([each.found for each in results])
    right, clear = found.signs
    picks = [picked for each in results for picked in each.picks.values()]
    near = sum(each.near for each in results)
    return (
        f"\nThe replay holds for {sum(each.holds for each in results)} of {len(results)} models. "
        f"Mean absolute error {100 * (found.mean_error or 0):.1f} % over {len(found.checks)} "
        f"settings ({len(found.missing)} withheld); {near} within {100 * ERROR:.0f} % or twice the "
        f"measured interval; sign right in {right} of {clear} that are clear; intervals meet in "
        f"{found.inside}; the best of a list named within {100 * AS_GOOD:.0f} % in {sum(picks)} of "
        f"{len(picks)}. Took {sum(each.took_s for each in results) / 60:.0f} minutes."
    )


def _is_near(check: Check) -> bool:
    width = max(check.measured_high - check.measured, check.measured - check.measured_low)
    return abs(check.error) <= max(ERROR, OF_INTERVAL * width / check.measured)


if __name__ == "__main__":
    sys.exit(main())

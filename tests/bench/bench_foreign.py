"""Predictions on models that know nothing of Workbench, beside measurements.

Each model of `foreign_models` is traced once as it is and predicted. The same settings are then
measured in interleaved blocks, for --budget seconds. Settings that may be the best of a list are
measured once more beside each other, for --near seconds. Prints the settings and lists of each
model and its row as they come. A trace whose replay does not hold is taken again, three times at
most.

Each model's figures are added to a file in --out. A later run goes on with the models that it
lacks, and the last table is of all in the file. With --anew the models are measured again, with
--again they are only predicted again, from the kept traces and comparisons.

    python -m tests.bench.bench_foreign [--models NAME,…] [--budget 60] [--near 150] [--again] …
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench import foreign_lists
from tests.bench.bench_predict import STAGES, rows_of
from tests.bench.foreign_lists import Judged, judged, near_best
from tests.bench.foreign_models import PROGRAMS, WITHOUT_A_STAGE
from workbench.core.prediction.fit import HOLDS
from workbench.core.trace.trace import load_trace
from workbench.core.what_if.calibration import Calibration, Check
from workbench.core.what_if.predictions import AS_GOOD, Predictions
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.results import Comparison, load_comparison
from workbench.experiments.comparison.trace import trace
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.program.toggles import optimizations_of
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
RESULTS = "results.jsonl"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One model, predicted and measured, as the file keeps it.

    Attributes:
      replay: by how much the replay is off, as a share; None where that is not known.
      errors: of each setting that was predicted.
      withheld: settings that were not.
      near: settings whose error is small, or within twice the measured interval.
      right, clear: of how many settings the sign is right, and how many have a clear one.
      inside: of how many the intervals meet.
      lists: what was named best of each list.
    """

    model: str
    step_ms: float
    replay: float | None
    errors: tuple[float, ...]
    withheld: int
    near: int
    right: int
    clear: int
    inside: int
    lists: tuple[Judged, ...]
    took_s: float

    @property
    def holds(self) -> bool:
        return self.replay is not None and abs(self.replay) <= HOLDS

    def to_line(self) -> str:
        """A line of the file."""
        return json.dumps(dataclasses.asdict(self))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(PROGRAMS), help="only these, by commas")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for all settings")
    parser.add_argument("--near", type=float, default=150.0, help="seconds for those near the best")
    parser.add_argument("--out", type=Path, default=Path("data/bench/foreign"))
    parser.add_argument("--anew", action="store_true", help="also models that the file has")
    parser.add_argument("--again", action="store_true", help="predict anew, measure nothing")
    chosen = parser.parse_args(arguments)
    models = chosen.models.split(",")
    unknown = sorted(set(models) - set(PROGRAMS))
    if unknown:
        parser.error(f"no model {unknown[0]!r}; expected some of {', '.join(PROGRAMS)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    known = read(chosen.out / RESULTS)
    for model in models:
        if model in known and not (chosen.anew or chosen.again):
            continue
        known[model] = checked(model, chosen.out, chosen.budget, chosen.near, chosen.again)
        with (chosen.out / RESULTS).open("a") as file:
            file.write(known[model].to_line() + "\n")
        print(f"{HEAD}\n{row_of(known[model])}", end="\n\n", flush=True)
    rows = [known[model] for model in PROGRAMS if model in known]
    print("\n".join([HEAD, *map(row_of, rows)]))
    print(summary(rows))
    return 0


def read(path: Path) -> dict[str, Row]:
    """The last row of each model in a file."""
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        held = json.loads(line)
        lists = tuple(Judged(**each) for each in held.pop("lists"))
        rows[held["model"]] = Row(**(held | {"errors": tuple(held["errors"]), "lists": lists}))
    return rows


def checked(model: str, home: Path, budget_s: float, near_s: float, again: bool) -> Row:
    """One model, predicted and measured."""
    begun = time.monotonic()
    program = PROGRAMS[model]()
    toggles = toggles_of(program)
    predictions = _predicted(program, toggles, home / f"{model}.parquet", again)
    measured = _measured(program, toggles, home / model, budget_s, again)
    found = calibration(predictions, measured)
    rates = _rates(measured)
    by_label = {optimizations_of(each, *STAGES).label(): each for each in toggles}
    near, kept = [by_label[label] for label in near_best(found, rates)], home / f"{model}-near"
    is_there = kept.exists() if again else bool(near)
    beside = _rates(_measured(program, near, kept, near_s, again)) if is_there else {}
    lists = judged(found, rates, beside)
    print(rows_of(found), end="\n\n")
    print("\n".join([foreign_lists.HEAD, *map(str, lists)]), end="\n\n", flush=True)
    return _row(model, predictions, found, lists, time.monotonic() - begun)


def _row(
    model: str,
    predictions: Predictions,
    found: Calibration,
    lists: Sequence[Judged],
    took_s: float,
) -> Row:
    replay = predictions.replay
    right, clear = found.signs
    return Row(
        model=model,
        step_ms=replay.untraced_ms if replay else 0.0,
        replay=replay.error if replay else None,
        errors=tuple(check.error for check in found.checks),
        withheld=len(found.missing),
        near=sum(map(_is_near, found.checks)),
        right=right,
        clear=clear,
        inside=found.inside,
        lists=tuple(lists),
        took_s=took_s,
    )


def _predicted(
    program: AnyProgram, toggles: Sequence[str], traced: Path, again: bool
) -> Predictions:
    """What is predicted from a trace whose replay holds, if one of a few does."""
    for _ in range(1 if again else MOST_TRACES):
        if not again:
            trace(program, steps=TRACED_STEPS, progress=False).save(traced)
        predictions = predict(load_trace(traced), program, toggles, progress=False)
        if predictions.replay and predictions.replay.holds:
            break
    return predictions


def _measured(
    program: AnyProgram, toggles: Sequence[str], kept: Path, budget_s: float, again: bool
) -> Comparison:
    """The settings beside each other; from before, where nothing is to be measured."""
    if not again:
        compare(
            program, toggles, budget_s=budget_s, equivalence_steps=0, trace_steps=30, progress=False
        ).save(kept)
    return load_comparison(kept)


def _rates(measured: Comparison) -> Mapping[str, Sequence[float]]:
    return {each.label: each.block_steps_per_s for each in measured.variants}


def toggles_of(program: AnyProgram) -> tuple[str, ...]:
    """The settings that a program can take."""
    staged = not isinstance(program, FunctionProgram) and program.name not in WITHOUT_A_STAGE
    return tuple(name for name in (*ALONE, *TOGETHER) if staged or name != "stage")


HEAD = (
    "| model | step | replay | settings | mean error | near | sign right, of clear ones "
    "| intervals meet | best named: within 2 % | not shown to be slower |"
    "\n|---|---|---|---|---|---|---|---|---|---|"
)


def row_of(row: Row) -> str:
    """One model's row."""
    count = len(row.errors)
    error = f"{100 * statistics.fmean(map(abs, row.errors)):.1f} %" if row.errors else ""
    off = "unknown" if row.replay is None else f"{100 * row.replay:+.1f} %"
    within, unshown = _counts([row])
    return (
        f"| {row.model} | {row.step_ms:.1f} ms | {off} | {count} of {count + row.withheld} "
        f"| {error} | {row.near} | {row.right} of {row.clear} | {row.inside} "
        f"| {within} of {len(row.lists)} | {unshown} of {len(row.lists)} |"
    )


def summary(rows: Sequence[Row]) -> str:
    """The figures over all models."""
    errors = [abs(error) for row in rows for error in row.errors]
    within, unshown = _counts(rows)
    lists = [each for row in rows for each in row.lists]
    # What is its own rival has no interval.
    widths = [each.half_width for each in lists if each.named != each.best]
    half = f"±{100 * statistics.median(widths):.1f} %" if widths else "none"
    first = [ratio for each in lists if (ratio := each.first_ratio) is not None]
    as_good = sum(ratio >= 1 - AS_GOOD for ratio in first)
    share = 100 * AS_GOOD
    return (
        f"\nThe replay holds for {sum(row.holds for row in rows)} of {len(rows)} models. "
        f"Mean absolute error {100 * statistics.fmean(errors or [0]):.1f} % over {len(errors)} "
        f"settings ({sum(row.withheld for row in rows)} withheld); "
        f"{sum(row.near for row in rows)} within {100 * ERROR:.0f} % or twice the measured "
        f"interval; sign right in {sum(row.right for row in rows)} of "
        f"{sum(row.clear for row in rows)} that are clear; intervals meet in "
        f"{sum(row.inside for row in rows)}. The best of a list was named in {within} of "
        f"{len(lists)}: within {share:.0f} % by the means of what was measured; in {unshown} it is "
        f"not shown to be more than {share:.0f} % slower. Median interval of the named one beside "
        f"another that measured best: {half}. Of {len(first)} lists that were measured twice, what "
        f"measured best at first is within {share:.0f} % in {as_good}. "
        f"Took {sum(row.took_s for row in rows) / 60:.0f} minutes."
    )


def _counts(rows: Sequence[Row]) -> tuple[int, int]:
    """In how many lists the named one is within 2 %, and is not shown to be slower."""
    lists = [each for row in rows for each in row.lists]
    return sum(each.within for each in lists), sum(not each.slower for each in lists)


def _is_near(check: Check) -> bool:
    width = max(check.measured_high - check.measured, check.measured - check.measured_low)
    return abs(check.error) <= max(ERROR, OF_INTERVAL * width / check.measured)


if __name__ == "__main__":
    sys.exit(main())

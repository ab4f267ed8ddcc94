"""Predictions beside measurements: six models, every toggle alone and some together.

Each model is traced once without optimizations, everything is predicted from that trace, and the
same settings are then measured in interleaved blocks. Prints, as Markdown, a row for each setting,
then the mean absolute error, the signs that are right where the measured interval excludes 1, and
for how many models the setting predicted to be best measures within 2 % of the best one. The trace
and the comparison of each model are kept below --out; with --again they are read from there and
only predicted anew.

    python -m tests.bench.bench_predict [--model dlrm] [--budget 150] [--out data/bench/predict]
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.model_jobs import MODELS
from workbench.core.trace.trace import load_trace
from workbench.core.what_if.calibration import Calibration, joined
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.comparison.trace import trace
from workbench.experiments.program.program import Program
from workbench.experiments.what_if.calibration import calibration
from workbench.experiments.what_if.predict import predict

ROWS = 50_000
# A step of DIEN's own batch takes a quarter of a second on 2 cores.
BATCHES = {"dien": 128}
TOGGLES = (
    *("stage", "smart_stage", "fused_v1", "fused_v2", "inline_executor", "cost_model_executor"),
    *("stage+fused_v1", "smart_stage+fused_v1", "stage+cost_model_executor"),
    *("smart_stage+inline_executor", "fused_v1+cost_model_executor"),
    "smart_stage+fused_v2+cost_model_executor",
)
TRACED_STEPS = 40


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="only this model")
    parser.add_argument("--budget", type=float, default=150.0, help="seconds for each comparison")
    parser.add_argument("--out", type=Path, default=Path("data/bench/predict"))
    parser.add_argument("--again", action="store_true", help="predict anew, measure nothing")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    parts = []
    for model in chosen.model or MODELS:
        parts.append(checked(model, chosen.out, chosen.budget, chosen.again))
        print(rows_of(parts[-1]), flush=True)
    print(summary(joined(parts)))
    return 0


def checked(model: str, home: Path, budget_s: float, again: bool) -> Calibration:
    """One model, predicted and measured."""
    program = program_of(model, home)
    traced, compared = home / f"{model}.parquet", home / model
    if not again:
        trace(program, steps=TRACED_STEPS).save(traced)
    predictions = predict(load_trace(traced), program, TOGGLES)
    if predictions.replay:
        replay = predictions.replay
        print(
            f"\n{model}: a traced step takes {replay.measured_ms:.2f} ms, simulated "
            f"{replay.simulated_ms:.2f} ms ({100 * replay.error:+.1f} %)\n",
            flush=True,
        )
    if not again:
        compare(program, TOGGLES, budget_s=budget_s, equivalence_steps=0, trace_steps=30).save(
            compared
        )
    return calibration(predictions, load_comparison(compared))


def program_of(model: str, home: Path) -> Program:
    """A model on generated data."""
    from workbench.models import MODELS as ZOO

    found = ZOO[model]()
    name = Path(found.file_name)
    path = home.parent / f"{name.stem}-{ROWS}{name.suffix}"
    options = found.options(data=found.check(found.generate(path, rows=ROWS, seed=1)))
    options = dataclasses.replace(options, batch_size=BATCHES.get(model, options.batch_size))
    # The parts of the bound are two more candidates, and no column of a table.
    return dataclasses.replace(found.program(options), build_input=None, build_compute=None)


def rows_of(found: Calibration) -> str:
    """One model's table."""
    lines = ["| model | setting | predicted | measured | error |", "|---|---|---|---|---|"]
    lines += [
        f"| {c.program} | {c.label} | {c.predicted:.2f} ({c.predicted_low:.2f}–"
        f"{c.predicted_high:.2f}) | {c.measured:.2f} ({c.measured_low:.2f}–{c.measured_high:.2f}) "
        f"| {100 * c.error:+.1f} % |"
        for c in found.checks
    ]
    lines += [f"| {program} | {label} | withheld | | |" for program, label, _ in found.missing]
    reasons = dict.fromkeys(reason for _, _, reason in found.missing)
    return "\n".join([*lines, *(f"\nWithheld: {reason}." for reason in reasons)])


def summary(found: Calibration) -> str:
    """The figures over all models."""
    right, clear = found.signs
    picked = [found.picks_best(program) for program in found.programs]
    error = found.mean_error
    return (
        f"\nMean absolute error {100 * (error or 0):.1f} % over {len(found.checks)} settings "
        f"({len(found.missing)} withheld); sign right in {right} of {clear} that are clear; "
        f"intervals meet in {found.inside}; best picked in {sum(map(bool, picked))} of "
        f"{len(picked)} models."
    )


if __name__ == "__main__":
    sys.exit(main())

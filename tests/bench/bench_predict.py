"""Predictions beside measurements: six models, every toggle alone and some together.

Each model is traced once without optimizations, everything is predicted from that trace, and the
same settings are then measured in interleaved blocks. Where another setting is predicted to be best
than measured so, the two are measured beside each other alone: the best of many owes some of its
lead to chance. Prints, as Markdown, a row for each setting, then the mean absolute error, the signs
that are right where the measured interval excludes 1, and for how many models the setting predicted
to be best is within 2 % of the best one. The trace and the comparison of each model are kept below
--out; with --again they are read from there and only predicted anew. A trace whose replay does not
hold is taken again, three times at most.

With --sizes, half and twice the batch, one inter-op thread and one core instead of the toggles.

    python -m tests.bench.bench_predict [--model dlrm] [--budget 150] [--sizes] [--out …]
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.duel import Duel, duel
from tests.bench.model_jobs import MODELS
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.prediction.fit import HOLDS
from workbench.core.trace.trace import load_trace
from workbench.core.what_if.calibration import Calibration, joined
from workbench.core.what_if.predictions import AS_GOOD
from workbench.core.what_if.scenario import Scenario, scenario_of
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.comparison.trace import trace
from workbench.experiments.measurement.blocks import TimedSession, run_blocks, run_pilots
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import ratio_interval
from workbench.experiments.program.program import Program
from workbench.experiments.program.toggles import optimizations_of
from workbench.experiments.what_if.calibration import calibration
from workbench.experiments.what_if.predict import predict, predicted
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import Open

ROWS = 50_000
# A step of DIEN's own batch takes a quarter of a second on 2 cores.
BATCHES = {"dien": 128}
TOGGLES = (
    *("stage", "smart_stage", "fused_v1", "fused_v2", "inline_executor", "cost_model_executor"),
    *("stage+fused_v1", "smart_stage+fused_v1", "stage+cost_model_executor"),
    *("smart_stage+inline_executor", "fused_v1+cost_model_executor"),
    "smart_stage+fused_v2+cost_model_executor",
)
STAGES = (StageOptions(), SmartStageOptions())
TRACED_STEPS = 40
# Where the replay of a trace does not hold, its message says to trace again.
MOST_TRACES = 3


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="only this model")
    parser.add_argument("--budget", type=float, default=150.0, help="seconds for each comparison")
    parser.add_argument("--out", type=Path, default=Path("data/bench/predict"))
    parser.add_argument("--again", action="store_true", help="predict anew, measure nothing")
    parser.add_argument("--sizes", action="store_true", help="batches, threads and cores")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.sizes:
        for model in chosen.model or MODELS:
            print(sizes(model, chosen.out, chosen.budget), flush=True)
        return 0
    parts, duels = [], []
    for model in chosen.model or MODELS:
        parts.append(checked(model, chosen.out, chosen.budget, chosen.again))
        print(rows_of(parts[-1]), flush=True)
        duels += best_beside_chosen(parts[-1], model, chosen.out, chosen.budget / 3)
    print(summary(joined(parts), duels))
    return 0


def checked(model: str, home: Path, budget_s: float, again: bool) -> Calibration:
    """One model, predicted and measured."""
    program = program_of(model, home)
    traced, compared = home / f"{model}.parquet", home / model
    for number in range(1 if again else MOST_TRACES):
        if not again:
            trace(program, steps=TRACED_STEPS).save(traced)
        predictions = predict(load_trace(traced), program, TOGGLES)
        replay = predictions.replay
        if replay:
            print(
                f"\n{model}, trace {number + 1}: a traced step takes {replay.measured_ms:.2f} ms, "
                f"simulated {replay.simulated_ms:.2f} ms ({100 * replay.error:+.1f} %)\n",
                flush=True,
            )
        if replay and abs(replay.error) <= HOLDS:
            break
    if not again:
        compare(program, TOGGLES, budget_s=budget_s, equivalence_steps=0, trace_steps=30).save(
            compared
        )
    return calibration(predictions, load_comparison(compared))


def best_beside_chosen(found: Calibration, model: str, home: Path, budget_s: float) -> list[Duel]:
    """The setting predicted to be best of a model beside the one that measured best."""
    settings = [Optimizations(), *(optimizations_of(each, *STAGES) for each in TOGGLES)]
    named = {each.label(): each for each in settings}
    best = found.best(model)
    if best is None:
        return []
    chosen = named[best[0].label if best[0].predicted > 1 else "off"]
    first = named[best[1].label if best[1].measured > 1 else "off"]
    kept = home / f"{model}.duels.json"
    measured = duel(program_of(model, home), chosen, first, budget_s=budget_s, kept=kept)
    print(f"\n{model}: {measured.chosen} beside {measured.best}: {measured}", flush=True)
    return [measured]


def sizes(model: str, home: Path, budget_s: float) -> str:
    """One model with other batches, threads and cores, predicted and measured: a table."""
    program = program_of(model, home)
    traced = trace(program, steps=TRACED_STEPS)
    batch = int(program.settings["batch_size"])
    wishes = [
        Optimizations(batch_size=batch // 2),
        Optimizations(batch_size=2 * batch),
        Optimizations(inter_op_threads=1),
    ]
    scenarios = [scenario_of(wish, batch) for wish in wishes]
    scenarios.append(Scenario(optimizations=Optimizations(), cores=1))
    found = predicted(traced, program, scenarios, traced=None, progress=True)
    compared = compare(program, wishes, budget_s=budget_s, equivalence_steps=0, trace_steps=0)
    ratios = [(each.ratio, each.low, each.high) for each in compared.ratios]
    ratios.append(one_core(program, budget_s / 2))
    lines = ["| model | setting | predicted | measured |", "|---|---|---|---|"]
    for scenario, (ratio, low, high) in zip(scenarios, ratios, strict=True):
        each = found.of(scenario.label)
        foreseen = f"{each.ratio:.2f} ({each.low:.2f}–{each.high:.2f})" if each else "withheld"
        lines.append(
            f"| {model} | {scenario.label} | {foreseen} | {ratio:.2f} ({low:.2f}–{high:.2f}) |"
        )
    return "\n".join(lines)


def one_core(program: Program, budget_s: float) -> tuple[float, float, float]:
    """How many times as fast a program is on one core as on all, with its interval."""
    shown = Progress(True)
    with started_workers([("all", program), ("one", program)]) as workers:
        # Before there is a session, which has as many threads as cores that it may use.
        os.sched_setaffinity(workers[1].pid, {min(os.sched_getaffinity(0))})
        for worker in workers:
            worker.call(Open(session="main", optimizations=Optimizations()))
        sessions = [TimedSession(label=w.label, worker=w, name="main") for w in workers]
        pilots = run_pilots(sessions, budget_s=budget_s / 4, progress=shown)
        _, found = run_blocks(sessions, pilots, budget_s=0.7 * budget_s, progress=shown)
    shown.end()
    ratio = ratio_interval(found["one"].rates, found["all"].rates)
    return ratio.value, ratio.low, ratio.high


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


def summary(found: Calibration, duels: Sequence[Duel]) -> str:
    """The figures over all models."""
    right, clear = found.signs
    picked = [each.as_good(AS_GOOD) for each in duels]
    error = found.mean_error
    return (
        f"\nMean absolute error {100 * (error or 0):.1f} % over {len(found.checks)} settings "
        f"({len(found.missing)} withheld); sign right in {right} of {clear} that are clear; "
        f"intervals meet in {found.inside}; best picked in {sum(picked)} of "
        f"{len(picked)} models."
    )


if __name__ == "__main__":
    sys.exit(main())

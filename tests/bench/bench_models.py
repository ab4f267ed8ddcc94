"""Six models with every stage, fusion and executor, beside what DeepRec publishes.

Each model runs from a local file with all its variants taking turns; the five of DeepRec's
SmartStage table run again with an input that each batch waits for as long as the step takes.
Prints three tables as Markdown with 95 % intervals; writes one tidy Parquet, a row for each model,
variant and input, and appends the machine, versions and date to a JSON-lines file beside it, with
the same `run`. Progress goes to stderr. A model that fails is a row that says so.

Bounded to 30 minutes. --quick stays under 5: DLRM and DIN alone, small batches, nothing checked.

    python -m tests.bench.bench_models [--quick] [--model dlrm] [--minutes 30] [--out data/bench]
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.model_jobs import (
    COMPUTE,
    FUSIONS,
    MODELS,
    QUICK_FUSIONS,
    QUICK_MODELS,
    Job,
    Outcome,
    OutOfTimeError,
    planned_jobs,
    run_jobs,
)
from tests.bench.model_tables import frame_of, markdown, rows_of
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.comparison.compare import compare

THREADS = CAPACITY = 2
FULL_MINUTES, QUICK_MINUTES = 30.0, 4.75
# Of the time, for writing and what an operating system takes.
RESERVE_S = 15.0
# A step of DIEN's own batch takes a quarter of a second on 2 cores.
FULL_BATCHES = {"dien": 128}
QUICK_BATCHES = {"dlrm": 128, "din": 64}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is done for each comparison.

    Attributes:
      rows: of generated data.
      batches: sizes of batches where they are not the model's own.
      trace_steps: steps that a smart stage is planned on.
      equivalence_steps: steps whose losses are compared on the compute-bound input.
    """

    rows: int
    batches: dict[str, int]
    trace_steps: int
    equivalence_steps: int


FULL = Effort(rows=50_000, batches=FULL_BATCHES, trace_steps=30, equivalence_steps=30)
QUICK = Effort(rows=20_000, batches=QUICK_BATCHES, trace_steps=10, equivalence_steps=0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two models, under 5 minutes")
    parser.add_argument("--model", action="append", choices=MODELS, help="only this model")
    parser.add_argument("--minutes", type=float, help="bound for everything")
    parser.add_argument("--out", type=Path, default=Path("data/bench"), help="where files go")
    chosen = parser.parse_args(arguments)
    effort = QUICK if chosen.quick else FULL
    minutes = chosen.minutes or (QUICK_MINUTES if chosen.quick else FULL_MINUTES)
    jobs = planned_jobs(
        chosen.model or (QUICK_MODELS if chosen.quick else MODELS),
        QUICK_FUSIONS if chosen.quick else FUSIONS,
    )
    run = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    load = os.getloadavg()[0]

    def measure(job: Job, *, budget_s: float, limit_s: float, latency_ms: float) -> Any:
        with limited(limit_s):
            return measured(job, effort, chosen.out, budget_s=budget_s, latency_ms=latency_ms)

    outcomes = []
    for outcome in run_jobs(jobs, measure, total_s=60 * minutes - RESERVE_S, say=_say):
        outcomes.append(outcome)
        # After each, so that nothing is lost when the machine is.
        frame = frame_of([row for each in outcomes for row in rows_of(each, run=run)])
        write_parquet(frame, chosen.out, chosen.quick)
    append_environment(outcomes, chosen.out, run=run, quick=chosen.quick, load_at_start=load)
    print(markdown(frame))
    return 1 if any(outcome.failure for outcome in outcomes) else 0


def measured(job: Job, effort: Effort, home: Path, *, budget_s: float, latency_ms: float) -> Any:
    """The comparison of one job."""
    from workbench.models import MODELS as ZOO

    model = ZOO[job.model]()
    name = Path(model.file_name)
    path = home / f"{name.stem}-{effort.rows}{name.suffix}"
    options = model.options(data=model.check(model.generate(path, rows=effort.rows, seed=1)))
    batch = effort.batches.get(job.model, options.batch_size)
    options = dataclasses.replace(options, batch_size=batch, input_latency_ms=latency_ms)
    # The parts of the bound are two more candidates, and no column of a table.
    program = dataclasses.replace(model.program(options), build_input=None, build_compute=None)
    return compare(
        program,
        job.toggles,
        stage=StageOptions(num_threads=THREADS, capacity=CAPACITY),
        smart_stage=SmartStageOptions(reorder=True, capacity=CAPACITY),
        budget_s=budget_s,
        trace_steps=effort.trace_steps,
        equivalence_steps=effort.equivalence_steps if job.input_kind == COMPUTE else 0,
    )


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Ends the block with an OutOfTimeError after `seconds`, whatever it waits for."""

    def stop(number: int, frame: Any) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def write_parquet(frame: Any, home: Path, quick: bool) -> Path:
    """Writes the rows, whole or not at all."""
    path = home / ("models-quick.parquet" if quick else "models.parquet")
    home.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(".part")
    frame.to_parquet(made, index=False)
    os.replace(made, path)
    return path


def append_environment(outcomes: Sequence[Outcome], home: Path, **facts: Any) -> Path:
    """Appends what was run on as one line of JSON."""
    known = [outcome.found.environment for outcome in outcomes if outcome.found is not None]
    said = {
        **facts,
        **(known[0] if known else {"tensorflow": importlib.metadata.version("tensorflow")}),
        "numpy": importlib.metadata.version("numpy"),
        "seconds": round(sum(outcome.seconds for outcome in outcomes), 1),
        "failures": sum(bool(outcome.failure) for outcome in outcomes),
    }
    path = home / "models-environment.jsonl"
    home.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(said) + "\n")
    return path


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Steps of the six models with memory as glibc keeps it, and with `wb.keep_freed_memory()`.

Each model runs in several processes of either kind, the same program in all of them, in interleaved
blocks. Prints, as Markdown, a row for each model: the median time of a step and the page faults a
step, lowest and highest of the processes, and the ratio of the kinds with its interval over blocks.
With a toggle, the kind that keeps its memory has that too: TensorFlow as it comes, beside all that
Workbench does.

    python -m tests.bench.bench_memory [--model din] [--processes 3] [--budget 40]
        [--toggle auto_fused+smart_stage] [--batch-size 512]
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from tests.bench.bench_predict import program_of
from tests.bench.model_jobs import MODELS
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.measurement.blocks import TimedSession, run_blocks, run_pilots
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import ratio_interval
from workbench.experiments.program.program import Program
from workbench.experiments.program.toggles import optimizations_of
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.wire.messages import Open
from workbench.number_words import decimal

# glibc's own number, so that it changes nothing but that memory is left as it is.
_AS_IT_IS = {"MALLOC_ARENA_TEST": "8"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="only this model")
    parser.add_argument("--processes", type=int, default=3, help="of each kind")
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of blocks of a model")
    parser.add_argument("--toggle", help="of the processes that keep their memory")
    parser.add_argument("--batch-size", type=int, help="of all processes")
    chosen = parser.parse_args(arguments)
    plain = Optimizations(batch_size=chosen.batch_size)
    kept = plain
    if chosen.toggle:
        kept = optimizations_of(chosen.toggle, StageOptions(), SmartStageOptions())
        kept = dataclasses.replace(kept, batch_size=chosen.batch_size)
    print("| model | glibc: ms a step | page faults | kept: ms a step | page faults | ratio |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as home:
        for model in chosen.model or MODELS:
            program = program_of(model, Path(home) / "models")
            print(row(model, program, (plain, kept), chosen.processes, chosen.budget), flush=True)
    return 0


def row(
    model: str,
    program: Program,
    kinds: tuple[Optimizations, Optimizations],
    processes: int,
    budget_s: float,
) -> str:
    """Measures one model; `kinds` are the settings of processes of either kind."""
    numbers, shown = range(processes), Progress(True)
    with contextlib.ExitStack() as stack:
        with mock.patch.dict(os.environ, _AS_IT_IS):
            workers = _opened(stack, program, [f"glibc {number}" for number in numbers], kinds[0])
        workers += _opened(stack, program, [f"kept {number}" for number in numbers], kinds[1])
        sessions = [TimedSession(label=w.label, worker=w, name="main") for w in workers]
        pilots = run_pilots(sessions, budget_s=budget_s / 4, progress=shown)
        before = [_faults(each) for each in workers]
        plan, found = run_blocks(sessions, pilots, budget_s=budget_s, progress=shown)
        ran = [plan.rounds * steps for steps in plan.steps]
        faults = [
            (_faults(worker) - had) / steps
            for worker, had, steps in zip(workers, before, ran, strict=True)
        ]
    shown.end()
    blocks = [found[worker.label] for worker in workers]
    cells, rates = [], []
    for part in (slice(0, processes), slice(processes, None)):
        cells += [_range([each.step_ns_median / 1e6 for each in blocks[part]], 1)]
        cells += [_range(faults[part], 0)]
        rates.append(np.mean([each.rates for each in blocks[part]], axis=0).tolist())
    ratio = ratio_interval(rates[1], rates[0])
    words = f"{ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"
    return f"| {model} | {' | '.join(cells)} | {words} |"


def _opened(
    stack: contextlib.ExitStack, program: Program, labels: Sequence[str], wishes: Optimizations
) -> tuple[Worker, ...]:
    workers = stack.enter_context(started_workers([(label, program) for label in labels]))
    for worker in workers:
        worker.call(Open(session="main", optimizations=wishes))
    return tuple(workers)


def _faults(worker: Worker) -> int:
    fields = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7])


def _range(values: Sequence[float], decimals: int) -> str:
    low, high = (decimal(float(each), decimals) for each in (min(values), max(values)))
    return low if low == high else f"{low}–{high}"


if __name__ == "__main__":
    sys.exit(main())

"""Steps of the six models with memory as glibc keeps it, and with `wb.keep_freed_memory()`.

Each model runs in several processes of either kind, the same program in all of them, in interleaved
blocks. Prints, as Markdown, a row for each model: the median time of a step and the page faults a
step, lowest and highest of the processes, and the ratio of the kinds with its interval over blocks.

    python -m tests.bench.bench_freed_memory [--model din] [--processes 3] [--rounds 12]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tests.bench.bench_predict import program_of
from tests.bench.model_jobs import MODELS
from workbench.core.options import Optimizations
from workbench.experiments.measurement.statistics import ratio_interval
from workbench.experiments.program.program import Program
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.wire.messages import Open, RunBlock
from workbench.number_words import decimal

# glibc's own number, so that it changes nothing but that memory is left as it is.
_AS_IT_IS = {"MALLOC_ARENA_TEST": "8"}
_WARM_UP = 40
_BLOCK_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="only this model")
    parser.add_argument("--processes", type=int, default=3, help="of each kind")
    parser.add_argument("--rounds", type=int, default=12, help="blocks of each process")
    chosen = parser.parse_args(arguments)
    print("| model | glibc: ms a step | page faults | kept: ms a step | page faults | ratio |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as home:
        for model in chosen.model or MODELS:
            program = program_of(model, Path(home) / "models")
            print(row(model, program, chosen.processes, chosen.rounds), flush=True)
    return 0


def row(model: str, program: Program, processes: int, rounds: int) -> str:
    """Measures one model."""
    labels = [(str(number), program) for number in range(processes)]
    with contextlib.ExitStack() as stack:
        with _environment(_AS_IT_IS):
            stock = stack.enter_context(started_workers(labels))
            _open(stock)
        kept = stack.enter_context(started_workers(labels))
        _open(kept)
        workers = [*stock, *kept]
        steps = _steps_of_a_block(workers)
        times = np.zeros((len(workers), rounds))
        before = [_faults(each) for each in workers]
        for number in range(rounds):
            order = range(len(workers)) if number % 2 else reversed(range(len(workers)))
            for place in order:
                times[place, number] = _block_ms(workers[place], steps)
        done = steps * rounds
        faults = [(_faults(w) - had) / done for w, had in zip(workers, before, strict=True)]
    cells = []
    for part in (slice(0, processes), slice(processes, None)):
        medians, own = np.median(times[part], axis=1), faults[part]
        cells += [_range(medians, 1), _range(own, 0)]
    rates = [(1 / times[part]).mean(axis=0) for part in (slice(processes, None), slice(processes))]
    ratio = ratio_interval(rates[0].tolist(), rates[1].tolist())
    words = f"{ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"
    return f"| {model} | {' | '.join(cells)} | {words} |"


def _open(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.call(Open(session="main", optimizations=Optimizations()))
        worker.call(RunBlock(session="main", steps=_WARM_UP))


def _steps_of_a_block(workers: Sequence[Worker]) -> int:
    typical = statistics.median(_block_ms(worker, 20) for worker in workers)
    return max(10, round(_BLOCK_S * 1e3 / typical))


def _block_ms(worker: Worker, steps: int) -> float:
    """Mean time of a step after the first ones, which follow a rest."""
    ends = np.asarray(worker.call(RunBlock(session="main", steps=steps)).ends_ns) / 1e6
    return float((ends[-1] - ends[4]) / (len(ends) - 5))


def _faults(worker: Worker) -> int:
    fields = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7])


def _range(values: Sequence[float] | np.ndarray, decimals: int) -> str:
    low, high = (decimal(float(each), decimals) for each in (min(values), max(values)))
    return low if low == high else f"{low}–{high}"


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


if __name__ == "__main__":
    sys.exit(main())

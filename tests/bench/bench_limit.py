"""Steps of DLRM and DeepFM beside the same sums in a program without a framework.

The reference (native/bench/step_limit.cc) has the same batches, weights, sums and number of
threads. In turns with it run stock TensorFlow, the same graph with `auto_fused` alone, with a smart
stage and on the cost model executor, Keras compiled by XLA and, where a Python is named that has
them, torch (compiled, with FBGEMM's tables where they are) and AMD's zentf, alone and with
`auto_fused`. Ids lie ready in memory, so that nothing is parsed. Keras trains all weights by
Adagrad.

Prints, as Markdown, a row for each model and batch size: the reference's time, then step /
reference of each with its 95 % interval, how far the losses of the first 24 steps are from the
reference's, and what `wb.limit` says a step needs at least: over the reference's time, and over
what its threads compute in it, which other programs on the machine lengthen less. Before that,
what share of the machine's peak the reference's products reach. Behind it, the parts of each step:
the reference's CPU time, its arithmetic and bytes, and the view's. With --floor-runs, how many
single steps of the reference and of `auto_fused` were shorter than the view's least time.

    python -m tests.bench.bench_limit [--model dlrm] [--batch-size 512] [--seconds 60]
        [--torch PYTHON] [--zentf PYTHON] [--floor-runs 200]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tests.bench import limit_parts
from tests.bench import limit_peers as peers
from tests.bench.limit_file import MODELS
from tests.bench.limit_model import program
from tests.bench.served_blocks import Served
from tests.bench.step_limit import StepLimit, multiply_adds
from tests.bench.timed_blocks import timed
from workbench.core.analysis.limit.limit import Limit
from workbench.core.optimizations import Optimizations
from workbench.experiments.comparison.limit import limit
from workbench.experiments.comparison.machine_peaks import machine_peaks
from workbench.experiments.comparison.trace import trace
from workbench.experiments.measurement.statistics import ratio_interval

REFERENCE = "reference"
_EQUAL = 1e-5
# Whose losses are to be the reference's; Keras sums and updates otherwise.
_COMPARED = tuple(name for name in peers.NAMES if name != peers.KERAS)
# Of measuring the reference's parts.
_ROUNDS, _ROUND_S = 10, 0.1
_GOALS = {512: 1.4, 2048: 1.25}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--batch-size", type=int, action="append", help="512 and 2048 by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="of measuring, each row")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--torch", help="a Python that has torch, and fbgemm_gpu at best")
    parser.add_argument("--zentf", help="a Python that has zentf, TensorFlow and Workbench")
    parser.add_argument(
        "--peer", action="append", choices=peers.NAMES, help="beside stock, only it"
    )
    parser.add_argument("--floor-runs", type=int, default=0, help="steps to hold the floor against")
    chosen = parser.parse_args(arguments)
    _print_peak(chosen.threads)
    named = [name for name in peers.NAMES if _python(name, chosen)]
    heads = ["model", "batch", "reference, ms", *(f"{name} /" for name in named)]
    print("| " + " | ".join([*heads, "losses", "`wb.limit` /"]) + " |")
    print("|---" * (len(heads) + 2) + "|", flush=True)
    behind: list[str] = []
    for model in chosen.model or MODELS:
        for batch in chosen.batch_size or sorted(_GOALS):
            with tempfile.TemporaryDirectory() as folder:
                row, more = _row(model, batch, named, Path(folder), chosen)
            print(row, flush=True)
            behind += more
    print("", *behind, sep="\n\n")


def _print_peak(threads: int) -> None:
    peak = machine_peaks().multiply_adds["float32"]
    reached = multiply_adds(threads)
    print(
        f"The reference's products do {reached / 1e9:.1f} G multiply-adds/s a thread, "
        f"{reached / peak:.2f} of the peak of {peak / 1e9:.1f}.\n"
    )


def _python(name: str, chosen: argparse.Namespace) -> str | None:
    """The Python that runs a peer; None where there is none."""
    if chosen.peer and name not in (peers.STOCK, *chosen.peer):
        return None
    named: dict[str, str | None] = {
        peers.TORCH: chosen.torch,
        peers.ZENTF: chosen.zentf,
        peers.BOTH: chosen.zentf,
    }
    return named.get(name, sys.executable)


def _row(
    model: str, batch: int, named: Sequence[str], folder: Path, chosen: argparse.Namespace
) -> tuple[str, list[str]]:
    """The row of the table, and what is printed behind the table."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    given = [model, str(batch), str(chosen.threads), str(folder)]
    served: list[Served] = []
    try:
        # The first one writes what the others start from.
        for name in named:
            command = [_python(name, chosen) or "", "-m", "tests.bench.limit_peers", name, *given]
            served.append(Served(command, peers.ENVIRONMENTS.get(name)))
        reference = StepLimit(str(peers.start_file(folder)), chosen.threads)
        losses = reference.losses(peers.COMPARED)
        blocks = {name: run for each in served for name, run in each.blocks.items()}
        blocks[REFERENCE] = _block_of(reference)
        seconds = timed(blocks, chosen.seconds, peers.SPINNING)
        single = {
            name: [blocks[name](1) for _ in range(chosen.floor_runs)]
            for name in (REFERENCE, peers.OURS)
            if name in blocks
        }
        parts = _parts(reference, float(np.median(seconds[REFERENCE])))
    finally:
        for each in served:
            each.end()
    for each in served:
        for name, problem in each.problems.items():
            print(f"{name} is left out: {problem}", file=sys.stderr)
    rates = {name: [1 / each for each in found] for name, found in seconds.items()}
    cells = [_ratio(rates, name, batch) for name in named]
    flops = reference.flops
    reference.close()
    median = float(np.median(seconds[REFERENCE]))
    least = _limit(model, batch)
    view = limit_parts.of_view(least.df)
    said = (
        f"{least.floor_ns / 1e9 / median:.2f}, of what it computes "
        f"{least.one_core_ns / 1e9 / _computed(parts):.2f} (arithmetic of products "
        f"{view.loc[limit_parts.PRODUCTS, 'flops'] / flops:.3f}, a step of "
        f"{least.step_ns / 1e6:.1f} ms needs {least.floor_ns / 1e6:.1f})"
    )
    times = [model, str(batch), f"{1e3 * median:.2f}"]
    row = "| " + " | ".join([*times, *cells, _losses(losses, named, folder), said]) + " |"
    label = f"{model} {batch}"
    behind = [limit_parts.table(label, parts, limit_parts.counts(model, batch), view)]
    behind += [
        f"{label}: {sum(s < least.floor_ns / 1e9 for s in found)} of {len(found)} steps of {name} "
        f"took less than {least.floor_ns / 1e6:.2f} ms; the shortest {1e3 * min(found):.2f}"
        for name, found in single.items()
        if found
    ]
    return row, behind


def _parts(reference: StepLimit, step_s: float) -> dict[str, float]:
    """CPU seconds of the reference's parts, of its best of some rounds: none is held up by all."""
    steps = max(2, round(_ROUND_S / step_s))
    return min((reference.parts(steps) for _ in range(_ROUNDS)), key=_computed)


def _computed(parts: dict[str, float]) -> float:
    return sum(seconds for part, seconds in parts.items() if part != limit_parts.WAITS)


def _block_of(reference: StepLimit) -> Callable[[int], float]:
    """Runs as many steps as it is asked for in one call; returns their seconds."""

    def seconds_of(steps: int) -> float:
        begin = time.perf_counter()
        reference.run(steps)
        return time.perf_counter() - begin

    return seconds_of


def _ratio(rates: dict[str, list[float]], name: str, batch: int) -> str:
    """Step / reference, marked where ours misses its goal."""
    if name not in rates:
        return "–"
    found = ratio_interval(rates[REFERENCE], rates[name], 0)
    goal = _GOALS.get(batch)
    missed = name in (peers.OURS, peers.ORDERED) and goal is not None and found.value > goal
    return f"{found.value:.2f} ({found.low:.2f}–{found.high:.2f})" + " MISSED" * missed


def _losses(losses: np.ndarray, named: Sequence[str], folder: Path) -> str:
    """The largest relative difference to the reference's; which peers' are further off."""
    off = {}
    for name in named:
        path = peers.losses_file(folder, name)
        if name in _COMPARED and path.exists():
            off[name] = float(np.max(np.abs(np.load(path) / losses - 1)))
    far = [f"{name} {value:.1e}" for name, value in off.items() if value > _EQUAL]
    most = max(off.values(), default=float("nan"))
    return f"within {most:.1e}" if not far else f"DIFFER: {', '.join(far)}"


def _limit(model: str, batch: int) -> Limit:
    """What the view says of the fused step."""
    fused = Optimizations(fused_embeddings="auto")
    return limit(trace(program(model, batch), fused, progress=False), progress=False)


if __name__ == "__main__":
    main()

"""What each core of this machine does at most, measured while all cores do it; prints JSON.

A process of its own runs this, in which a product of NumPy's takes one thread:

    OPENBLAS_NUM_THREADS=1 python -m workbench.experiments.comparison.peak_probe
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

from workbench.core.analysis.limit.peaks import MULTIPLIED, Peaks
from workbench.usable import usable_cores

# The best of several short rounds counts: a machine does no more than it can.
_ROUNDS, _ROUND_S = 8, 0.06
# Rows, inputs and units of a dense layer.
_LAYER = 512
# In a core's own cache; of each core, more than that; of all cores, more than any cache.
_CACHED_BYTES = 128 << 10
_SHARED_BYTES = 4 << 20
_FAR_BYTES, _FEWEST_FAR_BYTES = 128 << 20, 16 << 20
_LINE_FLOATS = 16
_LINES = 1 << 12
_TEXT_ROWS = 4096
# Fields of a line of clicks.
_NUMBERS, _WORDS = 14, 26

# Makes, for a core, what does some work; and how much that is.
Make = Callable[[int], tuple[Callable[[], object], float]]


def measured(cores: int) -> Peaks:
    """The peaks of one of so many cores."""
    return Peaks(
        cores=cores,
        multiply_adds={dtype: _rate(cores, _product(dtype)) for dtype in MULTIPLIED},
        cached_bytes=_rate(cores, _copy(_CACHED_BYTES)),
        shared_bytes=_rate(cores, _copy(_SHARED_BYTES)),
        memory_bytes=_rate(cores, _copy(_far_bytes(cores))),
        cached_lines=_rate(cores, _reads(_SHARED_BYTES)),
        lines=_rate(cores, _reads(_far_bytes(cores))),
        fields=_rate(cores, _text),
    )


def _far_bytes(cores: int) -> int:
    """Of one core: together more than the shared caches hold, and each more than its own does."""
    return max(_FAR_BYTES // cores, _FEWEST_FAR_BYTES)


def _rate(cores: int, make: Make) -> float:
    """Work a second of a core while as many threads as cores do it: the best round."""
    runs = [make(core) for core in range(cores)]
    for run, _ in runs:
        run()
    return max(_round(runs) for _ in range(_ROUNDS)) / cores


def _round(runs: list[tuple[Callable[[], object], float]]) -> float:
    """Work a second of all threads together, while each has its core."""
    rates = [0.0] * len(runs)
    together = threading.Barrier(len(runs))

    def work(core: int) -> None:
        run, amount = runs[core]
        together.wait()
        begun, end, count = time.thread_time(), time.perf_counter() + _ROUND_S, 0
        while time.perf_counter() < end or not count:
            run()
            count += 1
        # Of its own time: another program may have had the core meanwhile.
        rates[core] = count * amount / (time.thread_time() - begun)

    threads = [threading.Thread(target=work, args=(core,)) for core in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


def _product(dtype: str) -> Make:
    def make(core: int) -> tuple[Callable[[], object], float]:
        random = np.random.default_rng(core)
        inputs, weights, gradient = random.random((3, _LAYER, _LAYER)).astype(dtype)
        out = np.empty_like(inputs)

        def run() -> None:
            np.matmul(inputs, weights, out=out)
            np.matmul(inputs.T, gradient, out=out)
            np.matmul(gradient, weights.T, out=out)

        return run, 3.0 * _LAYER**3

    return make


def _copy(count: int) -> Make:
    """Half of the bytes is read, half is written."""

    def make(core: int) -> tuple[Callable[[], object], float]:
        del core
        source = np.ones(count // 8, np.float32)
        target = np.zeros_like(source)
        # Short calls would measure Python.
        times = max(1, (4 << 20) // count)

        def run() -> None:
            for _ in range(times):
                np.copyto(target, source)

        return run, float(2 * source.nbytes * times)

    return make


def _reads(count: int) -> Make:
    def make(core: int) -> tuple[Callable[[], object], float]:
        table = np.ones((count // (4 * _LINE_FLOATS), _LINE_FLOATS), np.float32)
        # All rows in turn: those of one call alone would lie in a cache at the next.
        order = np.random.default_rng(core).permutation(len(table))
        ids = itertools.cycle(np.split(order, len(table) // _LINES))
        out = np.empty((_LINES, _LINE_FLOATS), np.float32)
        return lambda: np.take(table, next(ids), axis=0, out=out, mode="clip"), float(_LINES)

    return make


def _text(core: int) -> tuple[Callable[[], object], float]:
    import pyarrow as pa
    from pyarrow import csv

    random = np.random.default_rng(core)
    numbers = random.integers(1000, size=(_TEXT_ROWS, _NUMBERS))
    words = random.integers(1 << 32, size=(_TEXT_ROWS, _WORDS))
    lines = [
        "\t".join([*map(str, row), *(f"{word:08x}" for word in some)])
        for row, some in zip(numbers.tolist(), words.tolist(), strict=True)
    ]
    text = pa.py_buffer("\n".join(lines).encode())
    names = [f"c{i}" for i in range(_NUMBERS + _WORDS)]
    types = dict(zip(names, [pa.float32()] * _NUMBERS + [pa.string()] * _WORDS, strict=True))
    reading = csv.ReadOptions(use_threads=False, column_names=names)
    parsing = csv.ParseOptions(delimiter="\t")
    converting = csv.ConvertOptions(column_types=types)

    def run() -> object:
        return csv.read_csv(pa.BufferReader(text), reading, parsing, converting)

    return run, float(_TEXT_ROWS * len(names))


def main() -> None:
    json.dump(measured(usable_cores()).to_json(), sys.stdout)


if __name__ == "__main__":
    main()

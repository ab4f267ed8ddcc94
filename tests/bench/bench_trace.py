"""Opens, saves, checks, counts and exports a large trace, and prints what it takes.

python -m tests.bench.bench_trace
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.builders.traces import big_trace
from workbench.core.metrics import step_metrics
from workbench.core.trace import load_trace


def best_of(times: int, job: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        job()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    trace = big_trace(options.events)
    memory = sum(table.memory_usage(deep=True).sum() for table in trace.tables().values())
    per_million = 1e6 / len(trace.events)
    print(f"{len(trace.events):,} events, {len(trace.steps()):,} steps")
    print(f"memory      {memory / 1e6:6.1f} MB   {memory * per_million / 1e6:.1f} MB a million")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.parquet")
        save = best_of(options.repeats, lambda: trace.save(path))
        size = path.stat().st_size
        print(f"disk        {size / 1e6:6.1f} MB   {size * per_million / 1e6:.1f} MB a million")
        for name, seconds in (
            ("save", save),
            ("load", best_of(options.repeats, lambda: load_trace(path))),
            ("self check", best_of(options.repeats, trace.self_check)),
            ("metrics", best_of(1, lambda: step_metrics(trace))),
            ("to_chrome", best_of(1, lambda: trace.to_chrome(Path(folder, "trace.json")))),
        ):
            print(f"{name:<11} {seconds:6.2f} s")


if __name__ == "__main__":
    main()

"""Create, run and close again and again: no thread and no memory may be left behind.

`WORKBENCH_SOAK_CYCLES` sets the number of cycles (`make soak`: 10,000).
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time

import psutil
import pytest
import tensorflow as tf

import workbench as wb
from workbench.core.session.runner_registry import runners
from workbench.core.session.running.stage_run import StageRun

v1 = tf.compat.v1
CYCLES = int(os.environ.get("WORKBENCH_SOAK_CYCLES", "30"))
# What an allocator may keep for itself, and what a session of stock TensorFlow leaves and a margin.
ALLOWED_BYTES = 16 << 20
ALLOWED_BYTES_PER_CYCLE = 512


def cycle(graph, fetch, number: int) -> None:
    """One session: consumed a little, then closed in one of the ways sessions end."""
    session = v1.Session(graph=graph)
    runs = [StageRun(runner, session) for runner in runners(graph)]
    for _ in range(3):
        session.run(fetch)
    if number % 3 == 0:
        for run in runs:
            run.stop()
    session.close()
    if number % 3 == 1:
        for run in runs:
            run.stop()


def native_threads() -> int:
    return psutil.Process().num_threads()


@pytest.mark.slow
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_cycles_leave_no_thread_and_no_memory(graph):
    dataset = tf.data.Dataset.range(1 << 40).map(lambda x: tf.fill([1000], x))
    number = v1.data.make_one_shot_iterator(dataset).get_next()
    fetch = wb.staged([number, number + 1], wb.StageOptions(num_threads=2, capacity=2))
    graph.finalize()
    process = psutil.Process()
    warm_up = max(15, CYCLES // 10)
    for i in range(warm_up):
        cycle(graph, fetch, i)
    gc.collect()
    threads, memory = native_threads(), process.memory_info().rss
    for i in range(CYCLES):
        cycle(graph, fetch, i)
        if i % 1000 == 999:
            print(f"{i + 1} cycles, {process.memory_info().rss / 1e6:.0f} MB", file=sys.stderr)
    gc.collect()
    deadline = time.monotonic() + 20
    while native_threads() > threads and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [t.name for t in threading.enumerate() if t.name.startswith("prefetch")]
    assert left == []
    assert native_threads() <= threads
    grown = process.memory_info().rss - memory
    assert grown <= ALLOWED_BYTES + CYCLES * ALLOWED_BYTES_PER_CYCLE, f"{grown / 1e6:.1f} MB grown"
    print(f"{CYCLES} cycles: {grown / 1e6:+.1f} MB, {native_threads() - threads:+d} threads")

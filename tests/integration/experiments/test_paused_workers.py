"""Processes that stand still while others are measured."""

from __future__ import annotations

import time

import numpy as np
import psutil
import pytest

import workbench as wb
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import Open, RunBlock, RunSteps

BATCH_S = 0.02


def build(optimizations):
    """Batches that take 20 ms each, fifty of which are read ahead."""
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops import testing

    v1 = tf.compat.v1
    data = tf.data.Dataset.from_tensors(tf.ones([8, 4])).repeat()
    data = data.apply(testing.sleep(int(1e6 * BATCH_S))).prefetch(50)
    x = v1.data.make_one_shot_iterator(data).get_next()
    if optimizations.stage:
        x = wb.staged(x, optimizations.stage)
    loss = tf.reduce_mean(tf.square(x * v1.get_variable("w", [4])))
    return wb.Built(train_op=v1.train.GradientDescentOptimizer(0.1).minimize(loss), loss=loss)


PROGRAM = wb.Program(name="waits", build=build)
pytestmark = pytest.mark.usefixtures("no_process_is_left")


def test_no_setting_is_faster_than_an_input_that_reads_ahead() -> None:
    """While others ran, such an input has filled its buffer: steps came for nothing."""
    found = wb.compare(
        PROGRAM, ["stage"], budget_s=4, trace_steps=0, equivalence_steps=0, progress=False
    )
    for each in found.variants:
        # Half a block's first batch may be ready.
        assert each.steps_per_s < 1.1 / BATCH_S


def test_nor_is_a_traced_step_or_a_sample_beside_it() -> None:
    """Its session rests while others are opened."""
    found = wb.compare(
        PROGRAM, ["stage"], budget_s=4, trace_steps=6, equivalence_steps=0, progress=False
    )
    for each in found.variants:
        assert each.trace is not None and each.trace.meta.untraced is not None
        # Half, and the median: on a busy machine a batch may come late, and the next one at once.
        assert each.trace.meta.untraced.run_ns > 0.5e9 * BATCH_S
    with started_workers([("waits", PROGRAM)]) as (worker,):
        worker.call(Open(session="beside", optimizations=wb.Optimizations()))
        worker.call(RunBlock(session="beside", steps=30))
        time.sleep(1.0)
        rested = worker.call(RunBlock(session="beside", steps=10, after_rest=True))
    assert np.median(np.diff(rested.ends_ns)) > 0.5e9 * BATCH_S


def states(pid: int) -> set[str]:
    process = psutil.Process(pid)
    return {each.status() for each in (process, *process.children(recursive=True))}


def build_with_helper(optimizations):
    import subprocess
    import sys

    subprocess.Popen([sys.executable, "-c", "while True: pass"])
    return build(optimizations)


def test_a_paused_process_and_what_it_has_started_rest_until_the_next_command() -> None:
    program = wb.Program(name="helped", build=build_with_helper)
    with started_workers([("helped", program)]) as (worker,):
        worker.call(Open(session="main", optimizations=wb.Optimizations()))
        worker.pause()
        deadline_s = time.monotonic() + 10
        while states(worker.pid) != {psutil.STATUS_STOPPED}:
            assert time.monotonic() < deadline_s, states(worker.pid)
            time.sleep(0.01)
        assert len(worker.call(RunSteps(session="main", steps=3)).ends_ns) == 4
        assert psutil.STATUS_STOPPED not in states(worker.pid)
        # And it can be ended while it rests.
        worker.pause()


def test_a_process_with_an_answer_on_its_way_is_not_paused() -> None:
    with started_workers([("waits", PROGRAM)]) as (worker,):
        worker.send(Open(session="main", optimizations=wb.Optimizations()))
        worker.pause()
        assert worker.receive().has_loss

"""Runs what the equivalence checks compare: first steps from one seed, and batches.

Each check is run in all workers at once; nothing is timed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.experiments.equivalence import (
    TOLERANCE,
    Equivalence,
    bit_equal_losses,
    equal_losses,
    same_batches,
)
from workbench.experiments.function_program import AnyProgram
from workbench.experiments.setting import Setting
from workbench.experiments.worker import Worker
from workbench.experiments.worker_session import Opened, Steps

_SEEDS = (
    "weights or data begin differently; TensorFlow, NumPy and random are seeded before a program "
    "is built, so look for a generator of its own without a seed, such as np.random.default_rng()"
)
_TO_THE_END = 1_000_000_000
_FEWEST_THREADS_TO_MIX = 2


def compare_losses(
    settings: Sequence[Setting], workers: Sequence[Worker], steps: int
) -> list[Equivalence]:
    """Losses of the first steps from the same seed; every variant with one prefetch thread."""
    several = [setting.threads > 1 for setting in settings]
    for setting, worker, reopens in zip(settings, workers, several, strict=True):
        session = "main"
        if reopens:
            session = "single"
            _open(worker, session, "build", setting.with_threads(1))
        worker.send("run", session=session, steps=steps, fetch="loss")
        if reopens:
            worker.send("close", session=session)
    losses = []
    for worker, reopens in zip(workers, several, strict=True):
        if reopens:
            worker.receive()
        ran: Steps = worker.receive()
        losses.append(ran.values)
        if reopens:
            worker.receive()
    checks = [
        # Fused lookups sum a row's gradients in another order than stock ones; stages and executors
        # change no sum.
        (equal_losses if setting.optimizations.fused_embeddings else bit_equal_losses)(
            setting.label, losses[0], found
        )
        for setting, found in zip(settings[1:], losses[1:], strict=True)
    ]
    return [
        _with_advice(check, losses[0], found)
        for check, found in zip(checks, losses[1:], strict=True)
    ]


def _with_advice(check: Equivalence, baseline: np.ndarray, losses: np.ndarray) -> Equivalence:
    """The check with what to do where not even the first step is the same."""
    if check.passed or len(baseline) != len(losses) or not len(losses):
        return check
    if np.isclose(losses[0], baseline[0], rtol=TOLERANCE, atol=0, equal_nan=True):
        return check
    return dataclasses.replace(check, detail=f"{check.detail}; {_SEEDS}")


def compare_batches(
    program: AnyProgram,
    settings: Sequence[Setting],
    workers: Sequence[Worker],
    opened: Opened,
    steps: int,
) -> list[Equivalence]:
    """Batches of an epoch, or of the first steps; every staged variant with several threads."""
    epoch = program.build_epoch is not None
    if not epoch and not opened.has_fingerprint:
        return []
    mixed = [s.with_threads(max(s.threads, _FEWEST_THREADS_TO_MIX)) for s in settings]
    # Threads overtake each other: what one of them holds may come late.
    ahead = max(2 * made.ahead + 8 if made.ahead else 0 for made in mixed)
    for made, worker in zip(mixed, workers, strict=True):
        count = _TO_THE_END if epoch else steps if made.ahead else steps + ahead
        _open(worker, "batches", "build_epoch" if epoch else "build", made)
        worker.send("run", session="batches", steps=count, fetch="fingerprint")
        worker.send("close", session="batches")
    threads: list[int] = []
    found: list[np.ndarray] = []
    for worker in workers:
        threads.append(worker.receive().threads)
        found.append(worker.receive().values)
        worker.receive()
    return [
        same_batches(setting.label, found[0], batches, threads=count, epoch=epoch, ahead=ahead)
        for setting, count, batches in zip(settings[1:], threads[1:], found[1:], strict=True)
    ]


def _open(worker: Worker, session: str, part: str, setting: Setting) -> None:
    """With the plan of the measured session; another part is another graph, with its own plan."""
    plan = setting.plan.to_json() if setting.plan and part == "build" else None
    worker.send("open", session=session, part=part, optimizations=setting.optimizations, plan=plan)

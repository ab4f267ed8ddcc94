"""Runs what the equivalence checks compare: first steps from one seed, and batches.

Each check is run in all workers at once; nothing is timed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.options import Optimizations
from workbench.experiments.equivalence import Equivalence, bit_equal_losses, same_batches
from workbench.experiments.program import Program
from workbench.experiments.worker import Worker
from workbench.experiments.worker_main import Opened, Steps

_TO_THE_END = 1_000_000_000
_FEWEST_THREADS_TO_MIX = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """One variant to be: its label and its optimizations."""

    label: str
    optimizations: Optimizations

    @property
    def ahead(self) -> int:
        """Items it can hold ready when a block begins."""
        stage = self.optimizations.stage
        return stage.capacity + stage.num_threads if stage else 0


def compare_losses(
    settings: Sequence[Setting], workers: Sequence[Worker], steps: int
) -> list[Equivalence]:
    """Losses of the first steps from the same seed; every variant with one prefetch thread."""
    for setting, worker in zip(settings, workers, strict=True):
        single = _with_threads(setting.optimizations, 1)
        session = "main"
        if single != setting.optimizations:
            session = "single"
            worker.send("open", session=session, part="build", optimizations=single)
        worker.send("run", session=session, steps=steps, fetch="loss")
        if session != "main":
            worker.send("close", session=session)
    losses = []
    for setting, worker in zip(settings, workers, strict=True):
        several = _with_threads(setting.optimizations, 1) != setting.optimizations
        if several:
            worker.receive()
        ran: Steps = worker.receive()
        losses.append(ran.values)
        if several:
            worker.receive()
    return [
        bit_equal_losses(setting.label, losses[0], found)
        for setting, found in zip(settings[1:], losses[1:], strict=True)
    ]


def compare_batches(
    program: Program,
    settings: Sequence[Setting],
    workers: Sequence[Worker],
    opened: Opened,
    steps: int,
) -> list[Equivalence]:
    """Batches of an epoch, or of the first steps; every staged variant with several threads."""
    epoch = program.build_epoch is not None
    if not epoch and not opened.has_fingerprint:
        return []
    mixed = [_with_threads(s.optimizations, _FEWEST_THREADS_TO_MIX, least=True) for s in settings]
    # Threads overtake each other: what one of them holds may come late.
    ahead = max(
        2 * (made.stage.capacity + made.stage.num_threads) + 8 if made.stage else 0
        for made in mixed
    )
    for made, worker in zip(mixed, workers, strict=True):
        part = "build_epoch" if epoch else "build"
        count = _TO_THE_END if epoch else steps if made.stage else steps + ahead
        worker.send("open", session="batches", part=part, optimizations=made)
        worker.send("run", session="batches", steps=count, fetch="fingerprint")
        worker.send("close", session="batches")
    found: list[np.ndarray] = []
    for worker in workers:
        worker.receive()
        found.append(worker.receive().values)
        worker.receive()
    return [
        same_batches(
            setting.label,
            found[0],
            batches,
            threads=made.stage.num_threads if made.stage else 0,
            epoch=epoch,
            ahead=ahead,
        )
        for setting, made, batches in zip(settings[1:], mixed[1:], found[1:], strict=True)
    ]


def _with_threads(optimizations: Optimizations, count: int, least: bool = False) -> Optimizations:
    stage = optimizations.stage
    if stage is None or (least and stage.num_threads >= count):
        return optimizations
    return dataclasses.replace(optimizations, stage=dataclasses.replace(stage, num_threads=count))

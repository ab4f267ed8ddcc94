"""A few traced steps of graphs, each beside steps of the setting that all are compared with."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Mapping

import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy
from workbench.core.what_if.base import Sample
from workbench.core.what_if.scenario import GraphKey, SampleKey
from workbench.core.what_if.what_if import KnownGraph
from workbench.errors import RunError, WorkbenchError
from workbench.experiments.measurement.statistics import counted_steps
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.steps.first_steps import WARM_UP_STEPS
from workbench.experiments.worker.wire.messages import Close, Open, RunBlock, Steps, TraceSteps

# Traced steps of a graph: as many as run in these seconds, within bounds. Each goes with about
# three others that are not kept.
_SECONDS, _FEWEST, _MOST = 0.5, 6, 30
# Blocks of it and of the setting beside take turns, because a machine changes its speed within
# seconds; the middle one of their ratios counts. They take turns for these seconds, and this number
# of turns at least.
_TURNS_S, _FEWEST_TURNS = 2.5, 5


def sampled_graphs(
    worker: Worker,
    graphs: Mapping[GraphKey, KnownGraph],
    keys: Iterable[SampleKey],
    traced: Optimizations,
) -> dict[GraphKey, KnownGraph]:
    """The graphs, each with samples of its steps.

    Args:
      worker: has the program.
      graphs: without a stage of the user's own.
      keys: the samples; those of other graphs are left out.
      traced: what all is compared with. Where it has no stage, its steps are run beside each.

    Raises:
      RunError: the setting that all is compared with does not run.
      KeyboardInterrupt: as `compare`.
    """
    plain = dataclasses.replace(traced, stage=None, smart_stage=None)
    beside_s = None
    if traced == plain:
        worker.call(Open(session="beside", optimizations=plain, recorded=True))
        beside_s = _warmed_up(worker, "beside")
    sampled = dict(graphs)
    for key in keys:
        graph = GraphKey(fused=key.fused)
        if graph in sampled:
            executor = ExecutorPolicy.INLINE if key.serial else None
            on = dataclasses.replace(plain, fused_embeddings=key.fused, executor=executor)
            needed = key.fused != traced.fused_embeddings and not key.serial
            sampled[graph] = _with_sample(worker, sampled[graph], key, on, beside_s, needed=needed)
    return sampled


def _with_sample(
    worker: Worker,
    known: KnownGraph,
    key: SampleKey,
    on: Optimizations,
    beside_s: float | None,
    *,
    needed: bool,
) -> KnownGraph:
    """A graph with a sample more, or why it has none where nothing is predicted without."""
    try:
        sample = _sample(worker, on, beside_s)
    except WorkbenchError as error:
        problem = f"its steps cannot be traced: {error}"
        return dataclasses.replace(known, problem=problem) if needed else known
    return dataclasses.replace(known, samples={**known.samples, key: sample})


def _sample(worker: Worker, on: Optimizations, beside_s: float | None) -> Sample:
    """A sample of a setting.

    Args:
      worker: has the program.
      on: the setting.
      beside_s: seconds of a step of the session beside; None where there is none.
    """
    worker.call(Open(session="sample", optimizations=on, recorded=True))
    try:
        step_s = _warmed_up(worker, "sample")
        count = min(max(_FEWEST, math.ceil(_SECONDS / step_s)), _MOST)
        ratios = _ratios(worker, beside_s, step_s) if beside_s else []
        trace = worker.call(TraceSteps(session="sample", steps=count))
    finally:
        worker.call(Close(session="sample"))
    untraced = trace.meta.untraced
    if not ratios or untraced is None or not untraced.step_ns:
        return Sample(trace=trace)
    return Sample(trace=trace, beside_ns=float(untraced.step_ns * np.median(ratios)))


def _ratios(worker: Worker, beside_s: float, step_s: float) -> list[float]:
    """How many times as long a step of the session beside takes, of each turn."""
    ratios: list[float] = []
    begun_s = time.monotonic()
    while len(ratios) < _FEWEST_TURNS or time.monotonic() - begun_s < _TURNS_S:
        beside_ns = _block_ns(worker, "beside", beside_s)
        ratios.append(beside_ns / _block_ns(worker, "sample", step_s))
    return ratios


def _warmed_up(worker: Worker, session: str) -> float:
    """Runs first steps of a session; returns the seconds of a step."""
    steps = worker.call(RunBlock(session=session, steps=WARM_UP_STEPS))
    return max(1e-6, float(np.median(_lasted_ns(steps))) / 1e9)


def _block_ns(worker: Worker, session: str, step_s: float) -> float:
    """The time of a step of a session, in one block."""
    count = counted_steps(1e9 * step_s)
    lasted = _lasted_ns(worker.call(RunBlock(session=session, steps=count, after_rest=True)))
    # As the mean of untraced steps: without pauses of the machine.
    return float(lasted[lasted <= 2 * np.median(lasted)].mean())


def _lasted_ns(steps: Steps) -> np.ndarray:
    """The time of each step.

    Raises:
      RunError: the data ended before the first.
    """
    lasted = np.diff(steps.ends_ns)
    if not len(lasted):
        raise RunError("the data ended before the steps to trace; repeat the dataset")
    return lasted

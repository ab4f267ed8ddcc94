"""A few traced steps of graphs, each beside steps of the setting that all are compared with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping

import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy
from workbench.core.what_if.base import Sample
from workbench.core.what_if.scenario import GraphKey, SampleKey
from workbench.core.what_if.what_if import KnownGraph
from workbench.errors import RunError, WorkbenchError
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.steps.first_steps import WARM_UP_STEPS
from workbench.experiments.worker.wire.messages import Close, Open, RunBlock, Steps, TraceSteps

# Traced steps of a graph: as many as run in these seconds, within bounds. Each goes with about
# three others that are not kept.
_SECONDS, _FEWEST, _MOST = 0.5, 6, 30
# Blocks of it and of the setting beside take turns, because a machine changes its speed within
# seconds; the middle one of their ratios counts. Of a block: steps before it that tell how many it
# has, how many seconds of them count, and the most.
_TURNS, _PILOT_STEPS, _BLOCK_S, _MOST_BLOCK = 5, 5, 0.06, 300


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
    beside = traced == plain
    if beside:
        worker.call(Open(session="beside", optimizations=plain, recorded=True))
        worker.call(RunBlock(session="beside", steps=WARM_UP_STEPS))
    sampled = dict(graphs)
    for key in keys:
        graph = GraphKey(fused=key.fused)
        if graph in sampled:
            executor = ExecutorPolicy.INLINE if key.serial else None
            on = dataclasses.replace(plain, fused_embeddings=key.fused, executor=executor)
            needed = key.fused != traced.fused_embeddings and not key.serial
            sampled[graph] = _with_sample(worker, sampled[graph], key, on, beside, needed=needed)
    return sampled


def _with_sample(
    worker: Worker,
    known: KnownGraph,
    key: SampleKey,
    on: Optimizations,
    beside: bool,
    *,
    needed: bool,
) -> KnownGraph:
    """A graph with a sample more, or why it has none where nothing is predicted without."""
    try:
        sample = _sample(worker, on, beside)
    except WorkbenchError as error:
        problem = f"its steps cannot be traced: {error}"
        return dataclasses.replace(known, problem=problem) if needed else known
    return dataclasses.replace(known, samples={**known.samples, key: sample})


def _sample(worker: Worker, on: Optimizations, beside: bool) -> Sample:
    """A sample of a setting."""
    worker.call(Open(session="sample", optimizations=on, recorded=True))
    try:
        step_s = _step_s(worker.call(RunBlock(session="sample", steps=WARM_UP_STEPS)))
        count = min(max(_FEWEST, math.ceil(_SECONDS / step_s)), _MOST)
        ratios = [
            _block_ns(worker, "beside") / _block_ns(worker, "sample")
            for _ in range(_TURNS if beside else 0)
        ]
        trace = worker.call(TraceSteps(session="sample", steps=count))
    finally:
        worker.call(Close(session="sample"))
    untraced = trace.meta.untraced
    if not ratios or untraced is None or not untraced.step_ns:
        return Sample(trace=trace)
    return Sample(trace=trace, beside_ns=float(untraced.step_ns * np.median(ratios)))


def _block_ns(worker: Worker, session: str) -> float:
    """The time of a step of a session."""
    step_s = _step_s(worker.call(RunBlock(session=session, steps=_PILOT_STEPS, after_rest=True)))
    count = min(max(_FEWEST, math.ceil(_BLOCK_S / step_s)), _MOST_BLOCK)
    lasted = np.diff(worker.call(RunBlock(session=session, steps=count)).ends_ns)
    if not len(lasted):
        raise RunError("the data ended before the steps to trace; repeat the dataset")
    # As the mean of untraced steps: without pauses of the machine.
    return float(lasted[lasted <= 2 * np.median(lasted)].mean())


def _step_s(steps: Steps) -> float:
    """Seconds of a step, at least a microsecond."""
    lasted = np.diff(steps.ends_ns)
    return max(1e-6, float(np.median(lasted)) / 1e9) if len(lasted) else 1e-6

"""Trace → costs of nodes; costs and a candidate → the step time to expect.

A tracer makes ops slower, and so do other ops on the same cores. Their spans are therefore taken as
shares: they are stretched until the simulation of what was traced takes as long, with as much CPU
time, as the untraced steps before it.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import Candidate
from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.costs.input_costs import input_cost
from workbench.core.prediction.costs.node_costs import CALL_NS, FAULT_NS, Costs
from workbench.core.prediction.costs.node_spans import NodeSpans, node_spans
from workbench.core.prediction.fit import fitted
from workbench.core.prediction.pipeline_builder import candidate_pipeline
from workbench.core.prediction.prediction import Prediction
from workbench.core.simulation.dispatch import NORMAL, Dispatch
from workbench.core.simulation.list_schedule import schedule
from workbench.core.simulation.simulator import simulate
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace

# Ops that use fewer cores than this after a wait had to share one.
_SHARED = 0.95


def node_costs(trace: Trace, view: GraphView, dispatch: Dispatch = NORMAL) -> Costs:
    """What each node of a graph costs.

    Args:
      trace: of warm steps, taken by `CaptureHook` after ten or more untraced ones: their time and
        CPU time are noted in it. Of another trace the spans are taken as they are.
      view: the graph that was run, as the user built it; the trace may be of any candidate.
      dispatch: of the executor that ran it.
    """
    seen = node_spans(trace, view)
    meta = trace.meta
    untraced = meta.untraced or UntracedSteps()
    sides = [seen.step, *seen.stages.values()]
    ns = np.sum([side.ns for side in sides], axis=0)
    wall_ns = np.sum([side.wall_ns for side in sides], axis=0)
    lanes = np.maximum(1.0, np.divide(ns, wall_ns, out=np.ones_like(ns), where=wall_ns > 0))
    calls = np.any([side.calls for side in sides], axis=0)
    runs = np.sum([side.runs for side in sides], axis=0)
    cores = meta.cores or 1
    used = min(max(meta.source_cores or 0.0, 0.0), float(cores))
    between_ns = seen.handling.between_ns
    op_ns = dispatch.op_ns if between_ns is None else between_ns
    costs = Costs(
        span_ns=wall_ns + np.where(calls, 0.0, op_ns * runs / lanes),
        between_ns=op_ns,
        wake_ns=seen.handling.wake_ns or 0.0,
        lanes=lanes,
        inputs={
            spans.node: input_cost(spans, view, used, untraced.step_ns) for spans in seen.inputs
        },
        client_ns=seen.client.ns or CALL_NS,
        calling_ns=seen.client.calling_ns,
        faults_ns=FAULT_NS * (untraced.page_faults or 0),
        added=tuple(each for side in sides for each in side.added),
        unmatched_ns=sum(side.unmatched_ns for side in sides),
        step_scales=seen.step_scales,
        cores=cores,
        inter_op_threads=meta.inter_op_threads,
        packs=meta.packs_when_idle is True,
        runs=runs,
        splits=seen.splits,
        split_cores=seen.split_cores,
        dispatch=dispatch,
    )
    costs = dataclasses.replace(costs, unevenness=_unevenness(view, costs, seen))
    if not untraced.step_ns:
        return costs
    fit = fitted(costs, view, seen, untraced)
    if (
        meta.packs_when_idle is None
        and fit.cores_per_op < _SHARED
        and any(spans.wait_ns for spans in costs.inputs.values())
    ):
        # Ops do not wait by themselves: after waits they had to share a core.
        packed = dataclasses.replace(costs, packs=True)
        return fitted(packed, view, seen, untraced)
    return fit


def predict(
    boundary: Boundary, costs: Costs, candidate: Candidate, *, cores: int | None = None
) -> Prediction:
    """The step time to expect of a candidate, in the steady state.

    Args:
      boundary: of the graph.
      costs: of its nodes.
      candidate: which nodes run ahead, on how many threads.
      cores: to predict for; None takes those of the costs.
    """
    count = cores or costs.cores
    pipeline = candidate_pipeline(boundary, costs, candidate, cores=count)
    pool = costs.pool(count)
    bounds = pipeline.bounds(cores=count, pool=pool)
    slowest = max(bounds, key=bounds.__getitem__)
    step_ns = simulate(pipeline, cores=count, pool=pool, packs=costs.packs).step_ns
    return Prediction(
        label=candidate.label,
        step_ms=float(max(step_ns, bounds[slowest]) * costs.scale / 1e6),
        bound_ms=float(bounds[slowest] * costs.scale / 1e6),
        limited_by=slowest,
    )


def _unevenness(view: GraphView, costs: Costs, seen: NodeSpans) -> float:
    """How much longer the steps took, scheduled one by one, than one of their means would."""
    if costs.dispatch.serial or len(seen.each_step) < 2:
        return 1.0
    everything = np.ones(len(view), bool)
    lanes = costs.lanes if costs.lanes is not None else np.ones(len(view))

    def lasts(ns: np.ndarray) -> float:
        return schedule(
            view,
            everything,
            ns / lanes,
            threads=costs.pool(costs.cores),
            cores=costs.cores,
            lanes=lanes,
            splits=costs.splits,
            split_cores=costs.split_cores,
            dispatch=costs.dispatch,
            wake_ns=costs.wake_ns,
        ).behind.alone_ns

    of_mean = lasts(np.mean(seen.each_step, axis=0))
    each = [lasts(ns) for ns in seen.each_step]
    return max(1.0, float(np.mean(each) / of_mean)) if of_mean else 1.0

"""Trace → costs of nodes; costs and a candidate → the step time to expect.

A tracer makes ops slower, and so do other ops on the same cores. Their spans are therefore taken as
shares: they are stretched until the simulation of what was traced takes as long, with as much CPU
time, as the untraced steps before it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import Candidate
from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.dispatch import NORMAL, Dispatch
from workbench.core.prediction.input_costs import input_cost
from workbench.core.prediction.intra_op import splits_work
from workbench.core.prediction.node_costs import STAGE_RUN_NS, Costs
from workbench.core.prediction.node_spans import NodeSpans, node_spans
from workbench.core.prediction.pipeline import Pipeline
from workbench.core.prediction.pipeline_builder import candidate_pipeline, traced_pipeline
from workbench.core.prediction.prediction import Prediction
from workbench.core.prediction.simulator import Simulated, simulate
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace

# Of a step before its first op, where a trace has none: a session.run of a small graph.
_CLIENT_NS = 60_000.0
# How far spans are stretched, and until the simulation is how near to what was measured.
_LEAST_STRETCH, _MOST_STRETCH, _NEAR = 0.25, 2.0, 0.005
_WIDER, _HALVINGS = 1.1, 7
# So often the stretch is looked for along a straight line first.
_STRAIGHT = 3
# Ops that use fewer cores than this after a wait had to share one.
_SHARED = 0.95
# Sharing a core after waits takes CPU time that is none of the ops': found in this many rounds.
_CORRECTIONS = 3


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
    runs = np.sum([side.runs for side in sides], axis=0)
    cores = meta.cores or 1
    used = min(max(meta.source_cores or 0.0, 0.0), float(cores))
    costs = Costs(
        span_ns=ns + dispatch.op_ns * runs,
        inputs={each.node: input_cost(each, view, used, untraced.step_ns) for each in seen.inputs},
        client_ns=seen.client_ns or _CLIENT_NS,
        unmatched_ns=sum(side.unmatched_ns for side in sides),
        step_scales=seen.step_scales,
        cores=cores,
        inter_op_threads=meta.inter_op_threads,
        packs=meta.packs_when_idle is True,
        runs=runs,
        splits=splits_work(view.ops, ns),
        dispatch=dispatch,
    )
    if not untraced.step_ns:
        return costs
    fitted = _fitted(costs, view, seen, untraced.step_ns, untraced.cpu_ns)
    if (
        meta.packs_when_idle is None
        and fitted.cores_per_op < _SHARED
        and any(each.wait_ns for each in costs.inputs.values())
    ):
        # Ops do not wait by themselves: after waits they had to share a core.
        packed = dataclasses.replace(costs, packs=True)
        return _fitted(packed, view, seen, untraced.step_ns, untraced.cpu_ns)
    return fitted


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


def _fitted(
    costs: Costs, view: GraphView, seen: NodeSpans, step_ns: int, cpu_ns: int | None
) -> Costs:
    """Costs with which the simulation of the traced pipeline is as long and as busy as measured."""
    total = float(costs.span_ns.sum()) + costs.unmatched_ns
    if total <= 0:
        return costs
    wanted = float(step_ns)
    elsewhere = costs.client_ns + len(seen.stages) * STAGE_RUN_NS
    elsewhere += sum(each.work.cpu_ns for each in costs.inputs.values())
    splitting = float(costs.span_ns[costs.splits].sum()) if costs.splits is not None else 0.0
    # without the CPU time every op is taken to use one core
    work = 0.0 if cpu_ns is None else max(cpu_ns - elsewhere, 0.05 * total)

    def stretched(by: float, crowding: float) -> tuple[Costs, Pipeline]:
        per_op, per_split = _cores(work / crowding / by, total, splitting, costs.cores)
        longer = dataclasses.replace(
            costs,
            span_ns=costs.span_ns * by,
            unmatched_ns=costs.unmatched_ns * by,
            cores_per_op=per_op,
            cores_per_split=per_split,
        )
        return longer, traced_pipeline(view, seen, longer)

    def simulated(pipeline: Pipeline) -> Simulated:
        pool = costs.pool(costs.cores)
        return simulate(pipeline, cores=costs.cores, pool=pool, packs=costs.packs)

    crowding = 1.0
    as_traced_ns = simulated(stretched(1.0, crowding)[1]).step_ns
    for _ in range(_CORRECTIONS):
        by = _stretch(lambda by: simulated(stretched(by, crowding)[1]).step_ns, wanted)  # noqa: B023
        fitted, pipeline = stretched(by, crowding)
        result = simulated(pipeline)
        alone = float(fitted.work_ns.sum()) + fitted.unmatched_ns * fitted.cores_per_op
        before, crowding = crowding, max(1.0, (result.cpu_ns - elsewhere) / alone)
        if abs(crowding - before) <= _NEAR:
            break
    return dataclasses.replace(
        fitted, scale=float(wanted / result.step_ns), as_traced_ns=float(as_traced_ns)
    )


def _cores(work: float, total: float, splitting: float, cores: int) -> tuple[float, float]:
    """Cores that an op uses which does not split its work, and one that does.

    Args:
      work: CPU time of all ops; 0 where it is not known.
      total: their time.
      splitting: the time of those that split their work.
      cores: of the machine.
    """
    if not work:
        return 1.0, 1.0
    most, rest = float(cores), total - splitting
    if work <= total or not splitting:
        # ops wait by themselves, or more of them split their work than is known
        return min(work / total, most), min(work / total, most)
    per_split = (work - rest) / splitting
    if per_split <= most or not rest:
        return 1.0, min(per_split, most)
    return min((work - most * splitting) / rest, most), most


def _stretch(lasts: Callable[[float], float], wanted: float) -> float:
    """The stretch nearest to 1 with which a step takes as long as wanted, or as nearly as can be.

    A step that waits for something else takes equally long over a range of stretches.
    """
    now = lasts(1.0)
    if abs(now - wanted) <= _NEAR * wanted:
        return 1.0
    # Most steps grow with their ops.
    by, at, before = 1.0, now, (0.0, 0.0)
    for _ in range(_STRAIGHT):
        slope = (at - before[1]) / (by - before[0])
        before = by, at
        by = by + (wanted - at) / slope if slope > 0 else 0.0
        if not _LEAST_STRETCH <= by <= _MOST_STRETCH or by == before[0]:
            break
        at = lasts(by)
        if abs(at - wanted) <= _NEAR * wanted:
            return by
    longer = now < wanted
    end = _MOST_STRETCH if longer else _LEAST_STRETCH
    reached = lasts(end) * (1 - _NEAR if longer else 1 + _NEAR)
    aim = min(wanted, reached) if longer else max(wanted, reached)
    # In small steps away from 1, then by halves: a longer stretch need not make a longer step.
    near = far = 1.0
    while (lasts(far) < aim) if longer else (lasts(far) > aim):
        near, far = far, (min(far * _WIDER, end) if longer else max(far / _WIDER, end))
        if far == near:
            return far
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        passed = lasts(middle) >= aim if longer else lasts(middle) <= aim
        near, far = (near, middle) if passed else (middle, far)
    return far

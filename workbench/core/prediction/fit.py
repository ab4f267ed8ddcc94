"""Costs as traced → costs with which a simulation gives what was measured.

Ops are as long as they were traced, with all that went on beside them: the step time of the
simulated steps is then a result, and tells whether the simulation holds. Where it does not, because
a tracer made every op longer, the ops are taken as shares: stretched until the step is as long as
measured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.costs.node_costs import STAGE_RUN_NS, Costs
from workbench.core.prediction.costs.node_spans import NodeSpans
from workbench.core.prediction.pipeline_builder import traced_pipeline
from workbench.core.simulation.pipeline import Pipeline
from workbench.core.simulation.simulator import Simulated, simulate
from workbench.core.trace.meta import UntracedSteps

# A simulated step within this share of the measured one needs no stretch.
HOLDS = 0.05
# How near is near enough, and in how many rounds it is reached.
_NEAR, _ROUNDS = 0.005, 4
# How far spans are stretched.
_LEAST_STRETCH, _MOST_STRETCH = 0.25, 2.0
_WIDER, _HALVINGS = 1.1, 7
# So often the stretch is looked for along a straight line first.
_STRAIGHT = 3


def fitted(costs: Costs, view: GraphView, seen: NodeSpans, untraced: UntracedSteps) -> Costs:
    """Costs with which the traced pipeline, simulated, is as long and as busy as measured.

    Args:
      costs: as traced.
      view: the graph.
      seen: what the trace saw of it.
      untraced: time and, where it is known, CPU time of a step.
    """
    fit = _Fit(costs, view, seen, untraced.cpu_ns)
    if fit.total <= 0 or not untraced.step_ns:
        return costs
    wanted = float(untraced.step_ns)
    found, result = fit.tried()
    replayed_ns = float(result.step_ns)
    if abs(replayed_ns - wanted) > HOLDS * wanted:
        found, result = fit.stretched(wanted)
    return dataclasses.replace(found, scale=float(wanted / result.step_ns), replayed_ns=replayed_ns)


class _Fit:
    """The search for the stretch of ops."""

    def __init__(self, costs: Costs, view: GraphView, seen: NodeSpans, cpu_ns: int | None) -> None:
        self._costs, self._view, self._seen = costs, view, seen
        one = dataclasses.replace(costs, cores_per_op=1.0)
        ops_ns = float((one.span_ns * one.node_cores).sum())
        self.total = ops_ns + costs.unmatched_ns + costs.added_ns
        elsewhere = costs.client_ns + len(seen.stages) * STAGE_RUN_NS
        elsewhere += sum(each.work.cpu_ns for each in costs.inputs.values())
        # without the CPU time every op is taken to use one core
        self._work = self.total if cpu_ns is None else max(cpu_ns - elsewhere, 0.05 * self.total)
        # CPU time in the simulation against that of its parts: packing on few cores takes some.
        self._crowding = 1.0

    def tried(self, by: float = 1.0) -> tuple[Costs, Simulated]:
        """The traced pipeline with ops that take `by` times as long as traced, simulated."""
        return self._simulated(by)[:2]

    def stretched(self, wanted: float) -> tuple[Costs, Simulated]:
        """Costs with which a step takes as long as wanted."""
        for _ in range(_ROUNDS if self._costs.packs else 1):
            by = _stretch(lambda by: self._simulated(by)[1].step_ns, wanted)
            costs, result, pipeline = self._simulated(by)
            before, self._crowding = self._crowding, result.cpu_ns / pipeline.cpu_ns
            if abs(self._crowding - before) <= _NEAR:
                break
        return costs, result

    def _simulated(self, by: float) -> tuple[Costs, Simulated, Pipeline]:
        costs = self._costs
        per_op = self._work / self._crowding / (self.total * by)
        longer = dataclasses.replace(
            costs,
            span_ns=costs.span_ns * by,
            added=tuple(each.longer(by) for each in costs.added),
            unmatched_ns=costs.unmatched_ns * by,
            cores_per_op=min(per_op, float(costs.cores)),
        )
        pipeline = traced_pipeline(self._view, self._seen, longer)
        pool = costs.pool(costs.cores)
        result = simulate(pipeline, cores=costs.cores, pool=pool, packs=costs.packs)
        return longer, result, pipeline


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

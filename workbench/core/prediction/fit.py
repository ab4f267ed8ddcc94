"""Costs as traced → costs of the same ops alone, with which a simulation gives what was measured.

An op that shares cores with others takes longer than alone, and so it was traced. How much longer
all of them took is known from the simulation: the ops' time alone is the one with which their time
in the simulated steps, and the CPU time of these, are those of the trace. The step time is then a
result, and tells whether the simulation holds. Where it does not, because a tracer made every op
longer, the ops are taken as shares: stretched until the step is as long as measured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.node_costs import STAGE_RUN_NS, Costs
from workbench.core.prediction.node_spans import NodeSpans
from workbench.core.prediction.pipeline_builder import traced_pipeline
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
    found, result = fit.alone()
    replayed_ns = float(result.step_ns)
    if abs(replayed_ns - wanted) > HOLDS * wanted:
        found, result = fit.stretched(wanted)
    return dataclasses.replace(found, scale=float(wanted / result.step_ns), replayed_ns=replayed_ns)


class _Fit:
    """The search for the time of ops alone."""

    def __init__(self, costs: Costs, view: GraphView, seen: NodeSpans, cpu_ns: int | None) -> None:
        self._costs, self._view, self._seen = costs, view, seen
        self.total = float(costs.op_ns.sum()) + costs.unmatched_ns
        splits = costs.splits
        self._splitting = float(costs.op_ns[splits].sum()) if splits is not None else 0.0
        self._elsewhere = costs.client_ns + len(seen.stages) * STAGE_RUN_NS
        self._elsewhere += sum(each.work.cpu_ns for each in costs.inputs.values())
        # without the CPU time every op is taken to use one core
        least = 0.05 * self.total
        self._work = 0.0 if cpu_ns is None else max(cpu_ns - self._elsewhere, least)
        # CPU time in the simulation against that of the ops alone: sharing cores takes some, too.
        self._crowding = 1.0

    def alone(self) -> tuple[Costs, Simulated]:
        """Costs with which ops take as long in the simulation as they were traced to."""
        by = 1.0
        for _ in range(_ROUNDS):
            costs, result = self._tried(by)
            if not result.op_ns:
                return costs, result
            longer = self.total / result.op_ns
            settled = self._settled(costs, result)
            if settled and abs(longer - 1) <= _NEAR:
                break
            by = min(by * longer, 1.0)
        return costs, result

    def stretched(self, wanted: float) -> tuple[Costs, Simulated]:
        """Costs with which a step takes as long as wanted."""
        self._crowding = 1.0
        for _ in range(_ROUNDS):
            by = _stretch(lambda by: self._tried(by)[1].step_ns, wanted)
            costs, result = self._tried(by)
            if self._settled(costs, result):
                break
        return costs, result

    def _tried(self, by: float) -> tuple[Costs, Simulated]:
        costs = self._costs
        per_op, per_split = _cores(
            self._work / self._crowding / by, self.total, self._splitting, costs.cores
        )
        longer = dataclasses.replace(
            costs,
            span_ns=costs.span_ns * by,
            unmatched_ns=costs.unmatched_ns * by,
            cores_per_op=per_op,
            cores_per_split=per_split,
        )
        pipeline = traced_pipeline(self._view, self._seen, longer)
        pool = costs.pool(costs.cores)
        return longer, simulate(pipeline, cores=costs.cores, pool=pool, packs=costs.packs)

    def _settled(self, costs: Costs, result: Simulated) -> bool:
        """Corrects the crowding; whether it needed none."""
        alone = float(costs.work_ns.sum()) + costs.unmatched_ns * costs.cores_per_op
        before = self._crowding
        self._crowding = max(1.0, (result.cpu_ns - self._elsewhere) / alone)
        return abs(self._crowding - before) <= _NEAR


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

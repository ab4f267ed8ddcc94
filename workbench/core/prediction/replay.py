"""A trace and costs from it → whether the simulation of what was traced takes as long as it did."""

from __future__ import annotations

import dataclasses

from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.costs.disturbed import is_disturbed
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.doubts import Doubt, doubts_of
from workbench.core.prediction.fit import HOLDS
from workbench.core.prediction.predict import node_costs
from workbench.core.prediction.traced_graph import ran_graph
from workbench.core.simulation.dispatch import COST_MODEL, INLINE, NORMAL
from workbench.core.trace.trace import Trace
from workbench.errors import PlanError

_FEWEST_STEPS = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replay:
    """The traced steps, simulated as they were.

    Attributes:
      measured_ms: a traced step, from one to the next.
      simulated_ms: the same, simulated from the times of its ops.
      untraced_ms: a step that was not traced.
      doubts: where the simulation does not hold, the ops whose times do not fit.
    """

    measured_ms: float
    simulated_ms: float
    untraced_ms: float
    doubts: tuple[Doubt, ...] = ()

    @property
    def error(self) -> float:
        """How much longer the simulated step is, as a share of the measured one."""
        return self.simulated_ms / self.measured_ms - 1

    @property
    def holds(self) -> bool:
        """Whether the simulated step is as long as the measured one, as nearly as is asked for."""
        return abs(self.error) <= HOLDS


def replay_of(trace: Trace, costs: Costs) -> Replay | None:
    """How the simulation of what was traced compares with it.

    Args:
      trace: of steps.
      costs: of the nodes that ran, from this trace.

    Returns:
      None where the trace does not say how long an untraced step takes.
    """
    untraced = trace.meta.untraced
    if untraced is None or not untraced.step_ns:
        return None
    return Replay(
        measured_ms=_traced_ns(trace) / 1e6,
        simulated_ms=costs.replayed_ns / 1e6,
        untraced_ms=untraced.step_ns / 1e6,
    )


def _traced_ns(trace: Trace) -> float:
    """Mean time from a traced step to the next of the same client, over the clients.

    Steps whose ops do not count, because something disturbed them, do not count here either.
    """
    steps = trace.steps()
    clients = steps["track"].nunique()
    since_first = steps["start_ns"] - steps["start_ns"].min()
    until_next = -since_first.groupby(steps["track"]).diff(-1)[~is_disturbed(steps)].dropna()
    if not len(until_next):
        return float((steps["end_ns"] - steps["start_ns"]).mean())
    return float(until_next.mean() / clients)


def with_doubts(replay: Replay, trace: Trace, view: GraphView, costs: Costs) -> Replay:
    """The same, with the ops whose times do not fit where it does not hold."""
    if replay.holds:
        return replay
    doubts = doubts_of(trace, view, {op.name for op in costs.added})
    return dataclasses.replace(replay, doubts=doubts)


def replay_of_trace(trace: Trace) -> Replay | None:
    """The replay of a trace whose program is not at hand.

    The trace does not say which executor ran it: of those there are the one counts that fits best.

    Returns:
      None where it cannot be simulated from the trace alone: it is of a cluster or a GPU, does not
      know which op feeds which or how long an untraced step takes, or its steps have several
      stages, whose order only the program tells. A few steps have no mean to hold it to.
    """
    stages = trace.tracks["stage"][trace.tracks["kind"] == "prefetch"].nunique()
    if trace.meta.task or trace.on_a_gpu or stages > 1 or not len(trace.edges):
        return None
    if len(trace.steps()) < _FEWEST_STEPS:
        return None
    view = ran_graph(trace)
    best: tuple[Replay, Costs] | None = None
    for dispatch in (NORMAL, INLINE, COST_MODEL):
        try:
            costs = node_costs(trace, view, dispatch)
        except PlanError:
            # Edges of a trace may go round, and then no path is the longest.
            continue
        found = replay_of(trace, costs)
        if found is None or found.holds:
            return found
        if best is None or abs(found.error) < abs(best[0].error):
            best = found, costs
    return with_doubts(best[0], trace, view, best[1]) if best else None

"""Base: a trace and its graph, from which settings of that graph are predicted."""

from __future__ import annotations

import dataclasses

from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.doubts import named_ops
from workbench.core.prediction.predict import node_costs
from workbench.core.prediction.replay import Replay, replay_of, with_doubts
from workbench.core.simulation.dispatch import Dispatch
from workbench.core.trace.trace import Trace

# Beyond this share a replay says nothing of the step.
FAR_OFF = 0.4
_NOT_MEASURED = (
    "the trace does not say how long an untraced step takes, so a simulation cannot be held to it; "
    "take the trace with wb.trace, or with a CaptureHook after ten or more steps"
)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """A few traced steps of another graph than the traced one, or on another kind of executor.

    Attributes:
      trace: of warm steps, with untraced steps noted in it.
      beside_ns: time of a step of the traced setting, measured beside it, at the speed that the
        machine had when steps of the trace were untraced; 0 where it was not.
    """

    trace: Trace
    beside_ns: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Base:
    """What settings are predicted from that build the same fused lookups and run ops alike.

    Attributes:
      view: the graph that ran.
      costs: of its nodes; None where the trace tells nothing.
      replay: whether the simulation holds for the trace; None where that cannot be known.
      step_ms: of the traced setting, measured when this trace was taken.
      problem: why nothing is predicted, a sentence; "" where something is.
    """

    view: GraphView
    costs: Costs | None = None
    replay: Replay | None = None
    step_ms: float = 0.0
    problem: str = ""

    @property
    def holds(self) -> bool:
        """Whether the replay of the trace holds."""
        return self.replay is not None and self.replay.holds


def base_of(trace: Trace, view: GraphView, dispatch: Dispatch, beside_ns: float = 0.0) -> Base:
    """What can be predicted from a trace.

    Args:
      trace: of warm steps.
      view: the graph that ran.
      dispatch: of the executor that ran it.
      beside_ns: time of a step of the setting that all is compared with; 0 takes the trace's own.
    """
    costs = node_costs(trace, view, dispatch)
    replay = replay_of(trace, costs)
    if replay is None:
        return Base(view=view, problem=_NOT_MEASURED)
    replay = with_doubts(replay, trace, view, costs)
    step_ms = beside_ns / 1e6 or replay.untraced_ms
    problem = _far_off(replay) if abs(replay.error) > FAR_OFF else ""
    return Base(view=view, costs=costs, replay=replay, step_ms=step_ms, problem=problem)


def _far_off(replay: Replay) -> str:
    named = f" ({named_ops(replay.doubts)})" if replay.doubts else ""
    return (
        f"the traced steps take {replay.measured_ms:.3g} ms, simulated "
        f"{replay.simulated_ms:.3g} ms: what takes their time is not seen in the trace{named}, so "
        "nothing is predicted from it; trace more steps, on a machine that does nothing else"
    )

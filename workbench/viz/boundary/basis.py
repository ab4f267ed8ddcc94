"""What a drawing is made from: a boundary, costs and options, the cut to show and SmartStage's."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import CHOSEN, UNSTAGED, with_stale
from workbench.core.graph.graph_view import Bools
from workbench.core.options import SmartStageOptions
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.planning.weighing import weigh
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.freeing import predict_freed
from workbench.core.prediction.predict import node_costs
from workbench.core.prediction.prediction import Prediction
from workbench.core.trace.trace import Trace
from workbench.viz.boundary.causes import Gain


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Basis:
    """What a drawing is made from.

    Attributes:
      boundary: what may run ahead.
      plan: what is shown of it; None for a boundary alone.
      costs: of its nodes; None without a trace.
      options: of the stages that a moved line makes: those of the plan's last stage.
    """

    boundary: Boundary
    plan: StagePlan | None
    costs: Costs | None
    options: SmartStageOptions

    def gain(self) -> Gain | None:
        """Predicts what freeing blockers would give beyond the widest cut, in ms of a step."""
        costs = self.costs
        if costs is None:
            return None
        widest = predict_freed(self.boundary, costs, (), self.options).step_ms
        return lambda freed: (
            widest - predict_freed(self.boundary, costs, freed, self.options).step_ms
        )


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """What a drawing shows at first.

    Attributes:
      moved: the nodes that run ahead, one set for each side.
      smart: SmartStage's cut in the same way.
      label: of the cut that is shown.
      solid: a plan takes it.
      prediction: of the plan, which may have more stages than a moved line makes; None without.
      unstaged_ms: what the plan predicts un-staged; 0 without.
    """

    moved: Sequence[Bools]
    smart: Sequence[Bools]
    label: str
    solid: bool
    prediction: Prediction | None = None
    unstaged_ms: float = 0.0


def basis_of(boundary: Boundary, plan: StagePlan | None, trace: Trace | None) -> Basis:
    """What is drawn of a boundary, or of a plan with its own costs or those of a trace."""
    wishes = (plan.wishes if plan else None) or SmartStageOptions()
    if plan is not None and plan.stages:
        exact = [stage for stage in plan.stages if not stage.stale_lookups]
        last = (exact or plan.stages)[-1].options
        wishes = dataclasses.replace(wishes, num_threads=last.num_threads, capacity=last.capacity)
    costs = node_costs(trace, boundary.view) if trace else plan.costs if plan else None
    return Basis(boundary=boundary, plan=plan, costs=costs, options=wishes)


def shown_of(basis: Basis, staged: Bools) -> Shown:
    """The cut to draw: the plan's, without one the widest; beside it SmartStage's.

    Args:
      basis: what is drawn.
      staged: the nodes that the plan moves.
    """
    boundary, plan = basis.boundary, basis.plan
    widest = [side.widest for side in boundary.sides]
    foreseen = [prediction for prediction in plan.predictions if prediction.chosen] if plan else []
    own = any(prediction.label != CHOSEN for prediction in foreseen)
    moved = [staged & side.widest for side in boundary.sides] if plan else widest
    return Shown(
        moved=moved,
        smart=moved if own else _smart(basis),
        label="this plan" if plan else "all that may run ahead",
        solid=plan is not None,
        prediction=foreseen[0] if len(foreseen) == 1 else None,
        unstaged_ms=next(
            (
                prediction.step_ms
                for prediction in (plan.predictions if plan else ())
                if prediction.label == UNSTAGED
            ),
            0.0,
        ),
    )


def _smart(basis: Basis) -> list[Bools]:
    """SmartStage's cut: that which is predicted to be best, without costs the widest."""
    sides = basis.boundary.sides
    if basis.costs is None:
        return [side.widest for side in sides]
    best = [
        weigh(
            basis.boundary,
            basis.boundary.exact(side),
            basis.options,
            basis.costs,
            cores=basis.costs.cores,
        )[0]
        for side in sides
    ]
    staged = [
        with_stale(basis.boundary, side, each, side.widest)
        for each, side in zip(best, sides, strict=True)
    ]
    return [
        each.new_stages[-1].moved & side.widest if each and each.new_stages else side.widest & False
        for each, side in zip(staged, sides, strict=True)
    ]

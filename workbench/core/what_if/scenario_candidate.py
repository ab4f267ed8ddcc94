"""A setting → the candidate that its steps run: what goes ahead of them, and the words for it."""

from __future__ import annotations

import dataclasses

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.boundary.candidates import (
    OWN_STAGE,
    UNSTAGED,
    Candidate,
    CandidateStage,
    cut_of,
    own_stage,
)
from workbench.core.boundary.chosen_cut import chosen_cut
from workbench.core.options import StageOptions
from workbench.core.planning.weighing import weigh
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.what_if.scenario import Scenario


def staged_as(boundary: Boundary, costs: Costs, scenario: Scenario, cores: int) -> Candidate:
    """What runs ahead: nothing, the user's own stage, or what a smart stage's plan would take.

    Args:
      boundary: of the setting's graph.
      costs: of its nodes, under the setting.
      scenario: the setting.
      cores: that it has.

    Raises:
      PlanError: the boundary cannot be where the setting moves it.
    """
    stage, smart = scenario.optimizations.stage, scenario.optimizations.smart_stage
    if smart is not None and smart.moved_boundary:
        return cut_of(boundary, chosen_cut(boundary, smart.include, smart.exclude), smart)
    if smart is not None:
        weighed = [weigh(boundary, side, smart, costs, cores=cores)[0] for side in boundary.sides]
        if len(weighed) == 1:
            return weighed[0]
        stages = tuple(each for candidate in weighed for each in candidate.stages)
        return Candidate(label="smart stages", stages=stages)
    if stage is None:
        return Candidate(label=UNSTAGED, stages=(), removes_own=True)
    own = [_with_options(boundary, side, stage) for side in boundary.sides if side.start.is_stage]
    return Candidate(label=OWN_STAGE, stages=tuple(own))


def _with_options(boundary: Boundary, side: Side, options: StageOptions) -> CandidateStage:
    own = own_stage(boundary, side)
    return dataclasses.replace(own, num_threads=options.num_threads, capacity=options.capacity)


def plan_words(candidate: Candidate) -> str:
    """What of a candidate a prediction names; "" of the un-staged program."""
    if candidate.label in (UNSTAGED, OWN_STAGE):
        return "" if candidate.label == UNSTAGED else OWN_STAGE
    return candidate.label

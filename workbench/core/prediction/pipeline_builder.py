"""Costs → Pipeline: the one that a trace was taken in, and the one that a candidate makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import Candidate, CandidateStage, own_stage
from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, GraphView
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.costs.node_spans import NodeSpans, SideSpans
from workbench.core.simulation.pipeline import STEP, Pipeline, PipelineStage


def traced_pipeline(view: GraphView, seen: NodeSpans, costs: Costs) -> Pipeline:
    """The pipeline that a trace was taken in.

    Args:
      view: the graph without what a smart stage has changed.
      seen: what the trace saw of it.
      costs: of the nodes.
    """
    # A node that ran on both sides counts where it took longer.
    stretch = _stretch_of_unmatched(seen, costs)
    masks = {name: side.ran & (side.ns >= seen.step.ns) for name, side in seen.stages.items()}
    # What costs nothing may stand between nodes of any side.
    free = (costs.span_ns <= 0) & ~view.mask(costs.inputs)
    order, after = _chained(view, seen.stages, masks)
    stages = [
        costs.stage(
            view,
            masks[name] | free,
            name=name,
            after=after[name],
            threads=seen.stages[name].threads,
            capacity=seen.stages[name].capacity,
            cores=costs.cores,
            unmatched_ns=stretch * seen.stages[name].unmatched_ns,
        )
        for name in order
    ]
    ahead = np.any([np.zeros(len(view), bool), *masks.values()], axis=0)
    step = costs.step(
        view,
        ~ahead,
        name=STEP,
        after=_ends(stages),
        clients=seen.step.threads,
        cores=costs.cores,
        unmatched_ns=stretch * seen.step.unmatched_ns,
    )
    return Pipeline(stages=tuple(stages), step=step, step_scales=costs.step_scales)


def _stretch_of_unmatched(seen: NodeSpans, costs: Costs) -> float:
    total = sum(side.unmatched_ns for side in (seen.step, *seen.stages.values()))
    return costs.unmatched_ns / total if total > 0 else 0.0


def candidate_pipeline(
    boundary: Boundary, costs: Costs, candidate: Candidate, *, cores: int
) -> Pipeline:
    """The pipeline that a candidate makes; the user's other stages stay as they are."""
    view = boundary.view
    ahead = np.zeros(len(view), bool)
    stages: list[PipelineStage] = []
    new = 0
    last: dict[int, int] = {}
    for stage in _with_others(boundary, candidate):
        before = last.get(stage.side.number)
        new += not stage.is_users
        name = "your stage" if stage.is_users else f"stage {new}"
        stages.append(
            costs.stage(
                view,
                stage.moved & ~ahead,
                name=name,
                after=() if before is None else (before,),
                threads=stage.num_threads,
                capacity=stage.capacity,
                cores=cores,
            )
        )
        ahead |= stage.moved
        last[stage.side.number] = len(stages) - 1
    step = costs.step(
        view,
        ~ahead,
        name=STEP,
        after=_ends(stages),
        clients=1,
        cores=cores,
        unmatched_ns=costs.unmatched_ns,
    )
    return Pipeline(stages=tuple(stages), step=step, step_scales=costs.step_scales)


def _with_others(boundary: Boundary, candidate: Candidate) -> list[CandidateStage]:
    """The stages of a candidate, and the user's own on other sides."""
    if candidate.removes_own:
        return list(candidate.stages)
    staged = {stage.side.number for stage in candidate.stages}
    others = [
        own_stage(boundary, side)
        for side in boundary.sides
        if side.start.is_stage and side.number not in staged
    ]
    return [*candidate.stages, *others]


def _ends(stages: Sequence[PipelineStage]) -> tuple[int, ...]:
    """The stages that no other takes from."""
    taken = {number for stage in stages for number in stage.after}
    return tuple(number for number in range(len(stages)) if number not in taken)


def _chained(
    view: GraphView, stages: Mapping[str, SideSpans], masks: Mapping[str, Bools]
) -> tuple[list[str], dict[str, list[int]]]:
    """The stages of a trace in the order of the data, and for each from which it takes.

    A stage takes from another when its nodes depend on the other's; of several that do, from those
    on which no other of them depends.
    """
    starts = view.mask(n for n, op in enumerate(view.ops) if op in op_types.SOURCES)
    links = view.puts_to_takes
    follows = _reached(view, starts, links)
    nodes = {name: mask & follows for name, mask in masks.items()}
    below = {name: _reached(view, mask, links) & ~mask for name, mask in nodes.items()}
    upstream = {
        name: {other for other in stages if other != name and (below[other] & nodes[name]).any()}
        for name in stages
    }
    order = sorted(stages, key=lambda name: len(upstream[name]))
    place = {name: number for number, name in enumerate(order)}
    after = {}
    for name in order:
        nearest = upstream[name] - {far for each in upstream[name] for far in upstream[each]}
        after[name] = sorted(place[each] for each in nearest if place[each] < place[name])
    return order, after


def _reached(view: GraphView, start: Bools, links: Sequence[tuple[int, int]]) -> Bools:
    """All that depends on `start`, through stages too."""
    found = view.reached(start)
    while True:
        through = view.mask(take for put, take in links if found[put])
        if found[through].all():
            return found
        found = view.reached(found | through)

"""Boundary and options, and a trace if there is one → StagePlan."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import (
    UNSTAGED,
    Candidate,
    cut_candidate,
    widest_chained,
    with_stale,
)
from workbench.core.boundary.chosen_cut import chosen_cut
from workbench.core.graph.graph_view import Bools
from workbench.core.options import SmartStageOptions
from workbench.core.planning.buffer_placement import ON_CPU, ComputeDevice
from workbench.core.planning.edits import edits_of
from workbench.core.planning.planned_stages import planned_stages
from workbench.core.planning.stage_plan import Edit, PlannedStage, StagePlan
from workbench.core.planning.weighing import weigh
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.cut_prediction import predict_cut
from workbench.core.prediction.predict import node_costs, predict
from workbench.core.prediction.prediction import Prediction
from workbench.errors import OptionError
from workbench.usable import usable_cores

if TYPE_CHECKING:
    from workbench.core.trace.trace import Trace


def plan_stages(
    boundary: Boundary,
    options: SmartStageOptions | None = None,
    *,
    trace: Trace | None = None,
    cores: int | None = None,
    compute_device: ComputeDevice = ON_CPU,
    include: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
) -> StagePlan:
    """Decides which nodes run ahead of the step, in which stages.

    With a trace, of the legal cuts that one whose predicted step time is best, and the user's own
    stage as it stands when nothing beats it. Without one, the widest cut, with the input in a stage
    of its own before it, so that pre-processing never waits for input that a put waits for.

    Lookups that may be stale come into a stage of their own behind those, at most so many steps
    ahead. Where their tables are on other tasks, its runs apply the updates of their batches too.
    What that gives is not predicted.

    Args:
      boundary: what may run ahead.
      options: what is wished; None means the defaults.
      trace: of a few warm steps of the same graph, with or without the user's stage.
      cores: to predict for; None takes the trace's, else this process's.
      compute_device: where TensorFlow puts the compute side's nodes that name no device, for
        `on_cpu`.
      include, exclude: names of nodes that run ahead, or stay, as in `chosen_cut`: with either the
        plan takes exactly that cut, in one stage, whatever is predicted. Without both, those of
        the options.

    Raises:
      OptionError: the options ask for several producers but not for `reorder`.
      PlanError: a cut that is not legal; the message has the reason.
    """
    chosen = options or SmartStageOptions()
    if (chosen.num_threads or 1) > 1 and not chosen.reorder:
        raise OptionError(
            f"num_threads={chosen.num_threads} lets batches overtake each other; "
            "say reorder=True if their order does not matter"
        )
    count = cores or (trace.meta.cores if trace else None) or usable_cores()
    costs = node_costs(trace, boundary.view) if trace else None
    if include is None and exclude is None:
        include, exclude = chosen.include, chosen.exclude or None
    if include is not None or exclude is not None:
        moved = chosen_cut(boundary, include, exclude or ())
        return cut_plan(
            boundary, moved, chosen, costs=costs, cores=int(count), compute_device=compute_device
        )
    if costs is None:
        widest = [
            with_stale(
                boundary,
                side,
                widest_chained(boundary, boundary.exact(side), chosen),
                side.widest,
            )
            for side in boundary.sides
        ]
        return plan_of(boundary, widest, chosen, compute_device=compute_device)
    weighed = [
        weigh(boundary, boundary.exact(side), chosen, costs, cores=int(count))
        for side in boundary.sides
    ]
    return plan_of(
        boundary,
        [
            with_stale(boundary, side, candidate, side.widest)
            for side, (candidate, _) in zip(boundary.sides, weighed, strict=True)
        ],
        chosen,
        predictions=[each for _, shown in weighed for each in shown],
        compute_device=compute_device,
        costs=costs,
    )


def cut_plan(
    boundary: Boundary,
    moved: Sequence[Bools],
    options: SmartStageOptions,
    *,
    costs: Costs | None = None,
    cores: int | None = None,
    compute_device: ComputeDevice = ON_CPU,
) -> StagePlan:
    """The plan that moves exactly these nodes, in one stage for each side, one for stale lookups.

    Args:
      boundary: what may run ahead.
      moved: a legal cut, one set of nodes for each side, as `chosen_cut` gives it.
      options: of the stages; exceptions as integer codes.
      costs: of the nodes; with them the plan says what it is predicted to give.
      cores: to predict for; None takes those of the costs.
      compute_device: as in `plan_stages`.
    """
    candidates = [
        with_stale(
            boundary,
            side,
            cut_candidate(boundary, side, boundary.exact_part(side, nodes), options),
            nodes,
        )
        for side, nodes in zip(boundary.sides, moved, strict=True)
    ]
    predictions: list[Prediction] = []
    if costs is not None:
        unstaged = Candidate(label=UNSTAGED, stages=(), removes_own=True)
        predictions.append(predict(boundary, costs, unstaged, cores=cores))
        foreseen = predict_cut(boundary, costs, moved, options, cores=cores)
        predictions.append(dataclasses.replace(foreseen, chosen=True))
    return plan_of(
        boundary,
        candidates,
        options,
        predictions,
        compute_device=compute_device,
        costs=costs,
        chosen=True,
    )


def plan_of(
    boundary: Boundary,
    candidates: Sequence[Candidate | None],
    options: SmartStageOptions,
    predictions: Sequence[Prediction] = (),
    compute_device: ComputeDevice = ON_CPU,
    costs: Costs | None = None,
    chosen: bool = False,
) -> StagePlan:
    """The plan of one candidate for each side.

    Args:
      boundary: what may run ahead.
      candidates: one for each side; None leaves the side as it is.
      options: of the stages; exceptions as integer codes.
      predictions: what the candidates that were weighed would give.
      compute_device: as in `plan_stages`.
      costs: of the nodes, to be kept with the plan.
      chosen: whether the cut was chosen by name.
    """
    stages: list[PlannedStage] = []
    edits: list[Edit] = []
    for side, candidate in zip(boundary.sides, candidates, strict=True):
        planned = (
            planned_stages(boundary, side, candidate, options, compute_device) if candidate else ()
        )
        stages += planned
        edits += edits_of(boundary, side, candidate, planned, bool(predictions), leaves=chosen)
    view, roots = boundary.view, _roots(boundary, candidates)
    return StagePlan(
        stages=tuple(stages),
        targets=boundary.targets,
        roots=tuple(view.names[node] for node in roots),
        fingerprint=view.fingerprint(view.ancestors(view.mask(roots))),
        edits=tuple(edits),
        predictions=tuple(predictions),
        boundary=boundary,
        costs=costs,
        wishes=options,
        compute_device=compute_device,
    )


def _roots(boundary: Boundary, candidates: Sequence[Candidate | None]) -> list[int]:
    """What a plan rests on: the targets, the nodes that read what travels, and the own puts."""
    roots = dict.fromkeys(map(boundary.view.number, boundary.targets))
    for candidate in filter(None, candidates):
        for stage in candidate.new_stages:
            cut = boundary.cut_edges(stage.side, stage.moved & stage.side.legal)
            roots.update(dict.fromkeys(np.unique(cut[:, 2]).tolist()))
            roots.update(dict.fromkeys(stage.side.start.puts if candidate.widens else ()))
    return list(roots)

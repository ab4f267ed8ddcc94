"""What a plan does to one side, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.core.boundary.blockers import Reason
from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.boundary.candidates import CHOSEN, OWN_STAGE, UNSTAGED, Candidate
from workbench.core.graph import op_types
from workbench.core.planning.stage_plan import Edit, PlannedStage

STALE, NOT_STALE = "new stage for stale lookups", "no stale lookups"


def edits_of(
    boundary: Boundary,
    side: Side,
    candidate: Candidate | None,
    stages: Sequence[PlannedStage],
    weighed: bool,
    leaves: bool = False,
) -> list[Edit]:
    """What is done to one side.

    Args:
      boundary, side: what may run ahead.
      candidate: what was chosen; None leaves the side as it is.
      stages: what the plan makes of it.
      weighed: whether predictions decided.
      leaves: whether the side stays as it is because a cut was chosen that leaves it.
    """
    exact = [stage for stage in stages if not stage.stale_lookups]
    edits = []
    if exact or not stages:
        edits += _exact_edits(boundary, side, candidate, exact, weighed, leaves)
    if boundary.stale_lookups:
        edits.append(_stale_edit(boundary, side, stages))
    return edits


def _stale_edit(boundary: Boundary, side: Side, stages: Sequence[PlannedStage]) -> Edit:
    view = boundary.view
    names = {view.names[view.data[row, 2]] for row in boundary.stale_reads}
    for stage in stages:
        if not stage.stale_lookups:
            continue
        count = len(names.intersection(stage.moved))
        reads = "1 lookup reads its table" if count == 1 else f"{count} lookups read their tables"
        reason = (
            f"{reads} in {stage.name!r}, {stage.staleness}, by {_producers(stage)}, as "
            f"stale_lookups={stage.stale_lookups} asks: the training is not the exact one"
        )
        return Edit(name=STALE, reason=reason)
    reason = (
        f"stale_lookups={boundary.stale_lookups}, but the step needs no lookup that depends on "
        f"{_starts(boundary, side)} and its table alone"
    )
    return Edit(name=NOT_STALE, reason=reason)


def _producers(stage: PlannedStage) -> str:
    count = stage.options.num_threads
    return "one producer" if count == 1 else f"{count} producers in turn"


def _starts(boundary: Boundary, side: Side) -> str:
    return ", ".join(repr(boundary.view.names[node]) for node in side.start.nodes)


def _exact_edits(
    boundary: Boundary,
    side: Side,
    candidate: Candidate | None,
    stages: Sequence[PlannedStage],
    weighed: bool,
    leaves: bool,
) -> list[Edit]:
    start = _starts(boundary, side)
    if candidate is None or not stages:
        if leaves:
            left = "leave your stage" if side.start.is_stage else "stage nothing"
            return [Edit(name=left, reason="the chosen cut moves nothing")]
        return [_nothing(boundary, side, candidate, start)]
    why = "predicted to be the fastest" if weighed else "everything that may run ahead does"
    if candidate.label == CHOSEN:
        why = "its nodes were named"
    edits = []
    if len(stages) == 1 and stages[0].widens:
        edits.append(Edit(name="widen your stage", reason=f"{candidate.label}: {why}"))
    else:
        for stage in stages[:-1]:
            edits.append(
                Edit(
                    name="new stage for the input",
                    reason=f"{start} is read in {stage.name!r}, so that pre-processing never waits "
                    "for the input",
                )
            )
        after = " behind your stage" if side.start.is_stage else ""
        edits.append(Edit(name=f"new stage{after}", reason=f"{candidate.label}: {why}"))
    return edits


def _why_start_stays(boundary: Boundary, side: Side) -> str:
    """Why what delivers the batch cannot run ahead, in words; "" where it can."""
    view = boundary.view
    for node in side.start.nodes:
        if node in boundary.blockers:
            return boundary.blockers[node].detail
        refusal = boundary.refusal(view.names[node])
        if refusal is None:
            continue
        fed, way = refusal.blocker.node, {view.ops[view.number(name)] for name in refusal.path}
        if refusal.reason is Reason.PLACEHOLDER and way & op_types.FED_HANDLES:
            return (
                f"reads the iterator whose handle {fed!r} each run feeds, so that no run can read "
                "ahead for another one; stage its batch with wb.staged(…, feed_dict={handle: …}), "
                "or read one iterator"
            )
        return f"stays: {refusal.detail}. To free it: {refusal.change}"
    return ""


def _nothing(boundary: Boundary, side: Side, candidate: Candidate | None, start: str) -> Edit:
    if candidate is not None and candidate.label in (OWN_STAGE, UNSTAGED):
        what = "leave your stage" if candidate.label == OWN_STAGE else "stage nothing"
        return Edit(name=what, reason="nothing else is predicted to be faster by 2 % or more")
    refused = _why_start_stays(boundary, side)
    if refused:
        return Edit(name="stage nothing", reason=f"{start} {refused}")
    if not side.widest.any():
        if np.flatnonzero(side.legal).size and not boundary.targets:
            reason = (
                f"nothing that depends on {start} has to stay on the compute side; name the step's "
                "targets, or mark them with mark_target_node"
            )
        else:
            reason = f"no node on the compute side needs {start}"
        return Edit(name="stage nothing", reason=reason)
    return Edit(
        name="leave your stage",
        reason=f"every node behind {start} that the compute side needs must stay there",
    )

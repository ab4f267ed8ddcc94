"""Words and tables of a boundary view: the answer, what travels, what was predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import UNSTAGED
from workbench.core.graph.graph_view import GraphView, Ints, edges
from workbench.core.planning.stage_plan import StagePlan
from workbench.viz.boundary.areas import Area, Tensor, about_stage, all_outputs, dtype_words
from workbench.viz.boundary.refusals import Refusals
from workbench.viz.boundary.schema import CandidateView, CutView, Pieces
from workbench.viz.boundary.scopes import folded_name, label_of
from workbench.viz.style import format

_MOST_CUTS = 40
_MOST_READERS = 2
_MOST_REASONS = 3
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def sentence_of(
    boundary: Boundary | None, plan: StagePlan | None, areas: Sequence[Area], refusals: Refusals
) -> Pieces:
    """The answer: what runs ahead or may, what travels, what stays, what is predicted."""
    if plan is not None and not plan.stages:
        first = plan.edits[0] if plan.edits else None
        if first is None:
            return (("The plan changes nothing.", True),)
        return ((capital(first.name), True), (f": {first.reason}.", False))
    kind = "stage" if plan else "may"
    ahead = sum(len(area.nodes) for area in areas if area.kind == kind)
    nodes = f"{format.integer(ahead)} {'node' if ahead == 1 else 'nodes'}"
    stay = _stay(boundary, refusals)
    if plan is None:
        if not ahead:
            return (("Nothing more may run ahead", True), (f" of the step.{stay}", False))
        return ((f"{nodes} may run ahead", True), (f" of the step.{stay}", False))
    last = [area for area in areas if area.kind == "stage"]
    travel = sum(len(a.tensors) for i, a in enumerate(last) if i + 1 == len(last)
                 or last[i + 1].chain != a.chain)  # fmt: skip
    where = _where(areas)
    return (
        (f"{nodes} run ahead", True),
        (f" of the step in {where}; ", False),
        (f"{format.integer(travel)} {'tensor' if travel == 1 else 'tensors'}", True),
        (f" {'travels' if travel == 1 else 'travel'} to the compute side.{stay}", False),
        *_gain(plan),
    )


def candidates_of(plan: StagePlan | None) -> tuple[CandidateView, ...]:
    """The candidates and their predictions, as fractions of the slowest; ratios to un-staged."""
    predictions = plan.predictions if plan else ()
    slowest = max((prediction.step_ms for prediction in predictions), default=0.0) or 1.0
    unstaged = [prediction.step_ms for prediction in predictions if prediction.label == UNSTAGED]
    return tuple(
        CandidateView(
            label=capital(prediction.label),
            step=format.duration(prediction.step_ms * 1e6),
            bound=format.duration(prediction.bound_ms * 1e6),
            ratio=format.ratio(unstaged[0] / prediction.step_ms) if len(unstaged) == 1 else "",
            limited_by=prediction.limited_by,
            chosen=prediction.chosen,
            at=prediction.step_ms / slowest,
            bound_at=prediction.bound_ms / slowest,
        )
        for prediction in predictions
    )


def cut_of(view: GraphView, area: Area, read: Ints, unread: Mapping[Tensor, str]) -> CutView:
    """What travels out of one area, folded by the names of those that make it.

    Args:
      view: the graph.
      area: where it comes from.
      read: the edges by which what travels is read.
      unread: why the tensors travel that nothing reads.
    """
    readers_of: dict[tuple[int, int], list[int]] = {}
    for source, output, target, _ in read.tolist():
        readers_of.setdefault((source, output), []).append(target)
    alike: dict[str, list[Tensor]] = {}
    for tensor in area.tensors:
        alike.setdefault(folded_name(view.names[tensor.node]), []).append(tensor)
    rows = []
    for tensors in list(alike.values())[:_MOST_CUTS]:
        by = [node for tensor in tensors for node in readers_of.get(tensor.seen, ())]
        rows.append(
            (
                label_of(view.names[tensor.node] for tensor in tensors),
                format.integer(len(tensors)),
                dtype_words([tensor.dtype for tensor in tensors]),
                _folded_names([view.names[node] for node in by]),
                _why_unread([unread[t] for t in tensors if t in unread], len(tensors)),
            )
        )
    left = len(alike) - len(rows)
    count = len(area.tensors)
    tensors_word = f"{format.integer(count)} {'tensor' if count == 1 else 'tensors'}"
    through = f"Through the buffer of “{area.name}”" if area.name else "Would travel"
    return CutView(
        caption=f"{through}: {tensors_word}",
        rows=tuple(rows),
        more=format.integer(left) if left else "",
    )


def unfinished_areas(plan: StagePlan) -> tuple[list[Area], GraphView]:
    """The areas of a plan that holds no graph, and what is known of the graph: nodes, no edges."""
    known = {
        name: op
        for stage in plan.stages
        for name, op in zip(stage.moved, stage.moved_ops, strict=True)
    }
    outputs = {
        name: kinds
        for stage in plan.stages
        for name, kinds in zip(stage.carried, stage.dtypes, strict=True)
    }
    view = GraphView(
        names=tuple(known),
        ops=tuple(known.values()),
        devices=("",) * len(known),
        outputs=tuple(tuple(outputs.get(name, ())) for name in known),
        data=edges((), 4),
        control=edges((), 2),
    )
    chains = list(dict.fromkeys(stage.start for stage in plan.stages))
    areas = []
    seen = {start: np.zeros(len(known), bool) for start in chains}
    for stage in plan.stages:
        moved = view.mask(map(view.number, stage.moved))
        areas.append(
            Area(
                kind="stage",
                name=stage.name,
                title=f"Stage “{stage.name}”",
                about=about_stage(stage),
                chain=chains.index(stage.start),
                nodes=np.flatnonzero(moved & ~seen[stage.start]),
                tensors=all_outputs(view, [view.number(name) for name in stage.carried]),
                stale_lookups=stage.stale_lookups,
            )
        )
        seen[stage.start] |= moved
    return areas, view


def _stay(boundary: Boundary | None, refusals: Refusals) -> str:
    """How many nodes stay that depend on the input, and why."""
    count = int((refusals.reason_of >= 0).sum())
    if boundary is None or not count:
        return ""
    why = [f"{reason.word} {reason.nodes}" for reason in refusals.reasons if reason.refused]
    shown = ", ".join([*why[:_MOST_REASONS], *(["…"] if len(why) > _MOST_REASONS else [])])
    if len(why) == 1:
        shown = refusals.reasons[0].word
    verb = "depends on the input and stays" if count == 1 else "depend on the input and stay"
    first = refusals.causes[0]
    behind = "all" if first.share == 1 else first.behind
    most = f", {behind} of them behind {first.title}" if count > 1 else ""
    return f" {format.integer(count)} more {verb} ({shown}){most}."


def _gain(plan: StagePlan) -> Pieces:
    unstaged = [each.step_ms for each in plan.predictions if each.label == UNSTAGED]
    chosen = [each.step_ms for each in plan.predictions if each.chosen]
    if len(unstaged) != 1 or len(chosen) != 1:
        return ()
    ratio = format.ratio(unstaged[0] / chosen[0])
    # What stale lookups give is not predicted.
    stale = any(stage.stale_lookups for stage in plan.stages)
    first = " Predicted with exact lookups: " if stale else " Predicted: "
    return ((first, False), (f"{ratio} as fast", True), (" as un-staged.", False))


def _where(areas: Sequence[Area]) -> str:
    stages = [area for area in areas if area.kind == "stage"]
    behind = " behind your stage" if any(area.kind == "own" for area in areas) else ""
    if len(stages) == 1:
        return f"{_uncapital(stages[0].title)}{behind}"
    number = _NUMBERS[len(stages)] if len(stages) < len(_NUMBERS) else str(len(stages))
    chained = "chained " if len({area.chain for area in stages}) == 1 else ""
    return f"{number} {chained}stages{behind}"


def _why_unread(why: Sequence[str], count: int) -> str:
    """Why some of `count` tensors travel that nothing reads; "" where all are read."""
    if not why or len(why) == count:
        return why[0] if why else ""
    return f"{format.integer(len(why))} of them are read by nothing: {_uncapital(why[0])}"


def _folded_names(names: Sequence[str]) -> str:
    """The first few kinds of name: "top/MatMul, C1…C26/Tile, 3 more"; "" without one."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(folded_name(name), []).append(name)
    shown = [label_of(each) for each in list(alike.values())[:_MOST_READERS]]
    left = len(alike) - len(shown)
    return ", ".join([*shown, f"{format.integer(left)} more"] if left else shown)


def capital(text: str) -> str:
    """With a capital at its beginning."""
    return text[:1].upper() + text[1:]


def _uncapital(text: str) -> str:
    return text[:1].lower() + text[1:]

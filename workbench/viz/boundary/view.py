"""Boundary view: a plan and its boundary as the finished description that every outlet draws.

Every word and number is made here; an outlet places, filters and picks. A side of 100 000 nodes is
a handful of boxes, each of which opens into a handful.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.graph.graph_view import Bools, Ints
from workbench.core.planning.stage_plan import StagePlan
from workbench.viz.boundary.areas import Area, Tensor, areas_of, behind, readers, unread
from workbench.viz.boundary.basis import Basis, Shown, basis_of, shown_of
from workbench.viz.boundary.boxes import BoxMaker, travel_words
from workbench.viz.boundary.drawing.flow import Groups, flow_of
from workbench.viz.boundary.drawing.flow_schema import FlowView
from workbench.viz.boundary.drawing.known_cuts import CutTeller
from workbench.viz.boundary.refusals import Refusals, refusals_of
from workbench.viz.boundary.schema import (
    AreaView,
    BoxView,
    CandidateView,
    CauseView,
    CutView,
    Pieces,
    ReasonView,
    RefusalView,
    Region,
)
from workbench.viz.boundary.scopes import Limits
from workbench.viz.boundary.summary import (
    candidates_of,
    capital,
    cut_of,
    sentence_of,
    unfinished_areas,
)
from workbench.viz.style import colors, format

if TYPE_CHECKING:
    from workbench.core.trace.trace import Trace

VIEW_VERSION = 4
# The most boxes of a level: of what may run ahead, of what reads it, of the rest, of one that is
# opened; and the most of one part that are kept to be opened.
_AHEAD, _NEAR, _FURTHER, _OPENED, _KEPT = 14, 7, 8, 12, 400
_LIMITS = Limits(first=_FURTHER, most=_OPENED, kept=_KEPT)
# More names than this are not kept in a page.
_MOST_NODES = 4000
_NO_GRAPH = "Not known without the graph."


@dataclasses.dataclass(frozen=True, kw_only=True)
class BoundaryView:
    """One boundary, ready for every outlet.

    Attributes:
      sentence: the answer, as (text, strong) pieces.
      notice: what is not shown and why; empty when everything is.
      areas: the sides, chain by chain in the order of the data, the compute side last.
      boxes: all boxes; areas and boxes name theirs by place.
      reasons: why nodes stay, that of most nodes first.
      causes: what holds them back, that with most nodes behind it first.
      more_causes: how many causes are left out, in words; "" for none.
      rows: the refusals, next to the boundary first.
      more_rows: how many refusals are left out, in words; "" for none.
      cuts: what travels, a table for each buffer.
      edits: (name, reason) of what the plan does.
      candidates: ways to stage that were weighed, with predictions; empty without a trace.
      families: (name, code) of the op families.
      flow: the drawing; None without a graph.
    """

    sentence: Pieces
    notice: str
    areas: tuple[AreaView, ...]
    boxes: tuple[BoxView, ...] = dataclasses.field(repr=False)
    reasons: tuple[ReasonView, ...]
    causes: tuple[CauseView, ...] = dataclasses.field(repr=False)
    more_causes: str
    rows: tuple[RefusalView, ...] = dataclasses.field(repr=False)
    more_rows: str
    cuts: tuple[CutView, ...] = dataclasses.field(repr=False)
    edits: tuple[tuple[str, str], ...]
    candidates: tuple[CandidateView, ...]
    families: tuple[tuple[str, str], ...] = tuple((f.name, f.code) for f in colors.FAMILIES)
    flow: FlowView | None = dataclasses.field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The view as plain values, equal to what JSON gives back of them."""
        text = json.dumps({"version": VIEW_VERSION, **dataclasses.asdict(self)})
        content: dict[str, Any] = json.loads(text)
        return content


def boundary_view(source: StagePlan | Boundary, trace: Trace | None = None) -> BoundaryView:
    """The view of a plan with its boundary, or of a boundary alone.

    Args:
      source: a plan shows what it moves; one that was read from JSON has no graph, so its compute
        side and the refusals are missing. A boundary shows what may move.
      trace: of warm steps of the graph, for times and predictions; a plan that was made with one
        needs none.
    """
    return boundary_view_and_teller(source, trace)[0]


def boundary_view_and_teller(
    source: StagePlan | Boundary, trace: Trace | None = None
) -> tuple[BoundaryView, CutTeller | None]:
    """The view, and what tells of cuts that are not in it; None without a graph."""
    plan = source if isinstance(source, StagePlan) else None
    boundary = source if isinstance(source, Boundary) else source.boundary
    if boundary is None:
        assert plan is not None
        return _without_graph(plan), None
    return _drawn(basis_of(boundary, plan, trace))


def _drawn(basis: Basis) -> tuple[BoundaryView, CutTeller]:
    boundary, plan, view = basis.boundary, basis.plan, basis.boundary.view
    areas = areas_of(boundary, plan.stages if plan else ())
    staged = view.mask(node for area in areas for node in area.nodes)
    taken = view.mask(n for s in boundary.sides if s.start.is_stage for n in s.start.nodes)
    compute = boundary.step & ~staged & ~taken
    read = [readers(view, area, behind(view, areas, i, compute)) for i, area in enumerate(areas)]
    why = [unread(area, rows) for area, rows in zip(areas, read, strict=True)]
    last = [rows for i, rows in enumerate(read) if _is_last(areas, i)]
    edges = np.concatenate([*last, np.zeros((0, 4), np.int32)])
    refusals = refusals_of(boundary, view.mask(np.unique(edges[:, 2])), basis.gain())
    planned = view.mask(node for a in areas if a.kind == "stage" for node in a.nodes)
    shown = shown_of(basis, planned)
    maker, sides, groups = _boxes(basis, refusals, areas, why, compute, edges, shown)
    flow, teller = flow_of(basis, maker, groups, shown, last=_last(refusals))
    maker.name_nodes(_MOST_NODES)
    drawn = BoundaryView(
        sentence=sentence_of(boundary, plan, areas, refusals),
        notice="",
        areas=sides,
        boxes=tuple(maker.boxes),
        reasons=refusals.reasons,
        causes=refusals.causes,
        more_causes=format.integer(refusals.more_causes) if refusals.more_causes else "",
        rows=refusals.rows,
        more_rows=format.integer(refusals.more) if refusals.more else "",
        cuts=tuple(
            cut_of(view, area, rows, none)
            for area, rows, none in zip(areas, read, why, strict=True)
        ),
        edits=_edits(plan),
        candidates=candidates_of(plan),
        flow=flow,
    )
    return drawn, teller


def _boxes(
    basis: Basis,
    refusals: Refusals,
    areas: Sequence[Area],
    why: Sequence[Mapping[Tensor, str]],
    compute: Bools,
    edges: Ints,
    shown: Shown,
) -> tuple[BoxMaker, tuple[AreaView, ...], Groups]:
    """All boxes, the areas that text names, and which boxes are drawn where."""
    boundary, view = basis.boundary, basis.boundary.view
    nothing = np.zeros(len(view), bool)
    widest = np.any([nothing, *(side.widest for side in boundary.sides)], axis=0)
    left = np.any([nothing, *(compute & side.legal for side in boundary.sides)], axis=0)
    divided = np.any([nothing, *shown.smart], axis=0)
    costs = basis.costs
    op_ns = costs.work_ns + costs.wait_ns if costs else None
    maker = BoxMaker(view, refusals, left, _LIMITS, op_ns)
    sides = [
        _staged_side(maker, area, none, divided) for area, none in zip(areas, why, strict=True)
    ]
    near = view.mask(edges[:, 2]) | view.mask(view.data[widest[view.data[:, 0]], 2])
    made = _compute_side(
        maker, refusals, compute, left, (left & widest, divided), near & compute, edges
    )
    ahead = [box for side in sides for region in side.regions for box in region.boxes]
    groups = dataclasses.replace(made.groups, ahead=(*ahead, *made.groups.ahead))
    return maker, (*sides, made.area), groups


def _last(refusals: Refusals) -> str:
    """Why the line goes no further than all that may run ahead."""
    if not refusals.causes:
        return "Nothing further depends on the input."
    first = refusals.causes[0]
    reason = refusals.reasons[first.reason].word
    return f"What is left depends on {first.title} ({first.about}): {reason}."


def _without_graph(plan: StagePlan) -> BoundaryView:
    areas, view = unfinished_areas(plan)
    nothing = np.full(len(view), -1, np.int32)
    refusals = Refusals((), (), nothing, nothing, (), nothing, nothing)
    nowhere = np.zeros(len(view), bool)
    maker = BoxMaker(view, refusals, nowhere, _LIMITS)
    sides = tuple(_staged_side(maker, area, {}, nowhere) for area in areas)
    maker.name_nodes(_MOST_NODES)
    return BoundaryView(
        sentence=sentence_of(None, plan, areas, refusals),
        notice="This plan was read from JSON and holds no graph: its compute side and the "
        "refusals are not shown.",
        areas=sides,
        boxes=tuple(maker.boxes),
        reasons=(),
        causes=(),
        more_causes="",
        rows=(),
        more_rows="",
        cuts=tuple(
            cut_of(view, area, view.data, dict.fromkeys(area.tensors, _NO_GRAPH)) for area in areas
        ),
        edits=_edits(plan),
        candidates=candidates_of(plan),
    )


def _is_last(areas: Sequence[Area], place: int) -> bool:
    """Whether the compute side reads it, not another stage of its chain."""
    return place + 1 == len(areas) or areas[place + 1].chain != areas[place].chain


def _staged_side(
    maker: BoxMaker, area: Area, unread: Mapping[Tensor, str], divided: Bools
) -> AreaView:
    """An area; no box stands on both sides of `divided`, through which another cut runs."""
    count = format.integer(len(area.tensors))
    boxes: tuple[int, ...] = ()
    for inside in (True, False):
        nodes = area.nodes[divided[area.nodes] == inside]
        boxes += maker.staged(dataclasses.replace(area, nodes=nodes), unread, _AHEAD)
    return AreaView(
        kind=area.kind,
        title=area.title,
        about=area.about,
        chain=area.chain,
        regions=(Region(title="", boxes=boxes),),
        tensors=count,
        travels=travel_words(area.tensors),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _ComputeSide:
    """The compute side as text has it, and as it is drawn."""

    area: AreaView
    groups: Groups


def _compute_side(
    maker: BoxMaker,
    refusals: Refusals,
    compute: Bools,
    left: Bools,
    left_ahead: tuple[Bools, Bools],
    near: Bools,
    edges: Ints,
) -> _ComputeSide:
    count = format.integer(int(compute.sum()))
    movable, divided = left_ahead
    near = near & ~movable
    concerned = compute & ~near & ~movable & ((refusals.reason_of >= 0) | left)
    others = compute & ~near & ~movable & ~concerned
    may: tuple[int, ...] = ()
    for part in (movable & divided, movable & ~divided):
        may += maker.computed(np.flatnonzero(part), edges, _AHEAD)
    close = maker.computed(np.flatnonzero(near), edges, _NEAR)
    behind = maker.computed(np.flatnonzero(concerned))
    aside = maker.aside(np.flatnonzero(others), "Does not depend on the input")
    regions = [
        Region(
            title="Next to the boundary", boxes=close, empty="Nothing here reads what runs ahead."
        ),
        Region(title="Further on", boxes=behind + aside, empty="Nothing else is in the step."),
    ]
    if may:
        regions.insert(0, Region(title="May run ahead, left here", boxes=may))
    return _ComputeSide(
        area=AreaView(
            kind="compute",
            title="Compute side",
            about=f"the step, {count} nodes",
            chain=0,
            regions=tuple(regions),
        ),
        groups=Groups(ahead=may, near=close, further=behind, aside=aside),
    )


def _edits(plan: StagePlan | None) -> tuple[tuple[str, str], ...]:
    return tuple((capital(edit.name), edit.reason) for edit in plan.edits) if plan else ()

"""Boundary view: a plan and its boundary as the finished description that every outlet draws.

Every word and number is made here; an outlet places, filters and picks. A side of 100 000 nodes is
a handful of boxes, each of which opens into a handful.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.graph.graph_view import Bools, Ints
from workbench.core.planning.stage_plan import StagePlan
from workbench.viz.boundary.areas import Area, Tensor, areas_of, behind, readers, unread
from workbench.viz.boundary.boxes import BoxMaker, travel_words
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

VIEW_VERSION = 3
# The most boxes that are seen at once, and the most of one side that are kept to be opened.
_AT_ONCE, _KEPT = 56, 400
_FEWEST, _FIRST, _MOST = 3, 9, 12
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

    def to_json(self) -> dict[str, Any]:
        """The view as plain values, equal to what JSON gives back of them."""
        text = json.dumps({"version": VIEW_VERSION, **dataclasses.asdict(self)})
        content: dict[str, Any] = json.loads(text)
        return content


def boundary_view(source: StagePlan | Boundary) -> BoundaryView:
    """The view of a plan with its boundary, or of a boundary alone.

    Args:
      source: a plan shows what it moves; one that was read from JSON has no graph, so its compute
        side and the refusals are missing. A boundary shows what may move.
    """
    plan = source if isinstance(source, StagePlan) else None
    boundary = source if isinstance(source, Boundary) else source.boundary
    if boundary is None:
        assert plan is not None
        return _without_graph(plan)
    areas = areas_of(boundary, plan.stages if plan else ())
    view = boundary.view
    staged = view.mask(node for area in areas for node in area.nodes)
    taken = view.mask(n for s in boundary.sides if s.start.is_stage for n in s.start.nodes)
    compute = boundary.step & ~staged & ~taken
    read = [readers(view, area, behind(view, areas, i, compute)) for i, area in enumerate(areas)]
    last = [rows for i, rows in enumerate(read) if _is_last(areas, i)]
    edges = np.concatenate([*last, np.zeros((0, 4), np.int32)])
    near = view.mask(np.unique(edges[:, 2]))
    refusals = refusals_of(boundary, near)
    left = np.any([compute & side.legal for side in boundary.sides], axis=0)
    maker = BoxMaker(view, refusals, left, _limits(areas))
    why = [unread(area, rows) for area, rows in zip(areas, read, strict=True)]
    sides = [_staged_side(maker, area, none) for area, none in zip(areas, why, strict=True)]
    sides.append(_compute_side(maker, refusals, compute, left, near, edges))
    return BoundaryView(
        sentence=sentence_of(boundary, plan, areas, refusals),
        notice="",
        areas=tuple(sides),
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
    )


def _without_graph(plan: StagePlan) -> BoundaryView:
    areas, view = unfinished_areas(plan)
    nothing = np.full(len(view), -1, np.int32)
    refusals = Refusals((), (), nothing, nothing, (), nothing, nothing)
    nowhere = np.zeros(len(view), bool)
    maker = BoxMaker(view, refusals, nowhere, _limits(areas))
    return BoundaryView(
        sentence=sentence_of(None, plan, areas, refusals),
        notice="This plan was read from JSON and holds no graph: its compute side and the "
        "refusals are not shown.",
        areas=tuple(_staged_side(maker, area, {}) for area in areas),
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


def _limits(areas: Sequence[Area]) -> Limits:
    """Every area has one level open, the compute side two."""
    room = max(_FEWEST, _AT_ONCE // (len(areas) + 2))
    return Limits(first=min(_FIRST, room), most=min(_MOST, room), kept=_KEPT)


def _staged_side(maker: BoxMaker, area: Area, unread: Mapping[Tensor, str]) -> AreaView:
    count = format.integer(len(area.tensors))
    return AreaView(
        kind=area.kind,
        title=area.title,
        about=area.about,
        chain=area.chain,
        regions=(Region(title="", boxes=maker.staged(area, unread)),),
        tensors=count,
        travels=travel_words(area.tensors),
    )


def _compute_side(
    maker: BoxMaker, refusals: Refusals, compute: Bools, left: Bools, near: Bools, edges: Ints
) -> AreaView:
    count = format.integer(int(compute.sum()))
    concerned = compute & ~near & ((refusals.reason_of >= 0) | left)
    others = compute & ~near & ~concerned
    close = maker.computed(np.flatnonzero(near), edges)
    behind = maker.computed(np.flatnonzero(concerned))
    behind += maker.aside(np.flatnonzero(others), "Does not depend on the input")
    return AreaView(
        kind="compute",
        title="Compute side",
        about=f"the step, {count} nodes",
        chain=0,
        regions=(
            Region(
                title="Next to the boundary",
                boxes=close,
                empty="Nothing here reads what runs ahead.",
            ),
            Region(title="Further on", boxes=behind, empty="Nothing else is in the step."),
        ),
    )


def _edits(plan: StagePlan | None) -> tuple[tuple[str, str], ...]:
    return tuple((capital(edit.name), edit.reason) for edit in plan.edits) if plan else ()

"""The drawing of a boundary: boxes in flow order, what they read of each other, what may move."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.graph.flow_order import GroupOrder
from workbench.core.graph.graph_view import Bools, GraphView, Ints
from workbench.viz.boundary.basis import Basis, Shown
from workbench.viz.boundary.boxes import BoxMaker
from workbench.viz.boundary.drawing.flow_schema import FlowBox, FlowView, KnownCut, Link
from workbench.viz.boundary.drawing.known_cuts import CutTeller, line_cuts, predicted
from workbench.viz.boundary.drawing.leaves import Leaves, leaves_of
from workbench.viz.boundary.drawing.placing import (
    Placed,
    column_x,
    columns_of,
    line_x,
    placed,
    route,
)
from workbench.viz.boundary.drawing.tensors import tensor_words

# Columns of what may move, and of what stays behind those that read it.
_MOVABLE_COLUMNS, _FURTHER_COLUMNS = 9, 3
_LEAST_WIDTH, _MOST_WIDTH = 1.0, 7.0


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Places of boxes in the list of all, by where they stand.

    Attributes:
      ahead: boxes of the staged side, and those that may run ahead and are left.
      near: those that read what may travel. further: the others that depend on the input.
      aside: what does not depend on it.
    """

    ahead: tuple[int, ...]
    near: tuple[int, ...]
    further: tuple[int, ...]
    aside: tuple[int, ...]


def flow_of(
    basis: Basis, maker: BoxMaker, groups: Groups, shown: Shown, *, last: str
) -> tuple[FlowView, CutTeller]:
    """The drawing, and what tells of other cuts of it; boxes that are leaves learn so.

    Args:
      basis: what is drawn; without costs it has no times.
      maker: has made the boxes.
      groups: which of them are drawn.
      shown: the cut to draw at first.
      last: why the line goes no further.
    """
    view = basis.boundary.view
    drawn = (*groups.ahead, *groups.near, *groups.further, *groups.aside)
    place = _place(view, maker, groups)
    leaves = _leaves(basis.boundary, maker, groups, drawn)
    boxes = _flow_boxes(maker, groups, drawn, place)
    teller = CutTeller(basis.boundary, basis.costs, basis.options, leaves, boxes)
    cuts, at, smart = _cuts(teller, maker, drawn, shown)
    flow = FlowView(
        width=place.width,
        height=place.height,
        boxes=boxes,
        links=_links(view, maker, drawn, place, len(groups.aside)),
        leaves=leaves.views,
        makers=leaves.makers,
        cuts=cuts,
        shown=at,
        smart=smart,
        last=last,
        timed=basis.costs is not None,
        named=leaves.named,
        solid=shown.solid,
        stale=bool(basis.boundary.stale_lookups),
    )
    return flow, teller


def _leaves(boundary: Boundary, maker: BoxMaker, groups: Groups, drawn: Sequence[int]) -> Leaves:
    """The leaves of what may move; their boxes learn their numbers."""
    widest = np.any(
        [np.zeros(len(boundary.view), bool), *(s.widest for s in boundary.sides)], axis=0
    )
    leaf_boxes = _leaf_boxes(maker, groups.ahead, widest)
    fixed = np.zeros(len(boundary.view), bool)
    for box in groups.ahead:
        fixed[maker.nodes[box]] = True
    for side in boundary.sides:
        fixed[list(side.start.nodes)] |= side.start.is_stage
    staying = [maker.nodes[box] if i >= len(groups.ahead) else _NONE for i, box in enumerate(drawn)]
    leaves = leaves_of(
        boundary, [(box, maker.nodes[box]) for box in leaf_boxes], fixed & ~widest, staying
    )
    for number, box in enumerate(leaf_boxes):
        maker.boxes[box] = dataclasses.replace(maker.boxes[box], leaf=number)
    return leaves


_NONE = np.zeros(0, np.int64)


def _place(view: GraphView, maker: BoxMaker, groups: Groups) -> Placed:
    drawn = (*groups.ahead, *groups.near, *groups.further, *groups.aside)
    nodes = [maker.nodes[box] for box in drawn]
    ordered = GroupOrder(view).of(nodes).places
    pairs = sorted({(a, b) for a, b in _pairs(view, nodes)})
    ahead, near = len(groups.ahead), len(groups.ahead) + len(groups.near)
    movable = [box for box in ordered if box < ahead]
    inside = [pair for pair in pairs if max(pair) < ahead]
    columns = columns_of(movable, inside, [0] * len(drawn), _MOVABLE_COLUMNS - 1)
    first = max((columns[box] for box in movable), default=-1) + 1
    further = [box for box in ordered if box >= near]
    least = [*columns[:ahead], *[first] * (near - ahead), *[first + 1] * (len(drawn) - near)]
    aside = len(drawn) - len(groups.aside)
    behind = [pair for pair in pairs if min(pair) >= near and pair[0] < aside]
    columns = columns_of(further, behind, least, first + _FURTHER_COLUMNS)
    for box in range(aside, len(drawn)):
        columns[box] = first + 1 if further else first
    kept = [pair for pair in pairs if pair[0] < aside]
    return placed(ordered, kept, columns)


def _pairs(view: GraphView, nodes: Sequence[Ints]) -> list[tuple[int, int]]:
    """(source, target) of groups, by data edges."""
    group = np.full(len(view), -1, np.int64)
    for number, each in enumerate(nodes):
        group[each] = number
    found = group[view.data[:, [0, 2]]]
    found = found[(found >= 0).all(axis=1) & (found[:, 0] != found[:, 1])]
    return [(a, b) for a, b in np.unique(found, axis=0).tolist()]


def _leaf_boxes(maker: BoxMaker, ahead: Sequence[int], widest: Bools) -> list[int]:
    """The boxes that open no further, of what may move."""
    found, waiting = [], list(reversed(ahead))
    while waiting:
        box = waiting.pop()
        if maker.boxes[box].boxes:
            waiting += reversed(maker.boxes[box].boxes)
        elif widest[maker.nodes[box]].all():
            found.append(box)
    return found


def _flow_boxes(
    maker: BoxMaker, groups: Groups, drawn: Sequence[int], place: Placed
) -> tuple[FlowBox, ...]:
    boxes = []
    for number, box in enumerate(drawn):
        inside, waiting = [], [box] if number < len(groups.ahead) else []
        while waiting:
            one = maker.boxes[waiting.pop()]
            inside += [one.leaf] if one.leaf >= 0 else []
            waiting += one.boxes
        state = "stay" if number >= len(groups.ahead) else "move" if inside else "fixed"
        boxes.append(
            FlowBox(
                box=box,
                column=place.columns[number],
                x=column_x(place.columns[number]),
                y=place.tops[number],
                state=state,
                leaves=tuple(sorted(inside)),
            )
        )
    return tuple(boxes)


def _links(
    view: GraphView, maker: BoxMaker, drawn: Sequence[int], place: Placed, aside: int
) -> tuple[Link, ...]:
    """What boxes read of each other; of what does not depend on the input nothing is drawn."""
    group = np.full(len(view), -1, np.int64)
    for number, box in enumerate(drawn[: len(drawn) - aside]):
        group[maker.nodes[box]] = number
    data = view.data
    source, target = group[data[:, 0]], group[data[:, 2]]
    between = (source >= 0) & (target >= 0) & (source != target)
    tensors: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for a, b, row in zip(
        source[between].tolist(), target[between].tolist(), data[between].tolist(), strict=True
    ):
        tensors.setdefault((a, b), set()).add((row[0], row[1]))
    told = {pair: tensor_words(view, sorted(each)) for pair, each in sorted(tensors.items())}
    most = max((known for _, known in told.values()), default=0)
    return tuple(
        Link(source=a, target=b, words=words, width=_width(known, most), at=route(place, a, b))
        for (a, b), (words, known) in told.items()
    )


def _width(known: int, most: int) -> float:
    """Of a line in px, with the root of the bytes: an area would grow with their square."""
    if known <= 0 or most <= 0:
        return _LEAST_WIDTH
    return round(_LEAST_WIDTH + (_MOST_WIDTH - _LEAST_WIDTH) * math.sqrt(known / most), 1)


def _cuts(
    teller: CutTeller, maker: BoxMaker, drawn: Sequence[int], shown: Shown
) -> tuple[tuple[KnownCut, ...], int, int]:
    """All known cuts, and which of them is shown, and which is SmartStage's (-1: not known)."""
    unstaged_ms = teller.unstaged_ms() if teller.costs is not None else 0.0

    def label_of(places: Sequence[int]) -> str:
        first = maker.boxes[drawn[places[0]]].label
        return first if len(places) == 1 else f"{first} and {len(places) - 1} more"

    cuts = line_cuts(teller, line_x, label_of, unstaged_ms)

    def at(moved: Sequence[Bools], label: str) -> int:
        union = np.any([np.zeros(len(teller.boundary.view), bool), *moved], axis=0)
        leaves = teller.leaves.of(union)
        for number, cut in enumerate(cuts):
            if cut.leaves == leaves:
                return number
        cuts.append(teller.known(label, leaves, unstaged_ms))
        return len(cuts) - 1

    place = at(shown.moved, shown.label)
    if shown.prediction is not None:
        cuts[place] = predicted(cuts[place], shown.prediction, shown.unstaged_ms or unstaged_ms)
    smart = at(shown.smart, "SmartStage's cut")
    for number in {0, place} - {smart}:
        edits = teller.edits(cuts[number].leaves, cuts[smart].leaves)
        cuts[number] = dataclasses.replace(cuts[number], edits=edits)
    return tuple(cuts), place, smart

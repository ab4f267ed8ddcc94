"""What crosses the line of a cut, and where the line runs: for the still picture.

`static/boundary/cut.js` does the same where the line is moved; a test compares both.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable

from workbench.viz.boundary.drawing.flow_schema import (
    BOX_HEIGHT,
    BOX_WIDTH,
    COLUMN_GAP,
    ROW_GAP,
    FlowBox,
    FlowView,
)
from workbench.viz.boundary.drawing.placing import line_x

_PILL_GAP = 22
Point = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Crossing:
    """What travels: tensors, bytes of those whose size is known, how many others.

    Attributes:
      reads: for boxes behind the line, how many tensors they read out of the buffer.
      links: (source, target) boxes of the links that cross.
    """

    tensors: int
    bytes: int
    unknown: int
    reads: dict[int, int]
    links: frozenset[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class Pill:
    """How many tensors a box reads out of the buffer, and where that stands on the line."""

    box: int
    count: int
    x: int
    y: int


def share_ahead(box: FlowBox, ahead: frozenset[int]) -> float:
    """How much of a box runs ahead: 1 where all does, 0 where nothing does."""
    if box.state == "fixed":
        return 1.0
    return sum(leaf in ahead for leaf in box.leaves) / len(box.leaves) if box.leaves else 0.0


def crossing(flow: FlowView, ahead: frozenset[int]) -> Crossing:
    """What travels through the buffer when these leaves run ahead."""
    box_of = {leaf: place for place, box in enumerate(flow.boxes) for leaf in box.leaves}
    tensors = known = unknown = 0
    reads: dict[int, int] = {}
    links = set()
    for maker in flow.makers:
        behind = [[r for r in readers if r not in ahead] for readers, _ in maker.outputs]
        if maker.leaf not in ahead and not (maker.leaf < 0 and ahead):
            continue
        if not maker.always and not any(behind):
            continue
        for (_, size), readers in zip(maker.outputs, behind, strict=True):
            tensors += maker.count
            known += maker.count * max(size, 0)
            unknown += maker.count * (size < 0)
            for box in {-1 - reader if reader < 0 else box_of[reader] for reader in readers}:
                reads[box] = reads.get(box, 0) + maker.count
                if maker.leaf >= 0:
                    links.add((box_of[maker.leaf], box))
    return Crossing(tensors, known, unknown, reads, frozenset(links))


def line_points(flow: FlowView, ahead: frozenset[int]) -> list[Point]:
    """The line from top to bottom: straight where whole columns run ahead, else as far right as the
    boxes that stay let it, and past those that run ahead."""
    movable = [box for box in flow.boxes if box.leaves]
    rest = [box for box in movable if share_ahead(box, ahead) < 1]
    columns = [box.column for box in movable]
    free = min((box.column for box in rest), default=max(columns, default=-1) + 1)
    out = [box for box in movable if box.column >= free and share_ahead(box, ahead) == 1]
    left = line_x(free)
    far = max([left, *(line_x(box.column + 1) for box in out)])
    half = ROW_GAP // 2
    heights = {0, flow.height}
    for box in (*out, *rest):
        heights |= {box.y - half, box.y + BOX_HEIGHT + half}
    ordered = sorted(heights)
    points = []
    for top, end in itertools.pairwise(ordered):
        beside = [line_x(box.column + 1) for box in _within(out, top, end)]
        stays = [line_x(box.column) for box in _within(rest, top, end)]
        x = max([left, *(beside or [min([far, *stays])])])
        points += [(x, top), (x, end)]
    return points


def pills(flow: FlowView, ahead: frozenset[int], crossed: Crossing) -> list[Pill]:
    """A pill for each box that reads what travels: where the nearest link to it meets the line."""
    points = line_points(flow, ahead)
    placed = []
    for place, count in crossed.reads.items():
        box = flow.boxes[place]
        links = [
            link
            for link in flow.links
            if link.target == place and link.at and (link.source, place) in crossed.links
        ]
        y, least = box.y + BOX_HEIGHT // 2, 0
        if links:
            link = max(links, key=lambda link: flow.boxes[link.source].column)
            column = flow.boxes[link.source].column
            least = line_x(column + 1)
            x = _line_at(points, link.at[0])
            gap = round((x - line_x(0)) / (BOX_WIDTH + COLUMN_GAP)) - 1 - column
            y = link.at[max(0, min(len(link.at) - 2, gap)) + 1]
        x = min(max(least, _line_at(points, y)), box.x - COLUMN_GAP // 2)
        placed.append(Pill(place, count, x, y))
    placed.sort(key=lambda pill: (pill.x, pill.y, pill.box))
    for k in range(1, len(placed)):
        above = placed[k - 1]
        if above.x == placed[k].x:
            placed[k] = dataclasses.replace(placed[k], y=max(placed[k].y, above.y + _PILL_GAP))
    return placed


def _line_at(points: list[Point], y: int) -> int:
    return next((x for x, end in points[1::2] if y <= end), points[-1][0])


def _within(boxes: Iterable[FlowBox], top: int, end: int) -> list[FlowBox]:
    half = ROW_GAP // 2
    return [box for box in boxes if box.y - half <= top and box.y + BOX_HEIGHT + half >= end]

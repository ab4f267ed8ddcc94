"""Places of boxes in flow order, and the way of each link past the boxes between its ends.

Linear in boxes and links, and the same whatever runs ahead: nothing here knows the line.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence

from workbench.viz.boundary.drawing.flow_schema import (
    BOX_HEIGHT,
    BOX_WIDTH,
    COLUMN_GAP,
    MARGIN,
    ROW_GAP,
)

_PITCH = BOX_HEIGHT + ROW_GAP


@dataclasses.dataclass(frozen=True, eq=False)
class Placed:
    """Where boxes stand: column, and y of the top, of each; and the size of the whole."""

    columns: tuple[int, ...]
    tops: tuple[int, ...]
    width: int
    height: int


def column_x(column: int) -> int:
    """Left edge of a column's boxes."""
    return MARGIN + column * (BOX_WIDTH + COLUMN_GAP)


def line_x(column: int) -> int:
    """Where the line stands before a column: in the middle of the gap."""
    return column_x(column) - COLUMN_GAP // 2


def columns_of(
    order: Sequence[int], pairs: Sequence[tuple[int, int]], least: Sequence[int], most: int
) -> list[int]:
    """The column of each box: one after the last that it reads.

    Args:
      order: all boxes in flow order.
      pairs: (read, reader); a pair against the order does not count.
      least: the first column that each may stand in.
      most: the last one of all.
    """
    columns = list(least)
    reads = _by_target(pairs)
    rank = {box: place for place, box in enumerate(order)}
    for box in order:
        for source in reads.get(box, ()):
            if rank[source] < rank[box]:
                columns[box] = max(columns[box], columns[source] + 1)
        columns[box] = min(columns[box], most)
    return columns


def placed(
    order: Sequence[int], pairs: Sequence[tuple[int, int]], columns: Sequence[int]
) -> Placed:
    """Stacks the boxes of each column, each as near as can be to the middle of what it reads."""
    reads = _by_target(pairs)
    stacks: dict[int, list[int]] = collections.defaultdict(list)
    for box in order:
        stacks[columns[box]].append(box)
    tops = [0.0] * len(columns)
    for column in sorted(stacks):
        stack = stacks[column]
        wanted = {box: _middle(tops, reads, columns, box) for box in stack}
        known = [each for each in wanted.values() if each is not None]
        # what reads nothing that is drawn stands below what does
        below = max(known) + 1 if known else 0.0
        ideal = {box: below if (wish := wanted[box]) is None else wish for box in stack}
        stack.sort(key=lambda box: ideal[box])
        _stack(tops, stack, [ideal[box] for box in stack])
    highest = min(tops, default=0.0)
    whole = tuple(round(top - highest) + MARGIN for top in tops)
    return Placed(
        columns=tuple(columns),
        tops=whole,
        width=column_x(max(columns, default=0)) + BOX_WIDTH + MARGIN,
        height=max(whole, default=MARGIN) + BOX_HEIGHT + MARGIN,
    )


def route(place: Placed, source: int, target: int) -> tuple[int, ...]:
    """Heights of a link in each gap from its source's column to its target's.

    In a column between them it runs through the space between two boxes that is nearest. Empty
    where the target does not stand behind the source.
    """
    first, last = place.columns[source], place.columns[target]
    if last <= first:
        return ()
    height = place.tops[source] + BOX_HEIGHT // 2
    end = place.tops[target] + BOX_HEIGHT // 2
    at = [height]
    for column in range(first + 1, last):
        aim = height + (end - height) / (last - column + 1)
        height = min(_spaces(place, column), key=lambda space: abs(space - aim))
        at.append(height)
    return (*at, end)


def _spaces(place: Placed, column: int) -> list[int]:
    tops = sorted(t for t, c in zip(place.tops, place.columns, strict=True) if c == column)
    half = ROW_GAP // 2
    return [tops[0] - half, *(top + BOX_HEIGHT + half for top in tops)] if tops else [MARGIN]


def _stack(tops: list[float], stack: Sequence[int], ideal: Sequence[float]) -> None:
    """Places a column's boxes in their order without overlaps, on average where they want to be."""
    at, found = float("-inf"), []
    for wish in ideal:
        at = max(wish, at + _PITCH)
        found.append(at)
    shift = sum(w - f for w, f in zip(ideal, found, strict=True)) / len(stack)
    for box, top in zip(stack, found, strict=True):
        tops[box] = top + shift


def _middle(
    tops: Sequence[float],
    reads: dict[int, list[int]],
    columns: Sequence[int],
    box: int,
) -> float | None:
    before = [tops[each] for each in reads.get(box, ()) if columns[each] < columns[box]]
    return sum(before) / len(before) if before else None


def _by_target(pairs: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = collections.defaultdict(list)
    for source, target in pairs:
        found[target].append(source)
    return found

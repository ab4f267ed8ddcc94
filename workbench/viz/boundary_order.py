"""The order of boxes that stand beside each other: along the data, the first to run first."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.flow_order import flow_order
from workbench.core.graph import GraphView, Ints


@dataclasses.dataclass(frozen=True, eq=False)
class Ordered:
    """The places of some boxes.

    Attributes:
      places: in their order.
      feeds: for each of them, whether one of the others reads it.
    """

    places: tuple[int, ...]
    feeds: tuple[bool, ...]


class FlowOrder:
    """Orders boxes of one graph."""

    def __init__(self, view: GraphView) -> None:
        self._rank = np.empty(len(view), np.int64)
        self._rank[flow_order(view)] = np.arange(len(view))
        self._edges = np.concatenate([view.data[:, [0, 2]], view.control])
        self._box_of = np.full(len(view), -1, np.int64)

    def of(self, boxes: Sequence[Ints]) -> Ordered:
        """Orders boxes so that each comes after those that it reads.

        Args:
          boxes: the nodes of each; none is in two of them. Of boxes that read each other, the one
            whose first node runs first comes first.
        """
        reads = self._reads(boxes)
        first = [int(self._rank[nodes].min()) for nodes in boxes]
        left, places = set(range(len(boxes))), []
        while left:
            free = [box for box in left if not any(reads[box, other] for other in left)]
            nearest = min(free or left, key=lambda box: first[box])
            places.append(nearest)
            left.remove(nearest)
        return Ordered(tuple(places), tuple(bool(reads[:, place].any()) for place in places))

    def _reads(self, boxes: Sequence[Ints]) -> np.ndarray:
        """Bool [boxes, boxes]: whether the one reads the other."""
        for place, nodes in enumerate(boxes):
            self._box_of[nodes] = place
        source, target = self._box_of[self._edges].T
        for nodes in boxes:
            self._box_of[nodes] = -1
        between = (source >= 0) & (target >= 0) & (source != target)
        reads = np.zeros((len(boxes), len(boxes)), bool)
        reads[target[between], source[between]] = True
        return reads

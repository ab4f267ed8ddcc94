"""The order in which a graph's nodes, and groups of them, can run, loops included."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.graph import op_types
from workbench.core.graph.graph_view import GraphView, Ints


def flow_order(view: GraphView) -> Ints:
    """All nodes, each after those that it depends on.

    What leads back to the start of a loop does not count. Nodes in any other cycle, which no graph
    that runs has, come last, by number.
    """
    begin, nodes = view.consumers.lists
    back = [op in op_types.LOOPS_BACK for op in view.ops]
    left = np.diff(view.producers.begin)
    for node in np.flatnonzero(back).tolist():
        np.subtract.at(left, view.consumers.of(node), 1)
    waiting = left.tolist()
    order = np.flatnonzero(left == 0).tolist()
    for node in order:
        if back[node]:
            continue
        for consumer in nodes[begin[node] : begin[node + 1]]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                order.append(consumer)
    stuck = np.ones(len(view), bool)
    stuck[order] = False
    return np.concatenate([np.asarray(order, np.int64), np.flatnonzero(stuck)])


@dataclasses.dataclass(frozen=True, eq=False)
class Ordered:
    """The places of some groups.

    Attributes:
      places: in their order.
      feeds: for each of them, whether one of the others reads it.
    """

    places: tuple[int, ...]
    feeds: tuple[bool, ...]


class GroupOrder:
    """Orders groups of nodes of one graph along the data."""

    def __init__(self, view: GraphView) -> None:
        self._rank = np.empty(len(view), np.int64)
        self._rank[flow_order(view)] = np.arange(len(view))
        self._edges = np.concatenate([view.data[:, [0, 2]], view.control])
        self._group_of = np.full(len(view), -1, np.int64)

    def of(self, groups: Sequence[Ints]) -> Ordered:
        """Orders groups so that each comes after those that it reads.

        Args:
          groups: the nodes of each; none is in two of them. Of groups that read each other, the one
            whose first node runs first comes first.
        """
        reads = self._reads(groups)
        first = [int(self._rank[nodes].min()) for nodes in groups]
        left, places = set(range(len(groups))), []
        while left:
            free = [group for group in left if not any(reads[group, other] for other in left)]
            nearest = min(free or left, key=lambda group: first[group])
            places.append(nearest)
            left.remove(nearest)
        return Ordered(tuple(places), tuple(bool(reads[:, place].any()) for place in places))

    def _reads(self, groups: Sequence[Ints]) -> np.ndarray:
        """Bool [groups, groups]: whether the one reads the other."""
        for place, nodes in enumerate(groups):
            self._group_of[nodes] = place
        source, target = self._group_of[self._edges].T
        for nodes in groups:
            self._group_of[nodes] = -1
        between = (source >= 0) & (target >= 0) & (source != target)
        reads = np.zeros((len(groups), len(groups)), bool)
        reads[target[between], source[between]] = True
        return reads

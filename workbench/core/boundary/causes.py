"""Causes: how many nodes each of the blockers of a boundary holds back, alone or with others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.graph.flow_order import flow_order
from workbench.core.graph.graph_view import Ints


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class HeldBack:
    """Numbers of refused nodes, one for each set of blockers.

    Attributes:
      behind: those that depend on a blocker of the set, or are one.
      alone: those of them that depend on no other blocker, so that they may run ahead as soon as
        the whole set is freed.
    """

    behind: Ints
    alone: Ints


def held_back(boundary: Boundary, causes: Sequence[Sequence[int]]) -> HeldBack:
    """Counts what each set of blockers holds back.

    Args:
      boundary: what was found.
      causes: sets of node numbers of `boundary.blockers`, none in two sets. All other blockers
        count as one further set.
    """
    others = len(causes)
    bits = dict.fromkeys(boundary.blockers, 1 << others)
    bits |= {node: 1 << place for place, nodes in enumerate(causes) for node in nodes}
    held = _spread(boundary, bits)
    behind, alone = np.zeros(others, np.int64), np.zeros(others, np.int64)
    different: dict[int, int] = {}
    for node in np.flatnonzero(boundary.refused).tolist():
        different[held[node]] = different.get(held[node], 0) + 1
    for mask, count in different.items():
        for place in range(others):
            behind[place] += count * (mask >> place & 1)
        if mask & (mask - 1) == 0 and mask.bit_length() <= others:
            alone[mask.bit_length() - 1] += count
    return HeldBack(behind=behind, alone=alone)


def _spread(boundary: Boundary, bits: dict[int, int]) -> list[int]:
    """For each node the bits of all blockers that it depends on, loops included."""
    begin, nodes = boundary.held.consumers.lists
    held = [0] * len(boundary.view)
    for node, bit in bits.items():
        held[node] = bit
    order = flow_order(boundary.view).tolist()
    growing = True
    # Once for a graph without loops, and once more to see that.
    while growing:
        growing = False
        for node in order:
            own = held[node]
            for consumer in nodes[begin[node] : begin[node + 1]] if own else ():
                if own & ~held[consumer]:
                    held[consumer] |= own
                    growing = True
    return held

"""The order in which a graph's nodes can run, loops included."""

from __future__ import annotations

import numpy as np

from workbench.core import op_types
from workbench.core.graph import GraphView, Ints


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

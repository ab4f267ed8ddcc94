"""Longest paths: nodes with costs and the edges among them → the longest path, slack of each node.

Flat arrays in time and memory linear in nodes and edges; knows nothing of graphs but the numbers of
their nodes. The cost-model executor uses the same definition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from workbench.core.graph import op_types
from workbench.errors import OptionError, PlanError

# A hundred days; sums of them fit into int64.
_MOST_NS = 2**53


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LongestPaths:
    """The longest path through a graph, and how late each node may be.

    Attributes:
      to_sink_ns: int64 [nodes], a node's own cost and the longest path from it to an end.
      from_source_ns: int64 [nodes], the longest path from a start to a node, its own cost included.
      slack_ns: int64 [nodes], how much longer a node could take before the longest path does.
      path: numbers of the nodes of the longest path, from start to end; of several the one whose
        nodes have the lower numbers.
      length_ns: sum of their costs; 0 without nodes.
    """

    to_sink_ns: np.ndarray
    from_source_ns: np.ndarray
    slack_ns: np.ndarray
    path: tuple[int, ...]
    length_ns: int

    def __repr__(self) -> str:
        return f"LongestPaths({len(self.path)} of {len(self.slack_ns)} nodes, {self.length_ns} ns)"


def longest_paths(
    costs: Sequence[float] | np.ndarray,
    edges: Sequence[Sequence[int]] | np.ndarray,
    *,
    loops_back: np.ndarray | None = None,
) -> LongestPaths:
    """Finds the longest path of a graph whose nodes have costs.

    Args:
      costs: [nodes], ns of each node, at least 0; rounded to whole ns.
      edges: [edges, 2], source and destination node; the same one may be there twice.
      loops_back: bool [nodes], nodes whose edges out lead back to the start of a loop, see
        `loops_back_of`; these edges are left out, so that a loop takes what its nodes' costs say:
        one round, or all of them where a cost is that of all runs in a step.

    Raises:
      OptionError: a cost is negative or no number, or an edge names no node.
      PlanError: nodes hang together in a cycle that no node of `loops_back` closes.
    """
    cost_ns = _whole_ns(costs)
    source, target = _within(edges, len(cost_ns))
    if loops_back is not None:
        forward = ~np.asarray(loops_back, bool)[source]
        source, target = source[forward], target[forward]
    consumers = _neighbors(source, target, len(cost_ns))
    order = _ordered(consumers, np.bincount(target, minlength=len(cost_ns)))
    producers = _neighbors(target, source, len(cost_ns))
    to_sink = _longest(cost_ns.tolist(), reversed(order), consumers)
    from_source = _longest(cost_ns.tolist(), order, producers)
    length = max(to_sink, default=0)
    begins = [node for node, before in enumerate(producers) if not before]
    sink_ns, source_ns = np.array(to_sink, np.int64), np.array(from_source, np.int64)
    return LongestPaths(
        to_sink_ns=sink_ns,
        from_source_ns=source_ns,
        slack_ns=length - (source_ns + sink_ns - cost_ns),
        path=_path(begins, consumers, to_sink),
        length_ns=length,
    )


def loops_back_of(ops: Iterable[str]) -> np.ndarray:
    """bool [nodes]: which nodes of these op types lead back to the start of a v1 loop."""
    return np.array([op in op_types.LOOPS_BACK for op in ops], bool)


def _whole_ns(costs: Sequence[float] | np.ndarray) -> np.ndarray:
    given = np.asarray(costs)
    if given.ndim != 1 and given.size:
        raise OptionError(f"costs have shape {given.shape}; expected one number for each node")
    exact = given.reshape(-1)
    # Not "below 0": what is no number is no cost.
    wrong = np.flatnonzero(~((exact >= 0) & (exact < _MOST_NS)))
    if len(wrong):
        at = int(wrong[0])
        raise OptionError(
            f"the cost of node {at} is {exact[at]}; expected nanoseconds from 0 to 2**53"
        )
    return exact if exact.dtype == np.int64 else np.rint(exact).astype(np.int64)


def _within(
    edges: Sequence[Sequence[int]] | np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    given = np.asarray(edges, np.int64).reshape(-1, 2)
    wrong = np.flatnonzero(((given < 0) | (given >= count)).any(axis=1))
    if len(wrong):
        at = int(wrong[0])
        raise OptionError(
            f"edge {at} goes from {given[at, 0]} to {given[at, 1]}; expected nodes from 0 to "
            f"{count - 1}"
        )
    return given[:, 0], given[:, 1]


def _neighbors(of: np.ndarray, nodes: np.ndarray, count: int) -> list[list[int]]:
    """For each node, those that its edges lead to, in ascending order."""
    order = np.lexsort((nodes, of))
    begin = np.searchsorted(of[order], np.arange(count + 1)).tolist()
    sorted_nodes = nodes[order].tolist()
    return [sorted_nodes[begin[node] : begin[node + 1]] for node in range(count)]


def _ordered(consumers: list[list[int]], waiting_for: np.ndarray) -> list[int]:
    """All nodes so that each comes after those it depends on."""
    waiting = waiting_for.tolist()
    ready = [node for node, count in enumerate(waiting) if not count]
    for node in ready:
        for consumer in consumers[node]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                ready.append(consumer)
    if len(ready) < len(waiting):
        stuck = next(node for node, count in enumerate(waiting) if count)
        raise PlanError(
            f"node {stuck} is in a cycle, or behind one; expected a graph without, apart from "
            "edges out of nodes in `loops_back`"
        )
    return ready


def _longest(own: list[int], order: Iterable[int], behind: list[list[int]]) -> list[int]:
    """Each node's own cost and the longest path on, over neighbors that stand before it here."""
    length = own.copy()
    for node in order:
        if behind[node]:
            length[node] += max(length[each] for each in behind[node])
    return length


def _path(begins: list[int], consumers: list[list[int]], to_sink: list[int]) -> tuple[int, ...]:
    path: list[int] = []
    nodes = begins
    while nodes:
        # max takes the first of equals
        node = max(nodes, key=to_sink.__getitem__)
        path.append(node)
        nodes = consumers[node]
    return tuple(path)

"""List scheduling: nodes with costs → how a side runs alone, on given threads and cores."""

from __future__ import annotations

import heapq

import numpy as np

from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, GraphView
from workbench.core.prediction.pipeline import Work

# A side is summed up in this many pieces of equal length: enough to tell its narrow stretches,
# where another side finds a free core, from its wide ones.
_PIECES = 16


def schedule(
    view: GraphView,
    chosen: Bools,
    span_ns: np.ndarray,
    *,
    threads: int,
    cores: float,
    cores_per_op: float = 1.0,
) -> Work:
    """Runs the chosen nodes as soon as those that they depend on have ended, first come first.

    Args:
      view: the graph.
      chosen: nodes of the side.
      span_ns: float64 [nodes], time of each when it has a core; nodes of 0 take no thread.
      threads: nodes that run at one time.
      cores: what they share.
      cores_per_op: that a running node can use.

    Returns:
      The side's time, in pieces. A node inside a loop runs once, for as long as all its runs took.
    """
    waiting, through = _within(view, chosen)
    span = span_ns.tolist()
    begin, nodes = view.consumers.lists
    inside = chosen.tolist()
    ready = [node for node in np.flatnonzero(chosen).tolist() if not waiting[node]]
    running: list[tuple[float, int, int]] = []
    passed: list[int] = list(reversed(ready))
    queue: list[int] = []
    head, now, order = 0, 0.0, 0
    lengths: list[float] = []
    counts: list[int] = []
    while True:
        # what costs nothing passes at once
        while passed:
            node = passed.pop()
            if span[node] > 0:
                queue.append(node)
                continue
            passed.extend(_released(node, waiting, inside, begin, nodes, through))
        while head < len(queue) and len(running) < threads:
            node = queue[head]
            head += 1
            order += 1
            heapq.heappush(running, (now + span[node], order, node))
        if not running:
            break
        count = len(running)
        end, _, node = heapq.heappop(running)
        if end > now:
            lengths.append((end - now) * max(1.0, cores_per_op * count / cores))
            counts.append(count)
            now = end
        passed.extend(_released(node, waiting, inside, begin, nodes, through))
    return _summed_up(np.array(lengths), np.array(counts, float), cores, cores_per_op)


def puts_to_takes(view: GraphView) -> list[tuple[int, int]]:
    """From each put of a stage of the graph to the takes of the same one."""
    takes: dict[str, list[int]] = {}
    for node, op in enumerate(view.ops):
        if op == op_types.STAGE_TAKE:
            takes.setdefault(view.shared_names[node], []).append(node)
    return [
        (node, take)
        for node, op in enumerate(view.ops)
        if op == op_types.STAGE_PUT
        for take in takes.get(view.shared_names[node], ())
    ]


def _within(view: GraphView, chosen: Bools) -> tuple[list[int], dict[int, list[int]]]:
    """For each node how many it waits for; and the takes behind each put, as it is without them."""
    waiting = np.zeros(len(view), np.int64)
    back = np.array([op in op_types.LOOPS_BACK for op in view.ops], bool)
    for source, target in ((view.data[:, 0], view.data[:, 2]), view.control.T):
        counted = chosen[source] & chosen[target] & ~back[source]
        waiting += np.bincount(target[counted], minlength=len(view))
    through: dict[int, list[int]] = {}
    for put, take in puts_to_takes(view):
        if chosen[put] and chosen[take]:
            through.setdefault(put, []).append(take)
            waiting[take] += 1
    return waiting.tolist(), through


def _released(
    node: int,
    waiting: list[int],
    inside: list[bool],
    begin: list[int],
    nodes: list[int],
    through: dict[int, list[int]],
) -> list[int]:
    """The nodes that wait for nothing more once `node` has ended."""
    found = []
    for consumer in (*nodes[begin[node] : begin[node + 1]], *through.get(node, ())):
        if inside[consumer]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                found.append(consumer)
    return found


def _summed_up(lengths: np.ndarray, counts: np.ndarray, cores: float, cores_per_op: float) -> Work:
    """The same in a few pieces, each with the mean of what it holds."""
    if not len(lengths):
        return Work()
    ends = np.cumsum(lengths)
    edges = np.linspace(0.0, ends[-1], _PIECES + 1)
    used = np.minimum(cores, counts * cores_per_op)
    pieces = []
    by_end = [
        np.interp(edges, np.concatenate(([0.0], ends)), np.concatenate(([0.0], np.cumsum(of))))
        for of in (lengths * counts, lengths * used)
    ]
    ops, busy = (np.diff(each) for each in by_end)
    length = ends[-1] / _PIECES
    for of_ops, of_busy in zip(ops.tolist(), busy.tolist(), strict=True):
        pieces.append((length, of_ops / length, of_busy / length))
    return Work(pieces=tuple(pieces))

"""List scheduling: nodes with costs → how a side runs alone, on given threads and cores."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, GraphView
from workbench.core.graph.longest_paths import longest_paths, loops_back_of
from workbench.core.simulation.dispatch import NORMAL, Dispatch
from workbench.core.simulation.pipeline import Work
from workbench.core.simulation.ready_nodes import ByPath, KeepingShort, ReadyNodes
from workbench.core.simulation.running_nodes import Running, RunningNodes

# A side is summed up in this many pieces of equal length: enough to tell its narrow stretches,
# where another side finds a free core, from its wide ones.
_PIECES = 16
# Stands for the thread of an input, which is none of the inter-op pool.
_NO_THREAD = -1
# The thread that begins a side.
_CALLER = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scheduled:
    """How a side runs alone.

    Attributes:
      beside: what it computes until its inputs have delivered.
      behind: what is left then.
    """

    beside: Work
    behind: Work


def schedule(
    view: GraphView,
    chosen: Bools,
    span_ns: np.ndarray,
    *,
    threads: int,
    cores: float,
    cores_per_op: float = 1.0,
    lanes: np.ndarray | None = None,
    splits: Bools | None = None,
    split_cores: float = 1.0,
    dispatch: Dispatch = NORMAL,
    wake_ns: float = 0.0,
    inputs_ns: Mapping[int, float] | None = None,
) -> Scheduled:
    """Runs the chosen nodes once those that they depend on have ended, as an executor would.

    Args:
      view: the graph.
      chosen: nodes of the side.
      span_ns: float64 [nodes], time of each when it has a core; nodes of 0 take no thread.
      threads: nodes that run at one time.
      cores: what they share.
      cores_per_op: that an op keeps busy besides, which counts where other sides want cores: ops
        that ran side by side were traced so, and are as long as that made them.
      lanes: float64 [nodes], ops that run side by side while a node runs; None: one each.
      splits: bool [nodes], which split their work among cores: such a node takes its time when it
        has `split_cores` of them, and longer beside others. None: none does.
      split_cores: at least 1.
      dispatch: how the executor hands nodes to threads.
      wake_ns: until a thread that rests takes up a node.
      inputs_ns: by number of its node, the time until an input delivers. It has a thread of its
        own: nodes that do not need it run meanwhile.

    Returns:
      The side's time, in pieces. A node inside a loop runs once, for as long as all its runs took.
    """
    waiting, through = _within(view, chosen)
    awaited = {node: ns for node, ns in (inputs_ns or {}).items() if chosen[node] and ns > 0}
    span = span_ns.tolist()
    begin, nodes = view.consumers.lists
    inside = chosen.tolist()
    threads = 1 if dispatch.serial else threads
    ready = _ready_nodes(view, chosen, span_ns, threads, dispatch)

    def freed(released: list[int]) -> list[int]:
        """The nodes that can begin, in their order; what costs nothing passes at once."""
        able, passing = [], released[::-1]
        while passing:
            node = passing.pop()
            if node in awaited:
                running.add(Running(awaited[node], node, _NO_THREAD, 0.0))
            elif span[node] > 0:
                able.append(node)
            else:
                more = _released(node, waiting, inside, begin, nodes, through)
                passing.extend(reversed(more))
        return able

    running = RunningNodes(cores, split_cores)
    roots = [node for node in np.flatnonzero(chosen).tolist() if not waiting[node]]
    ready.add(None, freed(roots))
    wide = [1.0] * len(view) if lanes is None else lanes.tolist()
    split = [False] * len(view) if splits is None else splits.tolist()
    idle = list(range(threads))
    # The thread that is awake: a step begins on one.
    awake = _CALLER
    # So many stretches end before the last input has delivered.
    delivered = 0
    lengths: list[float] = []
    counts: list[float] = []
    busy: list[float] = []
    while True:
        resting = []
        for thread in idle:
            taken = ready.take(thread)
            if taken is None:
                resting.append(thread)
                continue
            is_awake = thread == awake or (dispatch.calls and thread == _CALLER)
            after_ns = 0.0 if is_awake else wake_ns
            running.add(Running(after_ns + span[taken], taken, thread, wide[taken], split[taken]))
        idle = resting
        if not running.nodes:
            break
        count, used = running.ops, running.busy
        lasts, ended = running.end_next()
        # How long a side only awaits its inputs is for the pipeline to say.
        if lasts > 0 and count:
            lengths.append(lasts * max(1.0, count / cores, cores_per_op / cores))
            counts.append(count)
            busy.append(min(cores, used * cores_per_op))
        released = freed(_released(ended.node, waiting, inside, begin, nodes, through))
        if ended.thread == _NO_THREAD:
            delivered = len(lengths)
            ready.add(None, released)
            continue
        ready.add(ended.thread, released)
        idle.insert(0, ended.thread)
        awake = ended.thread
    ops = [0.0] * len(counts) if dispatch.serial else counts
    stretches = np.array([lengths, ops, busy]).reshape(3, -1)
    return Scheduled(
        beside=_summed_up(*stretches[:, :delivered]), behind=_summed_up(*stretches[:, delivered:])
    )


def _within(view: GraphView, chosen: Bools) -> tuple[list[int], dict[int, list[int]]]:
    """For each node how many it waits for; and the takes behind each put, as it is without them."""
    waiting = np.zeros(len(view), np.int64)
    back = np.array([op in op_types.LOOPS_BACK for op in view.ops], bool)
    for source, target in ((view.data[:, 0], view.data[:, 2]), view.control.T):
        counted = chosen[source] & chosen[target] & ~back[source]
        waiting += np.bincount(target[counted], minlength=len(view))
    through: dict[int, list[int]] = {}
    for put, take in view.puts_to_takes:
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
    released = []
    behind = nodes[begin[node] : begin[node + 1]]
    if node in through:
        behind = [*behind, *through[node]]
    for consumer in behind:
        if inside[consumer]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                released.append(consumer)
    return released


def _ready_nodes(
    view: GraphView, chosen: Bools, span_ns: np.ndarray, threads: int, dispatch: Dispatch
) -> ReadyNodes:
    if dispatch.by_path:
        return ByPath(_longest_paths(view, chosen, span_ns), span_ns, threads, dispatch.short_ns)
    return KeepingShort(span_ns, threads, dispatch.short_ns)


def _longest_paths(view: GraphView, chosen: Bools, span_ns: np.ndarray) -> list[float]:
    """For each chosen node the time of the longest path that begins with it."""
    edges = np.concatenate([view.data[:, [0, 2]], view.control])
    found = longest_paths(
        np.where(chosen, span_ns, 0.0),
        edges[chosen[edges[:, 0]] & chosen[edges[:, 1]]],
        loops_back=loops_back_of(view.ops),
    )
    lengths: list[float] = found.to_sink_ns.tolist()
    return lengths


def _summed_up(lengths: np.ndarray, ops: np.ndarray, busy: np.ndarray) -> Work:
    """The same in a few pieces, each with the mean of what it holds.

    Args:
      lengths: of each stretch, in ns.
      ops: how many run in it on the inter-op pool.
      busy: cores that it uses.
    """
    if not len(lengths):
        return Work()
    ends = np.cumsum(lengths)
    edges = np.linspace(0.0, ends[-1], _PIECES + 1)
    by_end = [
        np.interp(edges, np.concatenate(([0.0], ends)), np.concatenate(([0.0], np.cumsum(of))))
        for of in (lengths * ops, lengths * busy)
    ]
    length = ends[-1] / _PIECES
    of_ops, of_cores = (np.diff(each) / length for each in by_end)
    pieces = zip(of_ops.tolist(), of_cores.tolist(), strict=True)
    return Work(pieces=tuple((length, pooled, used) for pooled, used in pieces))

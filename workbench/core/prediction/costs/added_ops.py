"""Ops that TensorFlow's optimizer added to a step → which nodes of the user's graph they stand for.

The optimizer rewrites what it finds together, such as a lookup into a read of the whole table. The
nodes that it adds run only where the nodes that it rewrote are together, too: not where a stage
parts them, nor where a fused op does their work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pandas as pd

from workbench.core.graph.graph_view import GraphView


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddedOp:
    """An op that a traced step ran and the user's graph lacks.

    Attributes:
      name: its name in the trace.
      host: node of the graph with which it counts: the one that feeds it, or its reader.
      reader: node of the graph that reads its result.
      lost: nodes that the reader reads in the user's graph, and no longer in the traced one.
      ns: its time in a step.
    """

    name: str
    host: int
    reader: int
    lost: tuple[int, ...]
    ns: float

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that must run on one side for it to be there."""
        return (self.host, self.reader, *self.lost)

    def moved(self, place: np.ndarray) -> AddedOp | None:
        """The same in another graph; None where that lacks a node that it needs.

        Args:
          place: int64 [nodes], number of each node there, or -1.
        """
        if any(place[node] < 0 for node in self.nodes):
            return None
        host, reader, *lost = (int(place[node]) for node in self.nodes)
        return dataclasses.replace(self, host=host, reader=reader, lost=tuple(lost))

    def longer(self, by: float) -> AddedOp:
        """The same op, `by` times as long."""
        return dataclasses.replace(self, ns=self.ns * by)


def added_ops(
    view: GraphView, names: Sequence[str], edges: pd.DataFrame, node: np.ndarray, ns: np.ndarray
) -> tuple[tuple[AddedOp, ...], np.ndarray]:
    """The ops of a trace that the graph lacks, with their places in it.

    Args:
      view: the graph.
      names: of the trace's nodes, by row.
      edges: of the trace, as of `Trace.edges`; without them no place is known.
      node: int64 [rows], for each row of the trace's nodes the one of the graph, or -1.
      ns: float64 [rows], time of each row in a step.

    Returns:
      The ops; and bool [rows], of which rows they are. An op without a reader in the graph is
      none of them.
    """
    placed = np.zeros(len(node), bool)
    rows = np.flatnonzero((node < 0) & (ns > 0)).tolist()
    if not rows or not len(edges):
        return (), placed
    data = edges[~edges["control"].astype(bool)]
    feeds, reads = _neighbors(data["source"], data["target"], len(node))
    index = node.tolist()
    added = []
    for row in rows:
        readers = _nearest(row, feeds, index)
        if not readers:
            continue
        reader = min(readers)
        read = {index[each] for each in reads[_row_of(reader, row, feeds, index)]}
        lost = [each for each, _ in view.inputs(reader) if each not in read]
        sources = _nearest(row, reads, index)
        host = min(sources) if len(sources) == 1 else reader
        parts = _computed(view, lost)
        added.append(
            AddedOp(name=names[row], host=host, reader=reader, lost=parts, ns=float(ns[row]))
        )
        placed[row] = True
    return tuple(added), placed


def _neighbors(
    source: pd.Series, target: pd.Series, count: int
) -> tuple[list[list[int]], list[list[int]]]:
    """For each row the rows that it feeds, and those that it reads."""
    feeds: list[list[int]] = [[] for _ in range(count)]
    reads: list[list[int]] = [[] for _ in range(count)]
    for a, b in zip(source.tolist(), target.tolist(), strict=True):
        feeds[a].append(b)
        reads[b].append(a)
    return feeds, reads


def _nearest(row: int, beside: Sequence[Sequence[int]], index: Sequence[int]) -> set[int]:
    """The nodes of the graph next to a row, with nothing but added ops between."""
    return {index[each] for each in _nearest_rows(row, beside, index)}


def _nearest_rows(row: int, beside: Sequence[Sequence[int]], index: Sequence[int]) -> set[int]:
    seen, nearest, left = {row}, set(), [row]
    while left:
        for other in beside[left.pop()]:
            if other in seen:
                continue
            seen.add(other)
            if index[other] >= 0:
                nearest.add(other)
            else:
                left.append(other)
    return nearest


def _row_of(reader: int, row: int, feeds: Sequence[Sequence[int]], index: Sequence[int]) -> int:
    return next(each for each in _nearest_rows(row, feeds, index) if index[each] == reader)


def _computed(view: GraphView, nodes: Sequence[int]) -> tuple[int, ...]:
    """Those that compute something: a constant may be folded on any side."""
    return tuple(dict.fromkeys(node for node in nodes if view.inputs(node)))

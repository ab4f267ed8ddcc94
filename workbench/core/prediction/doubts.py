"""A trace whose replay does not hold → the ops whose times do not fit, and why."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from workbench.core.graph.graph_view import GraphView
from workbench.core.graph.op_types import INPUTS
from workbench.core.trace.trace import Trace

# What is less than this share of a step explains no replay.
_LEAST = 0.02
# An op that takes this much longer on average than in most steps takes time that is not its own.
_UNEVEN = 1.25
_MOST_NAMED = 5

RUNS_ON = "ran on after what reads it had begun"
UNEVEN = "took much longer in some steps than in others"
NO_PLACE = "has no place in the program's graph"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Doubt:
    """An op whose traced time may not be its own.

    Attributes:
      node, op: its name and type.
      ns: time of a step that is in doubt.
      why: a clause without its subject.
    """

    node: str
    op: str
    ns: float
    why: str


def doubts_of(trace: Trace, view: GraphView, added: Collection[str]) -> tuple[Doubt, ...]:
    """The ops of the main steps whose times do not fit, those with most time first; a few at most.

    Args:
      trace: of steps.
      view: the graph that was run, as the user built it.
      added: names of ops that it lacks, but of which the places in it are known.
    """
    steps = trace.steps()
    if not len(steps):
        return ()
    step_ns = float((steps["end_ns"] - steps["start_ns"]).median())
    runs = _single_runs(trace)
    names, ops = (trace.nodes[column].astype(str).tolist() for column in ("name", "op"))
    reasons = (_runs_on(trace, runs), _uneven(runs), _no_place(names, ops, runs, view))
    found: dict[int, Doubt] = {}
    for row, ns, why in itertools.chain(*reasons):
        if ns >= _LEAST * step_ns and not (why == NO_PLACE and names[row] in added):
            found.setdefault(row, Doubt(node=names[row], op=ops[row], ns=ns, why=why))
    return tuple(sorted(found.values(), key=lambda each: -each.ns)[:_MOST_NAMED])


def named_ops(doubts: Sequence[Doubt]) -> str:
    """The ops in words, each with its time and why it is in doubt."""
    return "; ".join(f"{d.node} ({d.op}), {d.ns / 1e6:.2g} ms a step, {d.why}" for d in doubts)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class _SingleRuns:
    """Nodes that ran once in each main step: rows of the trace's nodes, and their times.

    Attributes:
      start_ns, end_ns: float64 [steps, rows]; NaN of other nodes.
    """

    start_ns: np.ndarray
    end_ns: np.ndarray


def _single_runs(trace: Trace) -> _SingleRuns:
    main = np.flatnonzero(trace.tracks["kind"] == "inter_op")
    events = trace.events[trace.events["track"].isin(main)]
    numbers = trace.steps()["number"].tolist()
    place = {number: at for at, number in enumerate(numbers)}
    events = events[events["step"].isin(numbers)]
    step = events["step"].map(place).to_numpy(np.int64)
    node = events["node"].to_numpy(np.int64)
    shape = (len(numbers), len(trace.nodes))
    counts = np.zeros(shape, np.int64)
    np.add.at(counts, (step, node), 1)
    origin = int(trace.steps()["start_ns"].min())
    start_ns, end_ns = np.full(shape, np.nan), np.full(shape, np.nan)
    begin = events["start_ns"].to_numpy(np.int64) - origin
    start_ns[step, node] = begin
    end_ns[step, node] = begin + events["dur_ns"].to_numpy(np.int64)
    several = (counts > 1).any(axis=0)
    start_ns[:, several] = end_ns[:, several] = np.nan
    return _SingleRuns(start_ns=start_ns, end_ns=end_ns)


def _runs_on(trace: Trace, runs: _SingleRuns) -> Iterator[tuple[int, float, str]]:
    """Ops that had not ended when an op began that needs their results."""
    edges = trace.edges[["source", "target"]].to_numpy(np.int64).reshape(-1, 2)
    if not len(edges):
        return
    late = runs.end_ns[:, edges[:, 0]] - runs.start_ns[:, edges[:, 1]]
    known = ~np.isnan(late).all(axis=0)
    excess = np.nanmean(np.maximum(late[:, known], 0.0), axis=0)
    for source, ns in zip(edges[known, 0].tolist(), excess.tolist(), strict=True):
        if ns > 0:
            yield source, ns, RUNS_ON


def _uneven(runs: _SingleRuns) -> Iterator[tuple[int, float, str]]:
    lasted = runs.end_ns - runs.start_ns
    for row in np.flatnonzero(~np.isnan(lasted).any(axis=0)).tolist():
        mean, median = float(lasted[:, row].mean()), float(np.median(lasted[:, row]))
        if mean > _UNEVEN * median:
            yield row, mean - median, UNEVEN


def _no_place(
    names: list[str], ops: list[str], runs: _SingleRuns, view: GraphView
) -> Iterator[tuple[int, float, str]]:
    lasted = runs.end_ns - runs.start_ns
    for row in np.flatnonzero(~np.isnan(lasted).all(axis=0)).tolist():
        fetched = bool(view.arguments) and ops[row] in INPUTS
        if names[row] not in view.index and not fetched and not _is_called(names[row], view):
            yield row, float(np.nanmean(lasted[:, row])), NO_PLACE


def _is_called(name: str, view: GraphView) -> bool:
    """Whether it is an op of a function that a node of the graph calls."""
    while "/" in name:
        name = name.rpartition("/")[0]
        if view.index.get(name) in view.functions:
            return True
    return False

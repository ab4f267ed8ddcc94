"""The critical path as the timeline shows it: a lane of its chain, and which events are on it."""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.analysis.critical_path import critical_path
from workbench.core.analysis.path.walk import OP, SEGMENT_KINDS
from workbench.core.cluster.client import event_rows
from workbench.core.graph.op_families import FAMILY_NAMES
from workbench.core.trace.trace import Trace
from workbench.viz.style import colors

# The path of more takes longer than a timeline may take to open.
MAX_PATH_EVENTS = 800_000
# A shorter wait counts as what is before it: there is one between almost any two ops.
_SHOWN_WAIT_NS = 10_000
# Names of the spans of the lane: op families, then what is waited for.
PATH_NAMES = (
    *((name, family) for family, name in enumerate(FAMILY_NAMES)),
    *((kind, colors.WAIT) for kind in SEGMENT_KINDS if kind != SEGMENT_KINDS[OP]),
)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class PathLane:
    """The chain, neighbors of one family or wait joined; times int64 ns of the trace's clock.

    Attributes:
      client: the worker whose steps it is of; "" in a trace of one task.
      start, end: of each stretch; they join. A wait that hardly counts is part of the one before.
      name: of each, a row of PATH_NAMES.
      step: number of the step that ended next.
      on_path: for each event of the trace whether it is an op of the chain.
    """

    client: str
    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    step: np.ndarray
    on_path: np.ndarray


def path_lane(trace: Trace, families: np.ndarray) -> PathLane | None:
    """The critical path of a trace; None where it has none, or too many events to look for it.

    Args:
      trace: what is shown. families: of its nodes.
    """
    if not (len(trace.edges) and len(trace.steps())) or len(trace.events) > MAX_PATH_EVENTS:
        return None
    path = critical_path(trace)
    segments = path.segments
    names = {name: row for row, (name, _) in enumerate(PATH_NAMES)}
    name = segments["kind"].map(names).fillna(0).to_numpy(np.int64, copy=True)
    ops = (segments["kind"] == SEGMENT_KINDS[OP]).to_numpy(bool)
    name[ops] = families[segments["node"].to_numpy()[ops]]
    start = segments["start_ns"].to_numpy(np.int64)
    _join_short_waits(name, ops | (segments["dur_ns"].to_numpy(np.int64) >= _SHOWN_WAIT_NS))
    first = np.flatnonzero(np.diff(name, prepend=-1))
    steps = path.trace.steps().sort_values("end_ns", kind="stable")
    ends = steps["end_ns"].to_numpy(np.int64)
    begun = np.searchsorted(ends, start[first], side="right")
    on_path = np.zeros(len(trace.events), bool)
    rows = event_rows(trace, path.client)
    on_path[rows[segments["event"].to_numpy(np.int64)[ops]]] = True
    return PathLane(
        client=path.client,
        start=start[first],
        end=np.append(start[first[1:]], path.end_ns),
        name=name[first],
        step=steps["number"].to_numpy(np.int64)[np.minimum(begun, len(ends) - 1)],
        on_path=on_path,
    )


def _join_short_waits(name: np.ndarray, kept: np.ndarray) -> None:
    """Gives what is not kept the name of the last before it that is."""
    last = np.maximum.accumulate(np.where(kept, np.arange(len(name)), 0))
    name[:] = name[last]

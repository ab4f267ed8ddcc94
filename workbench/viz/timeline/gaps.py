"""Gaps of the timeline: how busy a stretch is, and a name for each empty one.

All times are int64 nanoseconds on one clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.core.analysis.around_ops import around_ops
from workbench.core.trace.intervals import Intervals, covered, union
from workbench.core.trace.meta import OTHER_TOOLS
from workbench.viz.timeline.data import TimelineData

# names of an empty stretch of an inter-op lane, by code; 0 means that there is none
GAP_NAMES = (
    "",
    "no ready node",
    "wait in take",
    "dispatch",
    "core contention",
    "between steps",
    "call of the step",
    "return of the step",
    "no op",
)
NO_GAP, NO_READY_NODE, WAIT_IN_TAKE, DISPATCH, CONTENTION, BETWEEN_STEPS, CALL, RETURN = range(8)
# Of a trace that does not know when its ops were ready.
NO_OP = 8


def busy_time(start: np.ndarray, end: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Summed time that the spans have spent before each moment, int64 ns.

    Spans may overlap: each counts by itself, so (busy_time(b) - busy_time(a)) / (b - a) is the
    mean number of spans open between a and b.
    """
    # Stable: these are the sorted rows of a few lanes, which timsort merges.
    start, end = np.sort(start, kind="stable"), np.sort(end, kind="stable")
    return _time_since(start, at) - _time_since(end, at)


def _time_since(moments: np.ndarray, at: np.ndarray) -> np.ndarray:
    sums = np.concatenate(([0], np.cumsum(moments, dtype=np.int64)))
    passed = np.searchsorted(moments, at, side="right")
    return passed * at.astype(np.int64) - sums[passed]


def gap_kinds(
    lane: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    delay: np.ndarray,
    *,
    waits: Intervals,
    calls: Intervals,
    returns: Intervals,
    runs: Intervals,
    cores: int | None,
) -> np.ndarray:
    """Names the empty stretch before each span of the inter-op lanes.

    Rules, the first that holds for at least half of the stretch:
      1. the step waited in take: "wait in take";
      2. outside of the ops of all steps, whichever is longest of: a step had ended its last op but
         not yet returned (its fetched values are copied, Python and the session's hooks go on):
         "return of the step"; none was running: "between steps"; a step had been called, but its
         first op had not begun: "call of the step";
      3. the op that ends the stretch was ready: "core contention" if meanwhile as many ops were
         open as the machine has cores, else "dispatch";
      4. otherwise nothing was ready for this thread: "no ready node".

    Args:
      lane, start, end, delay: columns of the spans, sorted by lane, then start; `delay` is how
        long the op had been ready before it started.
      waits: union of the waits in take.
      calls, returns: unions of the stretches of rule 2. runs: union of the runs of main steps.
      cores: cores of the machine; None if the trace does not say.

    Returns:
      Codes into GAP_NAMES, uint8; NO_GAP before the first span of a lane.
    """
    kinds = np.zeros(len(start), np.uint8)
    at = np.flatnonzero((lane[1:] == lane[:-1]) & (start[1:] > end[:-1])) + 1
    if not len(at):
        return kinds
    low, high = end[at - 1], start[at]
    width = high - low
    found = _around(low, high, (waits, calls, returns, runs))
    open_ = found == NO_GAP
    ready = open_ & (2 * np.minimum(delay[at].astype(np.int64), width) >= width)
    found[open_] = NO_READY_NODE
    found[ready] = DISPATCH
    # The lane of a gap runs nothing: with no more lanes than cores, one core at least is free.
    if cores is not None and np.count_nonzero(np.diff(lane)) >= cores and ready.any():
        rows = np.flatnonzero(ready)
        open_ns = np.diff(busy_time(start, end, np.stack((low[rows], high[rows]))), axis=0)[0]
        found[rows[open_ns >= cores * width[rows]]] = CONTENTION
    kinds[at] = found
    return kinds


def _around(low: np.ndarray, high: np.ndarray, unions: Sequence[Intervals]) -> np.ndarray:
    """`_named_around`, worked out once for all stretches between the same two edges of the unions.

    Gaps are many and edges few: only where an edge lies inside of one is it worked out by itself.
    """
    edges = [low.min(keepdims=True), high.max(keepdims=True)]
    bounds = np.unique(np.concatenate([*edges, *(edge for each in unions for edge in each)]))
    place = np.searchsorted(bounds, low, side="right")
    found = _named_around(bounds[:-1], bounds[1:], unions)[place - 1]
    inside = np.flatnonzero(bounds[place] < high)
    found[inside] = _named_around(low[inside], high[inside], unions)
    return found


def _named_around(low: np.ndarray, high: np.ndarray, unions: Sequence[Intervals]) -> np.ndarray:
    """Rules 1 and 2 of `gap_kinds`; NO_GAP where neither holds."""
    waited, called, returned, ran = (covered(low, high, union) for union in unions)
    width = high - low
    outside = np.stack([width - ran, returned, called])
    return np.select(
        [2 * waited >= width, 2 * outside.sum(axis=0) >= width],
        [np.uint8(WAIT_IN_TAKE), np.array([BETWEEN_STEPS, RETURN, CALL])[outside.argmax(axis=0)]],
        NO_GAP,
    ).astype(np.uint8)


def gaps_of(
    data: TimelineData, lane: np.ndarray, start: np.ndarray, end: np.ndarray, delay: np.ndarray
) -> np.ndarray:
    """Names the gaps of a trace's inter-op lanes: see `gap_kinds`."""
    cores = data.trace.meta.cores
    calls, returns = around_ops(data.trace)
    kinds = gap_kinds(
        lane,
        start,
        end,
        delay,
        waits=data.wait_union,
        calls=calls,
        returns=returns,
        runs=union(
            data.runs["start_ns"].to_numpy(np.int64), data.runs["end_ns"].to_numpy(np.int64)
        ),
        cores=cores if isinstance(cores, int) else None,
    )
    if data.trace.meta.source in OTHER_TOOLS:
        kinds[kinds == NO_READY_NODE] = NO_OP
    return kinds

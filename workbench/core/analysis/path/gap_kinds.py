"""One name for each gap between two spans of a lane, where lane_time names each moment.

A lane is what is drawn in one row: a thread whose ops nest has several, and each has its gaps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.core.analysis.step_phases import StepPhases
from workbench.core.trace.intervals import Intervals, busy_time, covered
from workbench.core.trace.meta import OTHER_TOOLS, TraceMeta

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


def gap_kinds(
    lane: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    delay: np.ndarray,
    *,
    phases: StepPhases,
    meta: TraceMeta,
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
      4. otherwise nothing was ready for this thread: "no ready node"; "no op" in a trace that does
         not know when ops were ready.

    Args:
      lane, start, end, delay: columns of the spans, sorted by lane, then start; `delay` is how
        long the op had been ready before it started.
      phases: what the steps did when.
      meta: of the trace: its cores, None if it does not say, and which tool made it.

    Returns:
      Codes into GAP_NAMES, uint8; NO_GAP before the first span of a lane.
    """
    kinds = np.zeros(len(start), np.uint8)
    at = np.flatnonzero((lane[1:] == lane[:-1]) & (start[1:] > end[:-1])) + 1
    if not len(at):
        return kinds
    low, high = end[at - 1], start[at]
    width = high - low
    gap_kind = _around(low, high, (phases.waits, phases.calls, phases.returns, phases.runs))
    unnamed = gap_kind == NO_GAP
    ready = unnamed & (2 * np.minimum(delay[at].astype(np.int64), width) >= width)
    gap_kind[unnamed] = NO_OP if meta.source in OTHER_TOOLS else NO_READY_NODE
    gap_kind[ready] = DISPATCH
    # The lane of a gap runs nothing: with no more lanes than cores, one core at least is free.
    cores = meta.cores
    if cores is not None and np.count_nonzero(np.diff(lane)) >= cores and ready.any():
        rows = np.flatnonzero(ready)
        open_ns = np.diff(busy_time(start, end, np.stack((low[rows], high[rows]))), axis=0)[0]
        gap_kind[rows[open_ns >= cores * width[rows]]] = CONTENTION
    kinds[at] = gap_kind
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

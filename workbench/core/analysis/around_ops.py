"""When steps run without an op: before their first one and after their last."""

from __future__ import annotations

import numpy as np

from workbench.core.trace.intervals import Intervals, subtract, union
from workbench.core.trace.trace import Trace


def around_ops(trace: Trace) -> tuple[Intervals, Intervals]:
    """When steps run, but none is between its first op or take and its last.

    Returns:
      Calls, before the first, and returns, after the last; of a moment that is both, returns.
    """
    runs = trace.steps().drop_duplicates("number").sort_values("number")
    begun, ended = (runs[f"{edge}_ns"].to_numpy(np.int64) for edge in ("start", "end"))
    first, last = ended.copy(), begun.copy()
    for number, start, end in (_ops(trace), _takes(trace)):
        row, known = _rows_of(runs["number"].to_numpy(np.int64), number)
        np.minimum.at(first, row, start[known])
        np.maximum.at(last, row, end[known])
    busy = union(first, last)
    returns = subtract(union(last, ended), busy)
    calls = subtract(union(begun, first), busy)
    return subtract(calls, returns), returns


def _ops(trace: Trace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Step, start and end of the ops of main steps."""
    events = trace.events
    main = (trace.tracks["kind"] == "inter_op").to_numpy(bool)[events["track"].to_numpy()]
    number, start, length = (
        events[name].to_numpy()[main].astype(np.int64) for name in ("step", "start_ns", "dur_ns")
    )
    return number, start, start + length


def _takes(trace: Trace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Step, start and end of the takes of which the trace saw both ends."""
    items = trace.items
    taken = items[(items["take_start_ns"] >= 0) & (items["take_end_ns"] >= 0)]
    number, start, end = (
        taken[name].to_numpy(np.int64) for name in ("take_step", "take_start_ns", "take_end_ns")
    )
    return number, start, end


def _rows_of(numbers: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each number stands among the ascending `numbers`, for those that do; and which do."""
    if not len(numbers):
        return np.zeros(0, np.int64), np.zeros(len(wanted), bool)
    row = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    known = numbers[row] == wanted
    return row[known], known

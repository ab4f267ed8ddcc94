"""What main steps do when: wait for an item, run without an op, or run at all."""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.trace.intervals import Intervals, subtract, union
from workbench.core.trace.items import WAIT_MIN_NS
from workbench.core.trace.trace import Trace


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class StepPhases:
    """Unions of stretches, int64 ns.

    Attributes:
      waits: while a step waits in take.
      calls, returns: while steps run, but none is between its first op or take and its last; before
        the first, and after the last. A moment that is both is of the returns.
      runs: while a step runs.
    """

    waits: Intervals
    calls: Intervals
    returns: Intervals
    runs: Intervals


def step_phases(trace: Trace) -> StepPhases:
    """Reads them off a trace."""
    steps = trace.steps()
    single = steps.drop_duplicates("number").sort_values("number")
    begun, ended = (single[f"{edge}_ns"].to_numpy(np.int64) for edge in ("start", "end"))
    first, last = ended.copy(), begun.copy()
    for number, start, end in (_ops(trace), _takes(trace)):
        row, known = _rows_of(single["number"].to_numpy(np.int64), number)
        np.minimum.at(first, row, start[known])
        np.maximum.at(last, row, end[known])
    busy = union(first, last)
    returns = subtract(union(last, ended), busy)
    calls = subtract(union(begun, first), busy)
    return StepPhases(
        waits=waits_in(trace, "take"),
        calls=subtract(calls, returns),
        returns=returns,
        runs=union(steps["start_ns"].to_numpy(np.int64), steps["end_ns"].to_numpy(np.int64)),
    )


def waits_in(trace: Trace, call: str, track: int | None = None) -> Intervals:
    """While a put or take waits; of one track, or of all."""
    items = trace.items
    start = items[f"{call}_start_ns"].to_numpy(np.int64)
    end = items[f"{call}_end_ns"].to_numpy(np.int64)
    waited = (start >= 0) & (end - start >= WAIT_MIN_NS)
    if track is not None:
        waited &= (items[f"{call}_track"] == track).to_numpy(bool)
    return union(start[waited], end[waited])


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

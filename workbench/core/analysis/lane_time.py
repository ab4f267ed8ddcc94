"""Where the time of each lane goes: ops, and a name for every moment without one.

A lane's ops and its named gaps sum to the time of the trace exactly.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.analysis.step_phases import step_phases, waits_in
from workbench.core.trace.intervals import Intervals, gaps, intersection, subtract, union
from workbench.core.trace.trace import Trace

# Names of a moment without an op; the first that holds counts.
GAP_NAMES = (
    "wait in take",
    "wait in put",
    "return of the step",
    "call of the step",
    "between steps",
    "between stage runs",
    "core contention",
    "dispatch",
    "no ready node",
)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class LaneTime:
    """One lane of a trace. Times are int64 ns.

    Attributes:
      track: its row in the trace's tracks.
      busy: union of its ops.
      gaps: by name, the union of the moments that it lacks an op for this reason.
    """

    track: int
    busy: Intervals
    gaps: dict[str, Intervals]


def lane_times(trace: Trace) -> list[LaneTime]:
    """The lanes of a trace that run ops: the threads of main steps, then the prefetch threads.

    A moment without an op is, by the first of these rules that holds:
      1. "wait in take": of a thread of main steps, while a step waits for an item;
      2. "wait in put": of a prefetch thread, while it waits for room in the buffer;
      3. "return of the step": after the last op of all steps under way, before they return;
      4. "call of the step": before the first op of all steps under way;
      5. "between steps", or "between stage runs": no step runs, or this thread runs no stage;
      6. the op that ends the gap was ready: "core contention" while at least as many ops are open
         as the machine has cores, else "dispatch";
      7. "no ready node".
    """
    kind = trace.tracks["kind"].to_numpy(object)
    shared = _Shared(trace)
    tracks = [*np.flatnonzero(kind == "inter_op"), *np.flatnonzero(kind == "prefetch")]
    return [shared.lane(int(track), kind[track] == "prefetch") for track in tracks]


def lane_table(trace: Trace) -> pd.DataFrame:
    """One row for each lane: lane, busy_ns, a column for each of GAP_NAMES, wall_ns.

    busy_ns and the gaps sum to wall_ns, the time from the trace's first moment to its last. Of a
    cluster the lanes have their task behind their name; those of workers without runs are left out.
    """
    tracks = trace.tracks
    ran = set(tracks["client"].to_numpy(object)[trace.runs["track"].to_numpy(np.int64)])
    names = [
        ", ".join(filter(None, each)) for each in zip(tracks["name"], tracks["task"], strict=True)
    ]
    rows = [
        {
            "lane": names[lane.track],
            "busy_ns": _length(lane.busy),
            **{name: _length(lane.gaps[name]) for name in GAP_NAMES},
        }
        for lane in lane_times(trace)
        if not ran or tracks["client"].iloc[lane.track] in ran
    ]
    table = pd.DataFrame(rows, columns=["lane", "busy_ns", *GAP_NAMES])
    table["wall_ns"] = table.drop(columns="lane").sum(axis=1).astype(np.int64)
    return table


def _length(of: Intervals) -> int:
    return int((of[1] - of[0]).sum())


class _Shared:
    """What the gaps of all lanes are named by."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        events, runs = trace.events, trace.runs
        self._start = events["start_ns"].to_numpy(np.int64)
        self._end = self._start + events["dur_ns"].to_numpy(np.int64)
        self._ready = self._start - events["delay_ns"].to_numpy(np.int64)
        self._track = events["track"].to_numpy(np.int64)
        begun = np.concatenate((self._start, runs["start_ns"].to_numpy(np.int64)))
        ended = np.concatenate((self._end, runs["end_ns"].to_numpy(np.int64)))
        self._low, self._high = int(begun.min(initial=2**62)), int(ended.max(initial=0))
        self._low = min(self._low, self._high)
        self._phases = step_phases(trace)
        self._crowded = self._crowds()

    def lane(self, track: int, is_prefetch: bool) -> LaneTime:
        own = self._track == track
        start, end = self._start[own], self._end[own]
        busy = union(start, end)
        left = gaps(start, end, self._low, self._high)
        ready = union(np.minimum(self._ready[own], start), start)
        reasons: list[tuple[str, Intervals]]
        if is_prefetch:
            of_track = self._trace.runs[self._trace.runs["track"] == track]
            runs = union(
                of_track["start_ns"].to_numpy(np.int64), of_track["end_ns"].to_numpy(np.int64)
            )
            reasons = [
                ("wait in put", waits_in(self._trace, "put", track)),
                ("between stage runs", self._outside(runs)),
            ]
        else:
            reasons = [
                ("wait in take", self._phases.waits),
                ("return of the step", self._phases.returns),
                ("call of the step", self._phases.calls),
                ("between steps", self._outside(self._phases.runs)),
            ]
        reasons += [
            ("core contention", intersection(ready, self._crowded)),
            ("dispatch", ready),
        ]
        nothing = union(np.zeros(0, np.int64), np.zeros(0, np.int64))
        found = dict.fromkeys(GAP_NAMES, nothing)
        for name, when in reasons:
            found[name] = intersection(left, when)
            left = subtract(left, when)
        found["no ready node"] = left
        return LaneTime(track=track, busy=busy, gaps=found)

    def _outside(self, runs: Intervals) -> Intervals:
        return gaps(*runs, self._low, self._high)

    def _crowds(self) -> Intervals:
        """While at least as many ops are open as the machine has cores."""
        nothing = np.zeros(0, np.int64)
        cores = self._trace.meta.cores
        if not cores or not len(self._start):
            return nothing, nothing
        moments = np.concatenate((self._start, self._end))
        change = np.repeat([1, -1], len(self._start))
        order = np.lexsort((change, moments))
        moments, open_ops = moments[order], np.cumsum(change[order])
        crowded = np.flatnonzero(open_ops[:-1] >= cores)
        return union(moments[crowded], moments[crowded + 1])

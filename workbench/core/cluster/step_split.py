"""Where the time of a worker's step goes: compute, stage, queue, parameter servers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.core.trace.intervals import Intervals, covered, subtract, union
from workbench.core.trace.items import WAIT_MIN_NS
from workbench.core.trace.trace import Trace

# The parts of a step, in the order of the rules of `step_split`.
PARTS = ("stage_ns", "compute_ns", "token_ns", "queue_ns", "ps_ns", "other_ns")
# A synchronous worker waits in them for the others.
_TOKENS = frozenset({"QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2"})


def step_split(trace: Trace) -> pd.DataFrame:
    """The time of each step, split; the parts sum to it exactly.

    A moment of a step is, by the first of these rules that holds:
      1. stage_ns: the step waits in take for an item of its stage;
      2. compute_ns: an op of the worker runs;
      3. token_ns: the step waits in a queue of another task, such as one for the token of a
         synchronous step;
      4. queue_ns: an op of the step is ready on some task, and waits for a thread;
      5. ps_ns: another task runs an op for the step, or a tensor of the step travels;
      6. other_ns: none of these: the call, the return, messages that start a step on its tasks.

    Args:
      trace: of one worker, or of several, merged.

    Returns:
      One row for each step by its start: client, number, start_ns, dur_ns, and PARTS.
    """
    clients = trace.tracks["client"].to_numpy(object)
    parts = []
    for track in np.flatnonzero((trace.tracks["kind"] == "step").to_numpy(bool)).tolist():
        runs = trace.runs[trace.runs["track"] == track]
        start, end = (runs[f"{edge}_ns"].to_numpy(np.int64) for edge in ("start", "end"))
        table = pd.DataFrame(
            {
                "client": clients[track],
                "number": runs["number"].to_numpy(np.int64),
                "start_ns": start,
                "dur_ns": end - start,
            }
        )
        for name, times in part_times(trace, track).items():
            table[name] = covered(start, end, times)
        table["other_ns"] = table["dur_ns"] - table[list(PARTS[:-1])].sum(axis=1)
        parts.append(table)
    columns = ["client", "number", "start_ns", "dur_ns", *PARTS]
    joined = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return joined.sort_values(["start_ns", "client"], kind="stable", ignore_index=True)


def part_times(trace: Trace, step_track: int) -> dict[str, Intervals]:
    """When each part of the steps of a track is, but for the last: unions that lie apart."""
    client = str(trace.tracks["client"].iloc[step_track])
    none = np.zeros(0, np.int64)
    before: Intervals = (none, none)
    found = {}
    for name, times in _times(trace, client, step_track).items():
        found[name] = subtract(times, before)
        before = _both(before, times)
    return found


def _times(trace: Trace, client: str, step_track: int) -> dict[str, Intervals]:
    """For each part the time that its rule holds, whatever the rules before say."""
    tracks, events, items = trace.tracks, trace.events, trace.items
    main = (tracks["client"] == client) & (tracks["kind"] == "inter_op")
    own = (main & (tracks["task"] == client)).to_numpy(bool)
    track = events["track"].to_numpy(np.int64)
    start = events["start_ns"].to_numpy(np.int64)
    end = start + events["dur_ns"].to_numpy(np.int64)
    ready = start - events["delay_ns"].to_numpy(np.int64)
    here, there = own[track], (main.to_numpy(bool) & ~own)[track]
    op = trace.nodes["op"].to_numpy(object)[events["node"].to_numpy(np.int64)]
    token = there & np.isin(op, list(_TOKENS))
    took = items[(items["take_track"] == step_track) & (items["take_start_ns"] >= 0)]
    asked, taken = (took[f"take_{edge}_ns"].to_numpy(np.int64) for edge in ("start", "end"))
    waited = taken - asked >= WAIT_MIN_NS
    sent = trace.transfers[trace.transfers["track"] == step_track]
    left = sent["sent_ns"].where(sent["sent_ns"] >= 0, sent["start_ns"]).to_numpy(np.int64)
    there &= ~token
    return {
        "stage_ns": union(asked[waited], taken[waited]),
        "compute_ns": union(start[here], end[here]),
        "token_ns": union(start[token], end[token]),
        "queue_ns": union(ready[here | there], start[here | there]),
        "ps_ns": _both(
            union(start[there], end[there]), union(left, sent["end_ns"].to_numpy(np.int64))
        ),
    }


def _both(one: Intervals, other: Intervals) -> Intervals:
    return union(*(np.concatenate(pair) for pair in zip(one, other, strict=True)))

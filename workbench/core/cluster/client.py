"""The part of a cluster's trace that is of one client: its steps, and what tasks did for them."""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.trace.trace import Trace


def clients(trace: Trace) -> list[str]:
    """The tasks whose steps a trace has, by name; "" alone in a trace of one task."""
    return sorted(set(trace.tracks["client"])) or [""]


def slowest_client(trace: Trace) -> str:
    """The task whose steps take longest, in the median; "" in a trace of one task.

    Args:
      trace: with at least one step.
    """
    steps = trace.steps()
    client = trace.tracks["client"].to_numpy(object)[steps["track"].to_numpy(np.int64)]
    median = (steps["end_ns"] - steps["start_ns"]).groupby(client).median()
    return str(median.idxmax())


def event_rows(trace: Trace, client: str) -> np.ndarray:
    """Rows of the events that `of_client` keeps, int64."""
    own = (trace.tracks["client"] == client).to_numpy(bool)
    return np.flatnonzero(own[trace.events["track"].to_numpy(np.int64)])


def of_client(trace: Trace, client: str) -> Trace:
    """The same trace with the runs, ops, items and transfers of one client alone."""
    its_tracks = (trace.tracks["client"] == client).to_numpy(bool)
    if its_tracks.all():
        return trace
    items = trace.items
    put, took = (items[name].to_numpy(np.int64) for name in ("put_track", "take_track"))
    of_item = np.maximum(put, took)
    return dataclasses.replace(
        trace,
        events=trace.events.iloc[event_rows(trace, client)],
        runs=trace.runs[its_tracks[trace.runs["track"].to_numpy(np.int64)]],
        items=items[(of_item >= 0) & its_tracks[np.maximum(of_item, 0)]],
        transfers=trace.transfers[its_tracks[trace.transfers["track"].to_numpy(np.int64)]],
    )

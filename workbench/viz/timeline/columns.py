"""Columns of the timeline: what the view's binary blob holds, each in its narrowest type."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.core.trace.trace import Trace
from workbench.viz.style import colors
from workbench.viz.timeline import lanes
from workbench.viz.timeline.spans import Lane, Spans, occupancy, take_waits, taken

STRIP_BINS = 2048


def columns_of(
    trace: Trace,
    spans: Spans,
    made: tuple[Lane, ...],
    nodes: pd.DataFrame,
    steps: pd.DataFrame,
    extent: tuple[int, int],
) -> dict[str, np.ndarray]:
    """Everything the browser needs beside the header; times in ns from the start of the trace.

    Args:
      trace: the trace that is shown. spans, made: its spans and lanes.
      nodes: name, op and family of every name a span may have.
      steps: per step, as StepMetrics counts them.
      extent: first and last moment that is drawn.

    Returns:
      idle, dur, delay, name, step, gap per span; name* per name; step* per step; occ* per change
      of a buffer; flow* per taken item; strip* per bin of the whole-trace strip; texts as bytes.
      A column `critical`, one flag per span, joins them once there is a critical path.
    """
    origin, _ = extent
    # starts travel as the stretch since the span before in the lane: small numbers, and exact
    idle = spans.start.copy()
    idle[1:] -= spans.end[:-1]
    firsts = [lane.first for lane in made if lane.kind != "buffer" and lane.count]
    idle[firsts] = spans.start[firsts] - origin
    occupied = list(occupancy(trace).values())
    moments = np.concatenate([when for _, when, _ in occupied] or [np.zeros(0, np.int64)])
    counts = np.concatenate([n for _, _, n in occupied] or [np.zeros(0, np.int64)])
    columns = {
        "idle": idle,
        "dur": spans.end - spans.start,
        "delay": spans.delay,
        "name": spans.name,
        "step": spans.step,
        "gap": spans.gap,
        "nameFamily": nodes["family"].to_numpy(),
        "stepNumber": steps["number"].to_numpy(),
        "stepStart": steps["start_ns"].to_numpy() - origin,
        "stepEnd": (steps["start_ns"] + steps["dur_ns"]).to_numpy() - origin,
        "stepOps": steps["ops"].to_numpy(),
        "occTime": moments - origin,
        "occCount": counts,
        **_flows(trace, made, origin),
        **_strip(trace, nodes["family"].to_numpy(), extent),
    }
    narrowed = {name: _narrow(values) for name, values in columns.items()}
    # names are bytes, not JSON: they pack with the rest, and nothing in them can be markup
    op_types, op_of = np.unique(nodes["op"].to_numpy(str), return_inverse=True)
    narrowed["nameOp"] = _narrow(op_of)
    narrowed["nameText"] = _text(nodes["name"].tolist())
    narrowed["opText"] = _text(op_types.tolist())
    return narrowed


def _flows(trace: Trace, made: tuple[Lane, ...], origin: int) -> dict[str, np.ndarray]:
    """An arrow per taken item, from the end of its put to the end of its take."""
    first_lane: dict[int, int] = {}
    for k, lane in enumerate(made):
        first_lane.setdefault(lane.track, k)
    step_lane = next((k for k, lane in enumerate(made) if lane.kind == "step"), -1)
    items = taken(trace.items)
    items = items[(items["put_end_ns"] >= 0) & items["put_track"].isin(list(first_lane))]
    items = items.sort_values("take_end_ns", kind="stable")
    to = [first_lane.get(track, step_lane) for track in items["take_track"].tolist()]
    return {
        "flowPut": items["put_end_ns"].to_numpy(np.int64) - origin,
        "flowTake": items["take_end_ns"].to_numpy(np.int64) - origin,
        "flowFrom": np.array([first_lane[t] for t in items["put_track"].tolist()], np.int64),
        "flowTo": np.array(to, np.int64),
        "flowRun": items["put_run"].to_numpy(np.int64),
        "flowStep": items["take_step"].to_numpy(np.int64),
    }


def _strip(trace: Trace, families: np.ndarray, extent: tuple[int, int]) -> dict[str, np.ndarray]:
    """The whole trace in bins: busy share of each family over the inter-op threads, 0 to 255."""
    origin, finish = extent
    edges = origin + np.arange(STRIP_BINS + 1) * (finish - origin) // STRIP_BINS
    width = np.maximum(1, np.diff(edges))
    kinds = (trace.tracks["kind"] == "inter_op").to_numpy(bool)
    kept = kinds[trace.events["track"].to_numpy()]
    events = trace.events[kept]
    start = events["start_ns"].to_numpy(np.int64)
    end = start + events["dur_ns"].to_numpy(np.int64)
    family = families[events["node"].to_numpy()]
    threads = max(1, int(events["track"].nunique()))
    shares = []
    for f in range(len(colors.FAMILIES)):
        busy = np.diff(lanes.busy_time(start[family == f], end[family == f], edges))
        shares.append(busy / width / threads)
    wait = np.diff(lanes.busy_time(*take_waits(trace), edges)) / width
    return {
        "stripBusy": _byte(np.stack(shares, axis=1).ravel()),
        "stripWait": _byte(wait),
    }


def _byte(share: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(share, 0, 1) * 255).astype(np.uint8)


def _narrow(values: np.ndarray) -> np.ndarray:
    """The narrowest type that the browser has an array for; float64 holds integers to 2^53."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for kind in (np.uint8, np.uint16, np.uint32, np.int32):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return values.astype(kind)
    return values.astype(np.float64)


def _text(words: list[str]) -> np.ndarray:
    raw = "\0".join(word.replace("\0", " ") for word in words).encode()
    return np.frombuffer(raw, np.uint8)

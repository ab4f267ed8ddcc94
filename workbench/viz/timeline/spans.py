"""Spans of the timeline: the rows of a Trace in lanes, with waits and runs between them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from workbench.core.analysis.path.gap_kinds import gap_kinds
from workbench.core.trace.intervals import sub_rows
from workbench.core.trace.trace import Trace
from workbench.viz.timeline.data import (
    PUT,
    RUN_STEP,
    WAIT_IN_PUT,
    WAIT_IN_TAKE,
    WAIT_MIN_NS,
    TimelineData,
)
from workbench.viz.timeline.lanes import Lane, lanes_of, receive_tracks
from workbench.viz.timeline.path import PathLane


@dataclasses.dataclass(frozen=True)
class Spans:
    """Columns of equal length, sorted by lane, then start; times in int64 ns of the trace's clock.

    `name` counts through the trace's nodes, then SPECIAL; `row` is the row of the trace's events,
    -1 for what is no event; `gap` codes the stretch before the span (gaps.GAP_NAMES).
    """

    start: np.ndarray
    end: np.ndarray
    delay: np.ndarray
    name: np.ndarray
    step: np.ndarray
    row: np.ndarray
    gap: np.ndarray


def _columns(
    start: ArrayLike,
    end: ArrayLike,
    *,
    delay: ArrayLike = 0,
    name: ArrayLike = 0,
    step: ArrayLike = 0,
    row: ArrayLike = -1,
    track: ArrayLike = 0,
) -> dict[str, np.ndarray]:
    start = np.asarray(start, np.int64)
    parts = {"end": end, "delay": delay, "name": name, "step": step, "row": row, "track": track}
    whole = {key: np.asarray(values, np.int64) for key, values in parts.items()}
    return {"start": start, **{k: np.broadcast_to(v, start.shape) for k, v in whole.items()}}


def _event_columns(trace: Trace) -> dict[str, np.ndarray]:
    events = trace.events
    start = events["start_ns"].to_numpy(np.int64)
    return _columns(
        start,
        start + events["dur_ns"].to_numpy(np.int64),
        delay=events["delay_ns"],
        name=events["node"],
        step=events["step"],
        row=np.arange(len(start)),
        track=events["track"],
    )


def _put_columns(data: TimelineData) -> dict[str, np.ndarray]:
    """The puts. One that waited long before the capture is drawn from the capture's start on,
    where everything else begins; it would stretch the time axis."""
    items = data.trace.items
    items = items[(items["put_start_ns"] >= 0) & (items["put_end_ns"] >= 0)]
    items = items[items["put_track"] >= 0]
    end = items["put_end_ns"].to_numpy(np.int64)
    begin = np.maximum(items["put_start_ns"].to_numpy(np.int64), _begin(data.trace))
    start = np.minimum(end, begin)
    name = np.where(end - start >= WAIT_MIN_NS, WAIT_IN_PUT, PUT) + data.special
    return _columns(start, end, name=name, step=items["put_run"], track=items["put_track"])


def _begin(trace: Trace) -> int:
    """Start of the first run or op of the trace."""
    starts = [t["start_ns"].min() for t in (trace.runs, trace.events) if len(t)]
    return int(min(starts)) if starts else 0


def _run_columns(data: TimelineData) -> dict[str, np.ndarray]:
    """Each run of a step, cut where it waited in take."""
    base = data.special
    waits: dict[tuple[int, int], list[tuple[int, int]]] = {}
    names = ["take_track", "take_step", "take_start_ns", "take_end_ns"]
    for track, step, begin, end in data.waits[names].to_numpy(np.int64).tolist():
        waits.setdefault((track, step), []).append((begin, end))
    pieces: list[tuple[int, int, int, int, int]] = []
    for track, number, begin, end in (
        data.runs[["track", "number", "start_ns", "end_ns"]].to_numpy(np.int64).tolist()
    ):
        at = begin
        for low, high in waits.get((track, number), ()):
            low, high = max(low, at), min(high, end)
            if high <= low:
                continue
            if low > at:
                pieces.append((at, low, RUN_STEP + base, number, track))
            pieces.append((low, high, WAIT_IN_TAKE + base, number, track))
            at = high
        if end > at or not waits.get((track, number)):
            pieces.append((at, end, RUN_STEP + base, number, track))
    table = np.array(pieces, np.int64).reshape(-1, 5).T
    return _columns(table[0], table[1], name=table[2], step=table[3], track=table[4])


def _path_columns(data: TimelineData, path: PathLane) -> dict[str, np.ndarray]:
    """The stretches of the critical path, on a track behind those of the trace."""
    name = path.name + data.path_names
    return _columns(path.start, path.end, name=name, step=path.step, track=len(data.trace.tracks))


def _receive_columns(data: TimelineData) -> dict[str, np.ndarray]:
    """What tasks received, on tracks behind those of the trace and of the critical path."""
    stretches, tracks = data.received.stretches, receive_tracks(data)
    pairs = zip(stretches["receiver"], stretches["client"], strict=True)
    return _columns(
        stretches["start_ns"].to_numpy(np.int64),
        stretches["end_ns"],
        name=stretches["name"].to_numpy(np.int64) + data.receive_names,
        step=stretches["step"],
        track=[tracks[pair] for pair in pairs],
    )


def spans_of(data: TimelineData) -> tuple[Spans, tuple[Lane, ...]]:
    """Sorts what is drawn as a span into lanes."""
    columns = _all_columns(data)
    track = columns.pop("track")
    tracks = len(data.trace.tracks) + (data.path is not None) + len(receive_tracks(data))
    by_track = _order(columns["start"], track, tracks)
    start, end = (columns[name][by_track] for name in ("start", "end"))
    bounds = np.cumsum(np.bincount(track, minlength=tracks)).tolist()
    row_of = np.zeros(len(track), np.uint16)
    sizes = []
    for a, b in itertools.pairwise([0, *bounds]):
        row_of[a:b] = sub_rows(start[a:b], end[a:b])
        sizes.append(np.bincount(row_of[a:b]).tolist())
    lanes, first_lane = lanes_of(data, sizes)
    lane_of = first_lane[track[by_track]] + row_of
    order = _order(start, lane_of, len(lanes))
    rows = by_track[order]
    columns = {key: values[rows] for key, values in columns.items()}
    gap = _gap_column(data, columns, lane_of[order], lanes)
    return Spans(**columns, gap=gap), tuple(lanes)


def _gap_column(
    data: TimelineData, columns: dict[str, np.ndarray], lane: np.ndarray, lanes: Sequence[Lane]
) -> np.ndarray:
    """Names of the gaps, only in the inter-op lanes, by what the steps do that they work for."""
    gap = np.zeros(len(lane), np.uint8)
    # The inter-op lanes of a task and client stand together, so a slice is enough.
    for key, own in itertools.groupby(lanes, lambda each: (each.kind, each.group, each.client)):
        kind, _, client = key
        if kind != "inter_op":
            continue
        lane_list = list(own)
        part = slice(lane_list[0].first, lane_list[-1].first + lane_list[-1].count)
        gap[part] = gap_kinds(
            lane[part],
            *(columns[name][part] for name in ("start", "end", "delay")),
            phases=data.phases[client],
            meta=data.trace.meta,
        )
    return gap


def _all_columns(data: TimelineData) -> dict[str, np.ndarray]:
    """Everything that is drawn as a span, in any order."""
    parts = [_event_columns(data.trace), _put_columns(data), _run_columns(data)]
    if data.path is not None:
        parts.append(_path_columns(data, data.path))
    if len(data.received.stretches):
        parts.append(_receive_columns(data))
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _order(start: np.ndarray, of: np.ndarray, count: int) -> np.ndarray:
    """Rows by what they are of, a number below `count`, then by start."""
    # numpy sorts narrow integers by radix, several times faster.
    return np.lexsort((start, of.astype(np.min_scalar_type(count))))

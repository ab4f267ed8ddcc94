"""Spans of the timeline: the rows of a Trace in lanes, with waits and runs between them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from workbench.core.trace.intervals import Intervals, sub_rows, subtract, union
from workbench.core.trace.trace import Trace
from workbench.viz.style import colors
from workbench.viz.style.short_names import told_apart
from workbench.viz.timeline import lanes

# a put or take under this had nothing to wait for: it is an op, not a wait
WAIT_MIN_NS = 20_000
# spans that are no node of the graph: their names follow those of the nodes
SPECIAL = (
    ("wait in take", colors.WAIT),
    ("wait in put", colors.WAIT),
    ("put", colors.COPY),
    ("run step", colors.RUN),
)
WAIT_IN_TAKE, WAIT_IN_PUT, PUT, RUN_STEP = range(4)
# "critical" is the lane of the critical path; a trace without one has no such lane
LANE_ORDER = ("step", "critical", "prefetch", "buffer", "inter_op")
# letters that fit under the label of a buffer
_DETAIL_LETTERS = 10


@dataclasses.dataclass(frozen=True)
class Lane:
    """One lane: what it shows, its label, and which rows of the columns are its own.

    Attributes:
      kind: one of LANE_ORDER.
      label: name at the left; empty for further sub-rows of a track.
      title: name in full, as the hover card and the table say it.
      group: lanes of one group stand together.
      track: row of the trace's tracks, -1 for a buffer.
      first, count: the spans [first, first + count), or rows of the occupancy columns.
      capacity, held: most items a buffer holds, and how many it held at first; 0 for other lanes.
      detail: a second line below the label: the stage of a buffer, where there are several.
    """

    kind: str
    label: str
    title: str
    group: int
    track: int
    first: int
    count: int
    capacity: int = 0
    held: int = 0
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Spans:
    """Columns of equal length, sorted by lane, then start; times in int64 ns of the trace's clock.

    `name` counts through the trace's nodes, then SPECIAL; `row` is the row of the trace's events,
    -1 for what is no event; `gap` codes the stretch before the span (lanes.GAP_NAMES).
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


def _put_columns(trace: Trace, base: int) -> dict[str, np.ndarray]:
    """The puts. One that waited long before the capture is drawn from the capture's start on,
    where everything else begins; it would stretch the time axis."""
    items = trace.items
    items = items[(items["put_start_ns"] >= 0) & (items["put_end_ns"] >= 0)]
    items = items[items["put_track"] >= 0]
    end = items["put_end_ns"].to_numpy(np.int64)
    start = np.minimum(end, np.maximum(items["put_start_ns"].to_numpy(np.int64), _begin(trace)))
    name = np.where(end - start >= WAIT_MIN_NS, WAIT_IN_PUT, PUT) + base
    return _columns(start, end, name=name, step=items["put_run"], track=items["put_track"])


def _begin(trace: Trace) -> int:
    """Start of the first run or op of the trace."""
    starts = [t["start_ns"].min() for t in (trace.runs, trace.events) if len(t)]
    return int(min(starts)) if starts else 0


def taken(items: pd.DataFrame) -> pd.DataFrame:
    """The items that were put and taken within the trace."""
    return items[(items["take_start_ns"] >= 0) & (items["take_end_ns"] >= 0)]


def take_waits(trace: Trace) -> Intervals:
    """Union of the stretches in which a step waited in take, int64 ns."""
    items = taken(trace.items)
    start = items["take_start_ns"].to_numpy(np.int64)
    end = items["take_end_ns"].to_numpy(np.int64)
    long = end - start >= WAIT_MIN_NS
    return union(start[long], end[long])


def _run_columns(trace: Trace, base: int) -> dict[str, np.ndarray]:
    """Each run of a step, cut where it waited in take."""
    runs = trace.steps()
    waits: dict[int, list[tuple[int, int]]] = {}
    items = taken(trace.items)
    items = items[items["take_end_ns"] - items["take_start_ns"] >= WAIT_MIN_NS]
    rows = items[["take_step", "take_start_ns", "take_end_ns"]].to_numpy(np.int64)
    for step, begin, end in sorted(rows.tolist(), key=lambda r: r[1]):
        waits.setdefault(step, []).append((begin, end))
    pieces: list[tuple[int, int, int, int, int]] = []
    for track, number, begin, end in (
        runs[["track", "number", "start_ns", "end_ns"]].to_numpy(np.int64).tolist()
    ):
        at = begin
        for low, high in waits.get(number, ()):
            low, high = max(low, at), min(high, end)
            if high <= low:
                continue
            if low > at:
                pieces.append((at, low, RUN_STEP + base, number, track))
            pieces.append((low, high, WAIT_IN_TAKE + base, number, track))
            at = high
        if end > at or not waits.get(number):
            pieces.append((at, end, RUN_STEP + base, number, track))
    table = np.array(pieces, np.int64).reshape(-1, 5).T
    return _columns(table[0], table[1], name=table[2], step=table[3], track=table[4])


def _ordered_tracks(trace: Trace) -> list[tuple[int, str, str, str]]:
    """(row, kind, name, stage) of every track, in the order of the lanes."""
    tracks = trace.tracks
    stages = list(dict.fromkeys(tracks["stage"].astype(str)))
    order = sorted(
        range(len(tracks)),
        key=lambda i: (
            LANE_ORDER.index(str(tracks["kind"].iloc[i])),
            stages.index(str(tracks["stage"].iloc[i])),
            int(tracks["index"].iloc[i]),
        ),
    )
    kind, name, stage = (tracks[column].tolist() for column in ("kind", "name", "stage"))
    return [(i, str(kind[i]), str(name[i]), str(stage[i])) for i in order]


def occupancy(trace: Trace) -> dict[str, tuple[int, np.ndarray, np.ndarray]]:
    """Per stage: items in the buffer at first, moments of change, the number after each."""
    held = trace.held_before()
    return {
        str(stage): (held[str(stage)], part["time_ns"].to_numpy(), part["count"].to_numpy())
        for stage, part in trace.occupancy().groupby("stage", sort=False)
    }


def build(trace: Trace, cores: int | None) -> tuple[Spans, tuple[Lane, ...]]:
    """Sorts the trace into lanes.

    Args:
      trace: a trace that passed its self check.
      cores: cores of the machine it comes from; None if unknown.
    """
    columns = _by_track(trace)
    bounds = np.searchsorted(columns["track"], np.arange(len(trace.tracks) + 1)).tolist()
    row_of = np.zeros(len(columns["track"]), np.uint16)
    for a, b in itertools.pairwise(bounds):
        row_of[a:b] = sub_rows(columns["start"][a:b], columns["end"][a:b])
    sizes = [np.bincount(row_of[a:b]).tolist() for a, b in itertools.pairwise(bounds)]
    made, first_lane = _lanes(trace, sizes)
    lane_of = first_lane[columns["track"]] + row_of
    final = _order(columns["start"], lane_of, len(made))
    columns = {key: values[final] for key, values in columns.items()}
    gap = _gaps(trace, columns, lane_of[final], made, cores)
    del columns["track"]
    return Spans(**columns, gap=gap), tuple(made)


def _by_track(trace: Trace) -> dict[str, np.ndarray]:
    """Everything that is drawn as a span, by track, then start."""
    base = len(trace.nodes)
    parts = [_event_columns(trace), _put_columns(trace, base), _run_columns(trace, base)]
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    order = _order(columns["start"], columns["track"], len(trace.tracks))
    return {key: values[order] for key, values in columns.items()}


def _order(start: np.ndarray, of: np.ndarray, count: int) -> np.ndarray:
    """Rows by what they are of, a number below `count`, then by start."""
    # numpy sorts narrow integers by radix, several times faster.
    return np.lexsort((start, of.astype(np.min_scalar_type(count))))


def _lanes(trace: Trace, sizes: list[list[int]]) -> tuple[list[Lane], np.ndarray]:
    """The lanes from the top, and for each track which of them is its first.

    Args:
      sizes: per track, how many spans each of its sub-rows holds.
    """
    buffers = occupancy(trace)
    made: list[Lane] = []
    first_lane = np.zeros(len(sizes), np.int64)
    position = occupied = 0
    tracks = _ordered_tracks(trace)
    several = len(buffers) > 1
    details = dict(zip(buffers, told_apart(list(buffers), _DETAIL_LETTERS), strict=True))
    for k, (track, kind, name, stage) in enumerate(tracks):
        group = 0 if kind == "step" else 1000 if kind == "inter_op" else 1 + _index(buffers, stage)
        first_lane[track] = len(made)
        whole = f"{name} of “{stage}”" if several and stage else name
        for row, count in enumerate(sizes[track]):
            title = whole if len(sizes[track]) == 1 else f"{whole}, row {row + 1}"
            made.append(Lane(kind, "" if row else name, title, group, track, position, count))
            position += count
        last = kind == "prefetch" and (k + 1 == len(tracks) or tracks[k + 1][3] != stage)
        if last and stage in buffers:
            title = f"Buffer of “{stage}”" if several else "Buffer"
            detail = details[stage] if several else ""
            held, moments, counts = buffers[stage]
            size, capacity = len(moments), _capacity(trace, stage, counts)
            made.append(
                Lane("buffer", "Buffer", title, group, -1, occupied, size, capacity, held, detail)
            )
            occupied += size
    return made, first_lane


def _index(buffers: Iterable[str], stage: str) -> int:
    known = list(buffers)
    return known.index(stage) if stage in known else len(known)


def _capacity(trace: Trace, stage: str, counts: np.ndarray) -> int:
    return trace.meta.capacity.get(stage) or max(1, int(counts.max(initial=1)))


def _gaps(
    trace: Trace,
    columns: dict[str, np.ndarray],
    lane: np.ndarray,
    made: list[Lane],
    cores: int | None,
) -> np.ndarray:
    """Names of the gaps, only in the inter-op lanes; they are the last, so a slice is enough."""
    gap = np.zeros(len(lane), np.uint8)
    first = min((own.first for own in made if own.kind == "inter_op"), default=len(lane))
    runs = trace.steps()
    calls, returns = _around_ops(trace, runs)
    gap[first:] = lanes.gap_kinds(
        lane[first:],
        columns["start"][first:],
        columns["end"][first:],
        columns["delay"][first:],
        waits=take_waits(trace),
        calls=calls,
        returns=returns,
        runs=union(runs["start_ns"].to_numpy(np.int64), runs["end_ns"].to_numpy(np.int64)),
        cores=cores,
    )
    return gap


def _around_ops(trace: Trace, runs: pd.DataFrame) -> tuple[Intervals, Intervals]:
    """When steps ran without an op: before their first, and after their last; a take counts too.

    Time in which another client's step is between its own first and last op is left out.
    """
    kind = trace.tracks["kind"].to_numpy(object)
    events = trace.events[(kind == "inter_op")[trace.events["track"].to_numpy()]]
    start = events["start_ns"].to_numpy(np.int64)
    items = taken(trace.items)
    step, begin, end = (
        np.concatenate(parts).astype(np.int64)
        for parts in (
            (events["step"], items["take_step"]),
            (start, items["take_start_ns"]),
            (start + events["dur_ns"].to_numpy(np.int64), items["take_end_ns"]),
        )
    )
    runs = runs[runs["number"].isin(step)].drop_duplicates("number").sort_values("number")
    numbers = runs["number"].to_numpy(np.int64)
    own = np.isin(step, numbers)
    row = np.searchsorted(numbers, step[own])
    first, last = runs["end_ns"].to_numpy(np.int64, copy=True), np.zeros(len(runs), np.int64)
    np.minimum.at(first, row, begin[own])
    np.maximum.at(last, row, end[own])
    busy = union(first, last)
    returns = subtract(union(last, runs["end_ns"].to_numpy(np.int64)), busy)
    calls = subtract(union(runs["start_ns"].to_numpy(np.int64), first), busy)
    return subtract(calls, returns), returns

"""Columns of the timeline: what the view's binary blob holds, each in its narrowest type."""

from __future__ import annotations

import dataclasses
import functools
import zlib

import numpy as np

from workbench.core.graph.tasks import tasks_of
from workbench.core.trace.receipts import sending_events
from workbench.viz.style.short_names import without_folders
from workbench.viz.timeline.data import TimelineData
from workbench.viz.timeline.lanes import Lane, receive_tracks
from workbench.viz.timeline.spans import Spans
from workbench.viz.timeline.strip import strip_columns

# Level 9 makes a blob of 2 million events 1 % smaller and takes several times as long.
_PACK_LEVEL = 6


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Columns by name, each in its narrowest type, and their bytes."""

    by_name: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.by_name[name]

    @functools.cached_property
    def layout(self) -> list[tuple[str, str, int, int]]:
        """(name, dtype name, offset in `buffer`, length) of each column."""
        layout, offset = [], 0
        for name, values in self.by_name.items():
            layout.append((name, values.dtype.name, offset, len(values)))
            offset += _padded(values.nbytes)
        return layout

    @property
    def size(self) -> int:
        """Bytes of `buffer`."""
        return sum(_padded(values.nbytes) for values in self.by_name.values())

    def buffer(self) -> bytes:
        """The columns in the order of the layout, each padded to 8 bytes.

        A column is a plane for each byte of its values: the lowest bytes of all of them, then the
        next, and so on. High bytes are mostly alike, so planes pack smaller, and ten times faster.
        """
        parts = []
        for values in self.by_name.values():
            little = values.astype(values.dtype.newbyteorder("<"), copy=False)
            planes = little.view(np.uint8).reshape(len(values), values.itemsize).T.tobytes()
            parts.append(planes + b"\0" * (_padded(len(planes)) - len(planes)))
        return b"".join(parts)

    @functools.cached_property
    def packed(self) -> bytes:
        """`buffer`, deflated, as a page carries it, and a notebook where it is small."""
        return zlib.compress(self.buffer(), _PACK_LEVEL)


def columns_of(
    data: TimelineData, spans: Spans, lanes: tuple[Lane, ...], extent: tuple[int, int]
) -> Columns:
    """Everything the browser needs beside the header; times in ns from the start of the trace.

    Args:
      data: what is shown. spans, lanes: its spans and lanes.
      extent: first and last moment that is drawn.

    Returns:
      idle, dur, delay, name, step, gap per span; name* per name; step* per step; occ* per change
      of a buffer; flow* per taken item; send* and recv* per tensor between tasks; strip* per bin of
      the whole-trace strip; texts as bytes.
      Where there is a critical path also critical: per span whether it is an op on it.
    """
    origin, _ = extent
    steps, names = data.times.per_step, data.names
    # starts travel as the stretch since the span before in the lane: small numbers, and exact
    idle = spans.start.copy()
    idle[1:] -= spans.end[:-1]
    firsts = [lane.first for lane in lanes if lane.kind != "buffer" and lane.count]
    idle[firsts] = spans.start[firsts] - origin
    held, none = data.occupancy.values(), np.zeros(0, np.int64)
    moments = np.concatenate([none, *(buffer.times_ns for buffer in held)])
    counts = np.concatenate([none, *(buffer.counts for buffer in held)])
    columns = {
        "idle": idle,
        "dur": spans.end - spans.start,
        "delay": spans.delay,
        "name": spans.name,
        "step": spans.step,
        "gap": spans.gap,
        "nameFamily": names["family"].to_numpy(),
        "stepNumber": steps["number"].to_numpy(),
        "stepStart": steps["start_ns"].to_numpy() - origin,
        "stepEnd": (steps["start_ns"] + steps["dur_ns"]).to_numpy() - origin,
        "stepOps": steps["ops"].to_numpy(),
        "stepTrack": steps["track"].to_numpy(),
        "occTime": moments - origin,
        "occCount": counts,
        **_flows(data, lanes, origin),
        **_sends(data, spans, lanes, origin),
        **strip_columns(data, extent),
    }
    if data.path is not None:
        columns["critical"] = (spans.row >= 0) & data.path.on_path[spans.row]
    narrowed = {name: _narrow(values) for name, values in columns.items()}
    # names are bytes, not JSON: they pack with the rest, and nothing in them can be markup
    op_types, op_of = np.unique(names["op"].to_numpy(str), return_inverse=True)
    narrowed["nameOp"] = _narrow(op_of)
    narrowed["nameText"] = _text(names["name"].tolist())
    narrowed["opText"] = _text(op_types.tolist())
    sources, source_of = np.unique(_sources(data), return_inverse=True)
    narrowed["nameSource"] = _narrow(source_of)
    narrowed["sourceText"] = _text(sources.tolist())
    return Columns(narrowed)


def _sources(data: TimelineData) -> np.ndarray:
    """For each name the line that made it, by its file without folders; "" where none is known."""
    found = np.full(len(data.names), "", object)
    lines = data.trace.nodes["source"].tolist()
    found[: len(lines)] = [without_folders(line) for line in lines]
    return found


def _flows(data: TimelineData, lanes: tuple[Lane, ...], origin: int) -> dict[str, np.ndarray]:
    """An arrow per taken item, from the end of its put to the end of its take."""
    first_lane: dict[int, int] = {}
    for k, lane in enumerate(lanes):
        first_lane.setdefault(lane.track, k)
    step_lane = next((k for k, lane in enumerate(lanes) if lane.kind == "step"), -1)
    items = data.taken
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


def _sends(
    data: TimelineData, spans: Spans, lanes: tuple[Lane, ...], origin: int
) -> dict[str, np.ndarray]:
    """An arrow per tensor that travelled, from the op that made it to the end of its receipt."""
    transfers, event = data.trace.transfers, sending_events(data.trace.tables())
    known = (event >= 0) & (transfers["sent_ns"] >= 0).to_numpy(bool)
    rows = transfers[known]
    lane = np.repeat(np.arange(len(lanes)), [0 if k.kind == "buffer" else k.count for k in lanes])
    lane_of_event = np.zeros(len(data.trace.events), np.int64)
    lane_of_event[spans.row[spans.row >= 0]] = lane[spans.row >= 0]
    place = {(each.track, each.kind): k for k, each in reversed(list(enumerate(lanes)))}
    receive = {pair: place[row, "receive"] for pair, row in receive_tracks(data).items()}
    receiver = tasks_of(data.trace.nodes["device"])[rows["node"].to_numpy(np.int64)]
    client = data.trace.tracks["client"].to_numpy(object)[rows["track"].to_numpy(np.int64)]
    steps = data.times.per_step
    runs = zip(steps["track"].tolist(), steps["number"].tolist(), strict=True)
    step = {run: place for place, run in enumerate(runs)}
    of_run = zip(rows["track"].tolist(), rows["step"].tolist(), strict=True)
    return {
        "sendTime": rows["sent_ns"].to_numpy(np.int64) - origin,
        "recvTime": rows["end_ns"].to_numpy(np.int64) - origin,
        "sendFrom": lane_of_event[event[known]],
        "recvTo": np.array([receive[pair] for pair in zip(receiver, client, strict=True)], int),
        # The place among the steps; a stage's run is of none.
        "sendStep": np.array([step.get(run, -1) for run in of_run], np.int64),
    }


def _padded(count: int) -> int:
    return -(-count // 8) * 8


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

"""Lanes of the timeline: a row for each track and sub-row, and for each buffer, from the top."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.graph.tasks import is_ps
from workbench.core.trace.trace import Trace
from workbench.viz.style.short_names import told_apart
from workbench.viz.timeline.data import Occupancy, TimelineData

# "critical" is the lane of the critical path, "receive" of the tensors that a task of a cluster
# got; a trace without has no such lane.
LANE_ORDER = ("step", "critical", "prefetch", "buffer", "receive", "inter_op")
# Letters that fit under the label of a buffer.
_DETAIL_LETTERS = 10
# The step's lanes stand in group 0, those of the stages follow, then the inter-op threads.
_INTER_OP_GROUP = 1000
# Lanes of one task of a cluster, and for one worker's steps, stand together.
_TASK_GROUPS = 10_000


@dataclasses.dataclass(frozen=True)
class Lane:
    """One lane: what it shows, its label, and which rows of the columns are its own.

    Attributes:
      kind: one of LANE_ORDER.
      label: name at the left; empty for further sub-rows of a track.
      title: name in full, as the hover card and the table say it.
      group: lanes of one group stand together.
      track: row of the trace's tracks, -1 for a buffer and the critical path.
      first, count: the spans [first, first + count), or rows of the occupancy columns.
      capacity, held: most items a buffer holds, and how many it held at first; 0 for other lanes.
      detail: a second line below the label: the stage of a buffer, where there are several; in a
        cluster the task.
      client: in a cluster the task whose steps the lane's spans are of.
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
    client: str = ""


@dataclasses.dataclass(frozen=True)
class _Track:
    row: int
    kind: str
    name: str
    stage: str
    task: str = ""
    client: str = ""
    place: int = 0

    @property
    def where(self) -> str:
        """The task, and the one for whose steps it works where that is another."""
        return self.task if self.task == self.client else f"{self.task}, {self.client}"


def lanes_of(data: TimelineData, sizes: Sequence[Sequence[int]]) -> tuple[list[Lane], np.ndarray]:
    """The lanes from the top, and for each track which of them is its first.

    Args:
      data: what is shown.
      sizes: per track, how many spans each of its sub-rows holds.
    """
    stages = list(data.occupancy)
    lanes: list[Lane] = []
    first_lane = np.zeros(len(sizes), np.int64)
    first_span = first_change = 0
    tracks = _ordered_tracks(data)
    for place, track in enumerate(tracks):
        group = _group(track, stages)
        first_lane[track.row] = len(lanes)
        whole = (
            f"{track.name} of “{track.stage}”" if len(stages) > 1 and track.stage else track.name
        )
        if track.task:
            whole = f"{whole}, {track.where}"
        rows = sizes[track.row]
        for row, count in enumerate(rows):
            title = whole if len(rows) == 1 else f"{whole}, row {row + 1}"
            label = "" if row else track.name
            own = -1 if track.kind == "critical" else track.row
            lane = Lane(track.kind, label, title, group, own, first_span, count)
            detail = "" if row else track.where
            lanes.append(dataclasses.replace(lane, detail=detail, client=track.client))
            first_span += count
        following = tracks[place + 1].stage if place + 1 < len(tracks) else None
        if track.kind == "prefetch" and following != track.stage and track.stage in stages:
            lanes.append(_buffer_lane(data, track.stage, group, first_change))
            first_change += lanes[-1].count
    return lanes, first_lane


def _buffer_lane(data: TimelineData, stage: str, group: int, first: int) -> Lane:
    """The lane of a stage's buffer; it names the stage where there are several."""
    stages, buffer = list(data.occupancy), data.occupancy[stage]
    short = dict(zip(stages, told_apart(stages, _DETAIL_LETTERS), strict=True))[stage]
    several = len(stages) > 1
    return Lane(
        kind="buffer",
        label="Buffer",
        title=f"Buffer of “{stage}”" if several else "Buffer",
        group=group,
        track=-1,
        first=first,
        count=len(buffer.times_ns),
        capacity=_capacity(data.trace, stage, buffer),
        held=buffer.held,
        detail=short if several else "",
    )


def _ordered_tracks(data: TimelineData) -> list[_Track]:
    """Every track, in the order of the lanes; the critical path counts as one more."""
    tracks = data.trace.tracks
    stages = list(dict.fromkeys(["", *tracks["stage"].astype(str)]))
    columns = (tracks[name].tolist() for name in ("kind", "name", "stage", "task", "client"))
    drawn = [_Track(row, *values) for row, values in enumerate(zip(*columns, strict=True))]
    if data.path is not None:
        client = data.path.client
        drawn.append(_Track(len(tracks), "critical", "Critical path", "", client, client))
    drawn += [
        _Track(row, "receive", "Receive", "", task, client)
        for (task, client), row in receive_tracks(data).items()
    ]
    # Workers come before what they wait for.
    places = sorted(
        {(track.task, track.client) for track in drawn}, key=lambda pair: (is_ps(pair[0]), pair)
    )
    drawn = [
        dataclasses.replace(track, place=places.index((track.task, track.client)))
        for track in drawn
    ]
    index = dict(enumerate(tracks["index"].tolist()))

    def order(track: _Track) -> tuple[int, ...]:
        kind, stage = LANE_ORDER.index(track.kind), stages.index(track.stage)
        return track.place, kind, stage, index.get(track.row, 0), track.row

    return sorted(drawn, key=order)


def receive_tracks(data: TimelineData) -> dict[tuple[str, str], int]:
    """Numbers behind those of the trace's tracks and of the critical path, by task and client."""
    stretches = data.received.stretches
    pairs = stretches[["receiver", "client"]].drop_duplicates().itertuples(index=False, name=None)
    first = len(data.trace.tracks) + (data.path is not None)
    return {(str(task), str(client)): first + k for k, (task, client) in enumerate(pairs)}


def _group(track: _Track, stages: Sequence[str]) -> int:
    first = track.place * _TASK_GROUPS
    if track.kind in ("step", "critical"):
        return first
    if track.kind in ("inter_op", "receive"):
        return first + _INTER_OP_GROUP
    return first + 1 + (stages.index(track.stage) if track.stage in stages else len(stages))


def _capacity(trace: Trace, stage: str, buffer: Occupancy) -> int:
    known = trace.meta.capacity.get(stage)
    return int(known) if known else max(1, int(buffer.counts.max(initial=1)))

"""Requests over time: a lane of each client, on one scale for every setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pandas as pd

from workbench.viz.findings.fill import FillLine, fill_line
from workbench.viz.serving.axes import Ticks, time_axis
from workbench.viz.style import format

# More lanes, or more requests of a setting, make the picture unreadable and the page large.
_MOST_LANES, _MOST_REQUESTS = 32, 400
# The stretch that is shown has room for this many requests of the slowest setting, one by one.
_LEAST_IN_TURN = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sent:
    """One request as it was sent, before it has a place; times are of one clock.

    Attributes:
      client: the number of its client, from 0.
      arrival_ns: when it was due. start_ns: when its step began. end_ns: when its answer came.
      failed: whether its answer was an error.
    """

    client: int
    arrival_ns: int
    start_ns: int
    end_ns: int
    failed: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """One request in its lane, cut where the stretch begins and ends; all fractions of the stretch.

    Attributes:
      x, wait: where it arrived, and how long it waited.
      start, service: where its step began, and how long that took.
      failed: whether its answer was an error.
      words: what it is.
    """

    x: float
    wait: float
    start: float
    service: float
    failed: bool
    words: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lane:
    """The requests of one client."""

    name: str
    bars: tuple[Bar, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lanes:
    """The requests of one setting.

    Attributes:
      label: the setting, as it is shown.
      lanes: a lane of each client that is shown.
      running: how many steps run at one time.
      cores_at: where the number of cores stands on the scale of `running`, upwards.
      news: what the picture shows, in a sentence.
    """

    label: str
    lanes: tuple[Lane, ...]
    running: FillLine
    cores_at: float
    news: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestLanes:
    """The requests of some settings on one scale.

    Attributes:
      settings: the pictures.
      ticks: (fraction, words) of the time axis.
      caption: what is shown of which load.
      failed: whether a request that failed is drawn.
    """

    settings: tuple[Lanes, ...]
    ticks: Ticks
    caption: str
    failed: bool


def request_lanes(
    sent: Sequence[tuple[str, Sequence[Sent]]], *, load: str, cores: int
) -> RequestLanes | None:
    """The picture of the middle of one block of each setting.

    Args:
      sent: a label, and the requests of a block, of each setting.
      load: what was sent, in words.
      cores: cores of the machine.

    Returns:
      The picture; None where no setting has a request.
    """
    with_requests = [(label, requests) for label, requests in sent if requests]
    if not with_requests:
        return None
    clients = sorted({one.client for _, requests in with_requests for one in requests})
    shown = clients[:_MOST_LANES]
    length = _length([requests for _, requests in with_requests], set(shown))
    columns = [(label, _inside(requests, length)) for label, requests in with_requests]
    most = max(int(_running(spans, length)["count"].max()) for _, spans in columns)
    settings = tuple(_lanes(label, spans, shown, length, most, cores) for label, spans in columns)
    lanes = f"the first {len(shown)} of {len(clients)} clients; " * (len(shown) < len(clients))
    return RequestLanes(
        settings=settings,
        ticks=time_axis(length).ticks,
        caption=(
            f"{load}: {lanes}{format.duration(length)} from the middle of a block, on one scale"
        ),
        failed=any(bar.failed for each in settings for lane in each.lanes for bar in lane.bars),
    )


def _length(requests: Sequence[Sequence[Sent]], clients: set[int]) -> int:
    """The stretch in which no setting has too many requests, and the slowest has some in turn."""
    fitting, halves, in_turn = [], [], []
    for one_setting in requests:
        # Of many clients, the first ones may have none of the requests that were kept.
        drawn = [each for each in one_setting if each.client in clients] or list(one_setting)
        first = min(request.arrival_ns for request in drawn)
        whole = max(request.end_ns for request in drawn) - first
        fitting.append(whole * _MOST_REQUESTS // len(drawn))
        halves.append(whole // 2)
        times = [request.end_ns - request.arrival_ns for request in drawn]
        in_turn.append(_LEAST_IN_TURN * int(np.median(times)))
    return max(1, min(max(min(fitting), max(in_turn)), min(halves)))


def _inside(requests: Sequence[Sent], length: int) -> list[Sent]:
    """The requests that meet the stretch from the middle of the block on, which becomes 0."""
    first = min(one.arrival_ns for one in requests)
    last = max(one.end_ns for one in requests)
    begin = (first + last) // 2
    moved = [
        dataclasses.replace(
            one,
            arrival_ns=one.arrival_ns - begin,
            start_ns=one.start_ns - begin,
            end_ns=one.end_ns - begin,
        )
        for one in requests
    ]
    return [one for one in moved if one.end_ns > 0 and one.arrival_ns < length]


def _running(spans: Sequence[Sent], length: int) -> pd.DataFrame:
    """How many steps run at one time: a row for each change."""
    starts = np.array([max(0, one.start_ns) for one in spans if one.start_ns < length], np.int64)
    ends = np.array([one.end_ns for one in spans if one.end_ns < length], np.int64)
    time = np.concatenate((np.zeros(1, np.int64), ends, starts))
    change = np.concatenate((np.zeros(1), -np.ones(len(ends)), np.ones(len(starts))))
    order = np.argsort(time, kind="stable")
    return pd.DataFrame({"time_ns": time[order], "count": np.cumsum(change[order])})


def _lanes(
    label: str, spans: Sequence[Sent], clients: Sequence[int], length: int, most: int, cores: int
) -> Lanes:
    top = max(most, cores)
    running = _running(spans, length)
    lanes = tuple(
        Lane(
            name=f"client {client + 1}",
            bars=tuple(_bar(one, length) for one in spans if one.client == client),
        )
        for client in clients
    )
    return Lanes(
        label=label,
        lanes=lanes,
        running=fill_line(label, running, length, top),
        cores_at=cores / top,
        news=_news(label, spans, int(running["count"].max())),
    )


def _bar(one: Sent, length: int) -> Bar:
    arrival, start, end = (
        min(max(ns, 0), length) / length for ns in (one.arrival_ns, one.start_ns, one.end_ns)
    )
    waited = format.duration(one.start_ns - one.arrival_ns)
    took = format.duration(one.end_ns - one.start_ns)
    outcome = "failed" if one.failed else "answered"
    return Bar(
        x=arrival,
        wait=start - arrival,
        start=start,
        service=end - start,
        failed=one.failed,
        words=f"client {one.client + 1}: waited {waited}, {outcome} {took} later",
    )


def _news(label: str, spans: Sequence[Sent], most: int) -> str:
    """What one sees: how many steps run at one time, and how long requests wait and run."""
    if not spans:
        return f"{label}: no request in this stretch."
    waits = float(np.median([one.start_ns - one.arrival_ns for one in spans]))
    runs = float(np.median([one.end_ns - one.start_ns for one in spans]))
    failed = sum(one.failed for one in spans)
    return (
        f"{label}: at most {format.integer(most)} steps at one time; in the median a request waits "
        f"{format.duration(waits)} and runs {format.duration(runs)}"
        + (f"; {format.integer(failed)} failed" if failed else "")
        + "."
    )

"""Chrome JSON that `Trace.to_chrome` wrote → the Trace again. Needs no TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.importing.chrome_events import ChromeEvents
from workbench.core.trace.chrome_json import (
    OPS,
    PUTS,
    READY,
    RECEIPTS,
    RUNS,
    TAKES,
    WHERE_KNOWN,
)
from workbench.core.trace.meta import TraceMeta
from workbench.core.trace.tables import TABLES, column_names
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError

_NODE = ("name", "op", "device", *WHERE_KNOWN)
_UNKNOWN = -1
# Receipts are only drawn: of the tensors in one there is no more than their number.
_HELD = (RUNS, OPS, PUTS, TAKES, RECEIPTS)
_MOST_DIGITS = 18
_MOST = 1 << 62


def is_own(document: Mapping[str, Any]) -> bool:
    """Whether `Trace.to_chrome` wrote it; one by an earlier version lacks the table of tracks."""
    held = document.get("otherData")
    return isinstance(held, dict) and {"origin_ns", "tracks"} <= held.keys()


def own_trace(notes: Mapping[str, Any], events: ChromeEvents) -> Trace:
    """The Trace of a file that has these notes.

    Raises:
      TraceError: the notes or an event lack what `to_chrome` writes.
    """
    origin = notes["origin_ns"]
    if type(origin) is not int or not 0 <= origin < _MOST:
        raise _damaged(f"`otherData.origin_ns` is {origin!r}; expected nanoseconds since 1970")
    tracks = _tracks(notes["tracks"])
    place_track, place_holds = _places(events)
    track, holds = place_track[events.place], place_holds[events.place]

    start, end = events.start_ns + origin, events.end_ns + origin

    def rows(kind: str) -> np.ndarray:
        found = np.flatnonzero(holds == kind)
        return found[np.argsort(start[found], kind="stable")]

    ops = rows(OPS)
    nodes, columns = _ops(events, ops)
    trace = Trace(
        events=pd.DataFrame(
            {
                "start_ns": start[ops],
                "dur_ns": (end - start)[ops],
                "track": track[ops],
                **columns,
            }
        ),
        nodes=nodes,
        tracks=tracks,
        runs=_runs(events, rows(RUNS), track, start, end),
        items=_items(events, (rows(PUTS), rows(TAKES)), track, start, end),
        meta=TraceMeta.from_json(notes),
    )
    trace.self_check()
    return trace


def _tracks(held: Any) -> pd.DataFrame:
    try:
        # A file by an earlier version lacks some of those that a table may lack.
        here = [c.name for c in TABLES["tracks"] if not c.optional or c.name in held]
        return pd.DataFrame(held, columns=here)
    except (TypeError, ValueError) as error:
        raise _damaged(
            f"`otherData.tracks` is no table of {', '.join(column_names('tracks'))}"
        ) from error


def _places(events: ChromeEvents) -> tuple[np.ndarray, np.ndarray]:
    """Of each thread of the file its track, and what it holds."""
    tracks, holds = [], []
    for pid, tid in events.places:
        said = events.threads.get((pid, tid), {})
        if type(said.get("track")) is not int or said.get("holds") not in _HELD:
            raise _damaged(
                f"thread {tid} of process {pid} has slices, but no `thread_name` whose args have "
                "`track` and `holds`"
            )
        tracks.append(said["track"])
        holds.append(said["holds"])
    return np.array(tracks, np.int64), np.array(holds, object)


def _ops(events: ChromeEvents, rows: np.ndarray) -> tuple[pd.DataFrame, dict[str, list[int]]]:
    """The nodes of these ops, and the columns of events that stand in their args."""
    nodes: dict[tuple[str, ...], int] = {}
    held = _held(events, rows)
    names = [events.slices[row].name for row in rows.tolist()]
    texts = [_column(held, name, str) for name in ("op", "device")]
    texts += [_column(held, name, str, otherwise="") for name in WHERE_KNOWN]
    columns = {
        "node": [nodes.setdefault(node, len(nodes)) for node in zip(names, *texts, strict=True)],
        "step": _column(held, "step", int),
        "delay_ns": _column(held, READY, int),
    }
    return pd.DataFrame(list(nodes), columns=_NODE), columns


def _runs(
    events: ChromeEvents, rows: np.ndarray, track: np.ndarray, start: np.ndarray, end: np.ndarray
) -> pd.DataFrame:
    numbers = []
    for row in rows.tolist():
        name = events.slices[row].name
        told = name.rpartition(" ")[2]
        if not told.removeprefix("-").isdecimal() or len(told) > _MOST_DIGITS:
            raise _damaged(f"event {events.number[row]} is named {name!r}; expected a run's number")
        numbers.append(int(told))
    table = pd.DataFrame(
        {"track": track[rows], "number": numbers, "start_ns": start[rows], "end_ns": end[rows]}
    )
    return table.sort_values(["track", "start_ns"], kind="stable", ignore_index=True)


def _items(
    events: ChromeEvents,
    calls: tuple[np.ndarray, np.ndarray],
    track: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
) -> pd.DataFrame:
    """The items whose put or take was drawn."""
    items: dict[tuple[str, int], dict[str, int]] = {}
    for rows, call, run in zip(calls, ("put", "take"), ("put_run", "take_step"), strict=True):
        held = _held(events, rows)
        columns = {
            f"{call}_start_ns": start[rows].tolist(),
            # Drawn a nanosecond longer than it took.
            f"{call}_end_ns": (end[rows] - 1).tolist(),
            f"{call}_track": track[rows].tolist(),
            run: _column(held, "run", int),
        }
        stages, numbers = _column(held, "stage", str), _column(held, "item", int)
        for key, values in zip(
            zip(stages, numbers, strict=True), zip(*columns.values(), strict=True), strict=True
        ):
            items.setdefault(key, {}).update(zip(columns, values, strict=True))
    names = column_names("items")[2:]
    return pd.DataFrame(
        [(*key, *(items[key].get(name, _UNKNOWN) for name in names)) for key in sorted(items)],
        columns=column_names("items"),
    )


def _held(events: ChromeEvents, rows: np.ndarray) -> tuple[list[int], list[Mapping[str, Any]]]:
    """Of these slices the place in the file and the args."""
    return events.number[rows].tolist(), [events.slices[row].args for row in rows.tolist()]


def _column(
    held: tuple[list[int], list[Mapping[str, Any]]], name: str, kind: Any, otherwise: Any = None
) -> list[Any]:
    """What the args have by that name, of exactly that type."""
    numbers, args = held
    values = [each.get(name, otherwise) for each in args]
    if not set(map(type, values)) <= {kind}:
        row = next(row for row, value in enumerate(values) if type(value) is not kind)
        found = f" is {args[row][name]!r}" if name in args[row] else " is missing"
        raise _damaged(f"event {numbers[row]}: `args.{name}`{found}")
    if kind is int and values and not (min(values) > -_MOST and max(values) < _MOST):
        row = next(row for row, value in enumerate(values) if not -_MOST < value < _MOST)
        raise _damaged(f"event {numbers[row]}: `args.{name}` is {values[row]!r}, too large")
    return values


def _damaged(found: str) -> TraceError:
    return TraceError(f"{found}: not as `Trace.to_chrome` writes it; write the file again")

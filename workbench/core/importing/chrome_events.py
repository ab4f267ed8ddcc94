"""Chrome trace JSON → slices as columns, each field checked. Needs no TensorFlow.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from workbench.errors import TraceError, first_line

Place = tuple[Any, Any]

# The fields that an event of each phase must have.
_NEEDED = {
    "X": ("name", "ts", "dur", "pid", "tid"),
    "B": ("name", "ts", "pid", "tid"),
    "E": ("ts", "pid", "tid"),
}
_PHASES = {
    "X": "a complete event (ph X) needs name, ts, dur, pid and tid",
    "B": "a begin (ph B) needs name, ts, pid and tid",
    "E": "an end (ph E) needs ts, pid and tid",
}
# Phases that a Trace has no place for.
_OTHERS = {
    **dict.fromkeys("C", "counters"),
    **dict.fromkeys("iIR", "instants"),
    **dict.fromkeys("stf", "flows"),
    **dict.fromkeys("bneSTpF", "asynchronous events"),
    **dict.fromkeys("NOD", "objects"),
    **dict.fromkeys("vV", "memory dumps"),
    **dict.fromkeys("()", "contexts"),
    "P": "samples",
    "c": "clock syncs",
}
# About 146 years: no sum of two such times leaves 64 bits.
_MOST_US = 1 << 52
_MOST_SHOWN = 60


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ChromeEvents:
    """The slices of a file, complete ones first, then pairs of begin and end.

    Attributes:
      number: int64 [slices], place in the file's list, from 0; of a pair that of its begin.
      start_ns, end_ns: int64 [slices], in this order, on the file's clock.
      place: int64 [slices], rows of `places`.
      events: the slices as they stand in the file.
      places: process and thread.
      processes: names of processes.
      threads: what the metadata say of threads, their "name" above all.
      left_out: how many events are no slices, by what they are.
    """

    number: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    place: np.ndarray
    events: Sequence[Mapping[str, Any]]
    places: Sequence[Place]
    processes: Mapping[Any, str]
    threads: Mapping[Place, Mapping[str, Any]]
    left_out: Mapping[str, int]


def parse_json(data: bytes) -> Any:
    """The document; its decimal fractions are exact.

    Raises:
      TraceError: it is not JSON, says where.
    """
    try:
        return json.loads(data, parse_float=Decimal, parse_constant=_no_constant)
    except RecursionError as error:
        raise TraceError("it is nested too deep for a trace; expected Chrome trace JSON") from error
    except ValueError as error:
        raise TraceError(
            f"it is not whole JSON: {first_line(error)}; write or copy the file again, or close a "
            "list that its writer left open"
        ) from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def event_list(document: Any) -> list[Any]:
    """The events of a document: its `traceEvents`, or itself if it is a list.

    Raises:
      TraceError: it has none.
    """
    held = document.get("traceEvents") if isinstance(document, dict) else document
    if isinstance(held, list):
        return held
    if isinstance(document, dict) and "traceEvents" not in document:
        names = ", ".join(f"`{name}`" for name in list(document)[:5]) or "nothing"
        raise TraceError(
            f"it has no `traceEvents`, but {names}; expected Chrome trace JSON: "
            '{"traceEvents": […]} or a bare list of events'
        )
    raise TraceError(
        f"its events are {_shown(held)}; expected a list: "
        '{"traceEvents": […]} or a bare list of events'
    )


def chrome_events(events: Sequence[Any]) -> ChromeEvents:
    """The slices of these events.

    Raises:
      TraceError: an event lacks a field, or has one of the wrong type; names event and field.
    """
    rows: dict[str, list[int]] = {"X": [], "B": [], "E": [], "M": []}
    others: Counter[str] = Counter()
    for number, event in enumerate(events):
        phase = event.get("ph") if type(event) is dict else None
        if type(phase) is not str:
            # Some writers close the list with an event of no fields.
            if event != {}:
                raise _no_phase(number, event)
        elif phase in rows:
            rows[phase].append(number)
        else:
            others[_OTHERS.get(phase, f"events of phase {phase!r}")] += 1
    places: dict[Place, int] = {}
    complete, begins, ends = (_checked(events, rows[phase], phase, places) for phase in _NEEDED)
    length_ns = _nanoseconds(events, rows["X"], "X", "dur")
    begin, end = _pairs(events, begins, ends, others)
    processes, threads = _names(events, rows["M"])
    slices = np.concatenate((complete.number, begins.number[begin]))
    return ChromeEvents(
        number=slices,
        start_ns=np.concatenate((complete.time_ns, begins.time_ns[begin])),
        end_ns=np.concatenate((complete.time_ns + length_ns, ends.time_ns[end])),
        place=np.concatenate((complete.place, begins.place[begin])),
        events=[events[each] for each in slices.tolist()],
        places=list(places),
        processes=processes,
        threads=threads,
        left_out=dict(others),
    )


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class _Phase:
    """Events of one phase as columns, in the order of the file."""

    number: np.ndarray
    time_ns: np.ndarray
    place: np.ndarray


def _checked(
    events: Sequence[Any], rows: list[int], phase: str, places: dict[Place, int]
) -> _Phase:
    """The events of one phase; adds their places to `places`."""
    if "name" in _NEEDED[phase]:
        _field(events, rows, phase, "name", (str,), "text")
    time_ns = _nanoseconds(events, rows, phase, "ts")
    pids, tids = (
        _field(events, rows, phase, name, (int, str), "a number or a name")
        for name in ("pid", "tid")
    )
    place = [places.setdefault(each, len(places)) for each in zip(pids, tids, strict=True)]
    return _Phase(number=np.array(rows, np.int64), time_ns=time_ns, place=np.array(place, np.int64))


def _field(
    events: Sequence[Any],
    rows: list[int],
    phase: str,
    name: str,
    kinds: tuple[type, ...],
    expected: str,
) -> list[Any]:
    """One field of these events, of one of the types exactly: true is no number."""
    try:
        values = [events[row][name] for row in rows]
    except KeyError:
        row = next(row for row in rows if name not in events[row])
        raise TraceError(f"event {row} has no `{name}`: {_PHASES[phase]}") from None
    if not set(map(type, values)) <= set(kinds):
        row = next(row for row in rows if type(events[row][name]) not in kinds)
        raise TraceError(
            f"event {row}: `{name}` is {_shown(events[row][name])}; expected {expected}"
        )
    return values


def _nanoseconds(events: Sequence[Any], rows: list[int], phase: str, name: str) -> np.ndarray:
    """A time in the file's microseconds as int64 ns."""
    expected = "a number of microseconds, 0 or more"
    values = _field(events, rows, phase, name, (int, Decimal), expected)
    if values and not (min(values) >= 0 and max(values) < _MOST_US):
        row = next(row for row in rows if not 0 <= events[row][name] < _MOST_US)
        raise TraceError(
            f"event {row}: `{name}` is {_shown(events[row][name])}; expected {expected}"
        )
    return np.array([round(value * 1000) for value in values], np.int64)


def _pairs(
    events: Sequence[Any], begins: _Phase, ends: _Phase, others: Counter[str]
) -> tuple[list[int], list[int]]:
    """Rows of begins and ends that belong together; what has no other half goes to `others`."""
    marks = sorted(
        (place, time, number, row, is_end)
        for is_end, half in ((False, begins), (True, ends))
        for row, (place, time, number) in enumerate(
            zip(half.place.tolist(), half.time_ns.tolist(), half.number.tolist(), strict=True)
        )
    )
    begin, end = [], []
    now_open: dict[int, list[tuple[int, int]]] = {}
    for place, _, number, row, is_end in marks:
        stack = now_open.setdefault(place, [])
        if not is_end:
            stack.append((row, number))
        elif stack:
            opened, by = stack.pop()
            _same_name(events, by, number)
            begin.append(opened)
            end.append(row)
        else:
            others["ends without a begin"] += 1
    unended = sum(map(len, now_open.values()))
    if unended:
        others["begins without an end"] = unended
    return begin, end


def _same_name(events: Sequence[Any], begin: int, end: int) -> None:
    """Checks that an end is that of the begin: on one thread they nest."""
    ended, begun = events[end].get("name"), events[begin]["name"]
    if ended is not None and ended != begun:
        raise TraceError(
            f"event {end} ends {_shown(ended)}, but on its thread {begun!r} of event {begin} is "
            "open; expected begins and ends (ph B, ph E) that nest"
        )


def _names(
    events: Sequence[Any], rows: list[int]
) -> tuple[dict[Any, str], dict[Place, Mapping[str, Any]]]:
    """Names of processes, and what is known of threads."""
    processes: dict[Any, str] = {}
    threads: dict[Place, Mapping[str, Any]] = {}
    for row in rows:
        kind = events[row].get("name")
        if kind not in ("process_name", "thread_name"):
            continue
        args = args_of(events[row], row)
        if type(args.get("name")) is not str:
            raise TraceError(f"event {row} has no `args.name`: a {kind} (ph M) needs it as text")
        fields = ("pid",) if kind == "process_name" else ("pid", "tid")
        for field in fields:
            if type(events[row].get(field)) not in (int, str):
                raise TraceError(f"event {row} has no `{field}`: a {kind} (ph M) needs it")
        if kind == "process_name":
            processes[events[row]["pid"]] = args["name"]
        else:
            threads[events[row]["pid"], events[row]["tid"]] = args
    return processes, threads


def args_of(event: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """The args of an event, which may have none.

    Raises:
      TraceError: they are no object.
    """
    args = event.get("args")
    if args is None:
        return {}
    if type(args) is not dict:
        raise TraceError(f"event {number}: `args` is {_shown(args)}; expected an object")
    return args


def _no_phase(number: int, event: Any) -> TraceError:
    if type(event) is not dict:
        return TraceError(f"event {number} is {_shown(event)}; expected an object with a `ph`")
    if "ph" in event:
        return TraceError(f"event {number}: `ph` is {_shown(event['ph'])}; expected a letter")
    held = ", ".join(f"`{name}`" for name in list(event)[:5])
    return TraceError(
        f"event {number} has no `ph`, the phase, but {held}; expected Chrome trace events"
    )


def _shown(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"

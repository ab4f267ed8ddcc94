"""Events of a Chrome trace → slices as columns, each field checked. Needs no TensorFlow."""

from __future__ import annotations

import dataclasses
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from workbench.core.importing.faults import Faults
from workbench.core.trace.chrome_json import READY, WHERE_KNOWN

# Process and thread; None stands for the one row of a process whose events name no thread.
Place = tuple[Any, Any]

_NEEDED = {
    "X": "a complete event (ph X) needs name, ts and dur",
    "B": "a begin (ph B) needs name and ts",
    "E": "an end (ph E) needs ts",
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
_NAMES = ("process_name", "thread_name")
_WITHOUT_NAME = "names of processes or threads that say none"
# What readers of slices ask for; the rest of the args is not held.
_HELD_OF_OTHERS = ("name", "op", "device", "long_name", "step_num", "group_id")
_HELD_OF_OWN = ("step", *WHERE_KNOWN, "stage", "item", "run", READY)
_HELD = frozenset((*_HELD_OF_OTHERS, *_HELD_OF_OWN))
_NO_ARGS: Mapping[str, Any] = {}
# About 146 years: no sum of two such times leaves 64 bits.
_MOST_US = 1 << 52
_MOST_SHOWN = 60


class Slice(NamedTuple):
    """What a slice is: its name, its category, and those of its args that are read."""

    name: str
    category: Any
    args: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ChromeEvents:
    """The slices of a file, complete ones first, then pairs of begin and end.

    Attributes:
      number: int64 [slices], place in the file's list, from 0; of a pair that of its begin.
      start_ns, end_ns: int64 [slices], in this order, on the file's clock.
      place: int64 [slices], rows of `places`.
      slices: what each of them is.
      places: process and thread.
      processes: names of processes.
      threads: what the metadata say of threads, their "name" above all.
      left_out: how many events are no slices, by what they are.
    """

    number: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    place: np.ndarray
    slices: Sequence[Slice]
    places: Sequence[Place]
    processes: Mapping[Any, str]
    threads: Mapping[Place, Mapping[str, Any]]
    left_out: Mapping[str, int]


class _OddError(Exception):
    """An event that is left out; the message says what is wrong with it."""


@dataclasses.dataclass(eq=False)
class _Phase:
    """Events of one phase as columns, in the order of the file."""

    number: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    time_ns: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    place: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    slices: list[Slice] = dataclasses.field(default_factory=list)

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        number, time, place = (
            np.array(each, np.int64) for each in (self.number, self.time_ns, self.place)
        )
        return number, time, place


@dataclasses.dataclass(eq=False)
class _Collected:
    """What was read so far."""

    phases: dict[str, _Phase] = dataclasses.field(
        default_factory=lambda: {phase: _Phase() for phase in _NEEDED}
    )
    length_ns: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    places: dict[Place, int] = dataclasses.field(default_factory=dict)
    processes: dict[Any, str] = dataclasses.field(default_factory=dict)
    threads: dict[Place, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    others: Counter[str] = dataclasses.field(default_factory=Counter)
    # A million slices have a few hundred names.
    texts: dict[str, str] = dataclasses.field(default_factory=dict)


def chrome_events(events: Iterable[Any], faults: Faults) -> ChromeEvents:
    """The slices of these events.

    An event that lacks a field, or has one of the wrong type, goes to `faults`.

    Raises:
      TraceError: no event is a slice, and one has a fault; names event and field.
    """
    collected = _Collected()
    for number, event in enumerate(events):
        try:
            _add(collected, number, event)
        except _OddError as odd:
            faults.add(f"event {number}{odd}")
    complete, begins, ends = (collected.phases[phase] for phase in _NEEDED)
    begin, end = _pairs(begins, ends, collected.others)
    if not len(complete.number) and not begin:
        faults.raise_first()
    (row, time, place), opened, closed = (each.columns() for each in (complete, begins, ends))
    length = np.array(collected.length_ns, np.int64)
    return ChromeEvents(
        number=np.concatenate((row, opened[0][begin])),
        start_ns=np.concatenate((time, opened[1][begin])),
        end_ns=np.concatenate((time + length, closed[1][end])),
        place=np.concatenate((place, opened[2][begin])),
        slices=[*complete.slices, *(begins.slices[row] for row in begin)],
        places=list(collected.places),
        processes=collected.processes,
        threads=collected.threads,
        left_out=dict(collected.others),
    )


def _add(collected: _Collected, number: int, event: Any) -> None:
    phase = event.get("ph") if type(event) is dict else None
    if type(phase) is not str or phase not in _NEEDED:
        _add_other(collected, event, phase)
        return
    name = event.get("name")
    if type(name) is not str:
        if phase != "E":
            raise _wrong(event, phase, "name", "text")
        name = ""
    time = _nanoseconds(event, phase, "ts")
    length = _nanoseconds(event, phase, "dur") if phase == "X" else 0
    place = _place(event)
    args = event.get("args")
    if args is not None and type(args) is not dict:
        raise _OddError(f": `args` is {_shown(args)}; expected an object")
    texts = collected.texts
    held = _held(args, texts) if args and phase != "E" else _NO_ARGS
    # Nothing of an odd event is kept.
    if phase == "X":
        collected.length_ns.append(length)
    into = collected.phases[phase]
    into.number.append(number)
    into.time_ns.append(time)
    into.place.append(collected.places.setdefault(place, len(collected.places)))
    into.slices.append(Slice(texts.setdefault(name, name), event.get("cat"), held))


def _held(args: Mapping[str, Any], texts: dict[str, str]) -> Mapping[str, Any]:
    held = {
        name: texts.setdefault(value, value) if type(value) is str else value
        for name, value in args.items()
        if name in _HELD
    }
    return held or _NO_ARGS


def _add_other(collected: _Collected, event: Any, phase: Any) -> None:
    """Adds an event that is no slice; some writers close the list with one of no fields."""
    if phase == "M":
        _add_name(collected, event)
    elif type(phase) is str:
        collected.others[_OTHERS.get(phase, f"events of phase {phase[:1]!r}")] += 1
    elif event != {}:
        raise _no_phase(event)


def _add_name(collected: _Collected, event: Mapping[str, Any]) -> None:
    kind, args = event.get("name"), event.get("args")
    if kind not in _NAMES:
        return
    # Horovod's first one has the time of its start in place of a name.
    if type(args) is not dict or type(args.get("name")) is not str:
        collected.others[_WITHOUT_NAME] += 1
        return
    place = _place(event)
    if kind == "process_name":
        collected.processes[place[0]] = args["name"]
    else:
        collected.threads[place] = args


def _place(event: Mapping[str, Any]) -> Place:
    """Process and thread, both of which the format lets an event leave off."""
    process, thread = event.get("pid"), event.get("tid")
    for name, value in (("pid", process), ("tid", thread)):
        if value is not None and type(value) is not int and type(value) is not str:
            raise _OddError(f": `{name}` is {_shown(value)}; expected a number or a name")
    return 0 if process is None else process, thread


def _nanoseconds(event: Mapping[str, Any], phase: str, name: str) -> int:
    """A time in the file's microseconds as ns."""
    value = event.get(name)
    kind = type(value)
    if (kind is int or kind is Decimal) and 0 <= value < _MOST_US:  # type: ignore[operator]
        return round(value * 1000)  # type: ignore[operator]
    raise _wrong(event, phase, name, "a number of microseconds, 0 or more")


def _wrong(event: Mapping[str, Any], phase: str, name: str, expected: str) -> _OddError:
    if name not in event:
        return _OddError(f" has no `{name}`: {_NEEDED[phase]}")
    return _OddError(f": `{name}` is {_shown(event[name])}; expected {expected}")


def _pairs(begins: _Phase, ends: _Phase, others: Counter[str]) -> tuple[list[int], list[int]]:
    """Rows of begins and ends that belong together; what has no other half goes to `others`.

    On a thread they nest. An end that names a slice ends that one: those inside it have no end.
    """
    count = len(begins.number)
    number, time, place = (
        np.concatenate(each) for each in zip(begins.columns(), ends.columns(), strict=True)
    )
    begin, end = [], []
    now_open: dict[int, tuple[list[int], Counter[str]]] = {}
    lonely = 0
    for row in np.lexsort((number, time, place)).tolist():
        stack, names = now_open.setdefault(place[row], ([], Counter()))
        if row < count:
            stack.append(row)
            names[begins.slices[row].name] += 1
            continue
        name = ends.slices[row - count].name
        if not stack or (name and not names[name]):
            lonely += 1
            continue
        opened = stack.pop()
        names[begins.slices[opened].name] -= 1
        while name and begins.slices[opened].name != name:
            opened = stack.pop()
            names[begins.slices[opened].name] -= 1
        begin.append(opened)
        end.append(row - count)
    unended = count - len(begin)
    for what, found in (("ends without a begin", lonely), ("begins without an end", unended)):
        if found:
            others[what] = found
    return begin, end


def _no_phase(event: Any) -> _OddError:
    if type(event) is not dict:
        return _OddError(f" is {_shown(event)}; expected an object with a `ph`")
    if "ph" in event:
        return _OddError(f": `ph` is {_shown(event['ph'])}; expected a letter")
    held = ", ".join(f"`{name[:_MOST_SHOWN]}`" for name in list(event)[:5])
    return _OddError(f" has no `ph`, the phase, but {held}; expected Chrome trace events")


def _shown(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"

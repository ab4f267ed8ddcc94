"""Chrome trace JSON of any tool → Trace. Needs no TensorFlow."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.core.importing.chrome_events import (
    ChromeEvents,
    Place,
    args_of,
    chrome_events,
    event_list,
    parse_json,
)
from workbench.core.importing.chrome_own import is_own, own_trace
from workbench.core.importing.spans import (
    NO_GROUP,
    SUMMARIES,
    SUMMARY_LANES,
    Spans,
    name_and_op,
    step_number,
    trace_of,
)
from workbench.core.trace.meta import CHROME, TraceMeta
from workbench.core.trace.trace import Trace

# Where torch.profiler writes the moment from which its times count.
_BASE = "baseTimeNanoseconds"
# Steps are marked on the CPU; a mark on the GPU is the time of its kernels.
_GPU_MARK = "gpu_user_annotation"
_MOST_DIGITS = 18
# A million slices have a few hundred names.
_split = functools.lru_cache(1 << 16)(name_and_op)
_numbered = functools.lru_cache(1 << 16)(step_number)


def chrome_trace(data: bytes, title: str) -> Trace:
    """The Trace of a Chrome JSON file.

    Raises:
      TraceError: it is not JSON, holds no events, or an event is malformed.
    """
    document = parse_json(data)
    events = chrome_events(event_list(document))
    notes = document if isinstance(document, dict) else {}
    if is_own(notes):
        return own_trace(notes["otherData"], events)
    return _trace(notes, events, title)


def _trace(notes: Mapping[str, Any], events: ChromeEvents, title: str) -> Trace:
    base = notes.get(_BASE)
    moment = base if type(base) is int and 0 <= base < 1 << 62 else 0
    shown, left_out = _without_summaries(events)
    step, group, node, nodes = _read(events, shown)
    return trace_of(
        Spans(
            start_ns=events.start_ns[shown] + moment,
            end_ns=events.end_ns[shown] + moment,
            node=node,
            thread=events.place[shown],
            group=group,
            step=step,
            nodes=nodes,
            threads=_thread_names(events),
        ),
        TraceMeta(title=title, source=CHROME, left_out=left_out),
    )


def _without_summaries(events: ChromeEvents) -> tuple[np.ndarray, dict[str, int]]:
    """The slices of lanes that sum up no others, and all that is left out."""
    summing = np.array([_is_summary(events, place) for place in events.places], bool)
    shown = np.flatnonzero(~summing[events.place])
    left_out = dict(events.left_out)
    if len(shown) < len(events.place):
        left_out[SUMMARIES] = len(events.place) - len(shown)
    return shown, left_out


def _is_summary(events: ChromeEvents, place: Place) -> bool:
    of_device = events.processes.get(place[0], "").startswith("/device:")
    return of_device and events.threads.get(place, {}).get("name") in SUMMARY_LANES


def _read(
    events: ChromeEvents, shown: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[tuple[str, str, str]]]:
    """Of these slices the step that they mark, their group and their node; and the nodes."""
    devices = [events.processes.get(pid, f"process {pid}") for pid, _ in events.places]
    nodes: dict[tuple[str, str, str], int] = {}
    steps, groups, rows = [], [], []
    places, numbers = events.place[shown].tolist(), events.number[shown].tolist()
    for row, place, number in zip(shown.tolist(), places, numbers, strict=True):
        event = events.events[row]
        args = args_of(event, number)
        steps.append(_marked_step(event, args))
        groups.append(_whole(args.get("group_id"), NO_GROUP))
        node = _node(event["name"], args, devices[place])
        rows.append(nodes.setdefault(node, len(nodes)))
    step, group, node_rows = (np.array(each, np.int64) for each in (steps, groups, rows))
    return step, group, node_rows, list(nodes)


def _marked_step(event: Mapping[str, Any], args: Mapping[str, Any]) -> int:
    """The number of the step that a slice marks, -1 for work."""
    if "step_num" in args:
        return _whole(args["step_num"], -1)
    if event.get("cat") == _GPU_MARK or "op" in args:
        return -1
    return _numbered(event["name"])


def _node(name: str, args: Mapping[str, Any], device: str) -> tuple[str, str, str]:
    """Name, op type and device of a slice, from its name and what its args say of them."""
    if not args:
        return (*_split(name), device)
    full, op, placed = args.get("long_name"), args.get("op"), args.get("device")
    node, kind = _split(full if type(full) is str else name)
    if type(op) is str:
        # TensorFlow's timeline names a slice by its type, and its node in the args.
        held = args.get("name")
        node, kind = held if type(held) is str else name, op
    return node, kind, placed if type(placed) is str else device


def _whole(value: Any, otherwise: int) -> int:
    """A whole number, which some tools write as text."""
    if type(value) is str and value.isdecimal() and len(value) < _MOST_DIGITS:
        value = int(value)
    return value if type(value) is int and 0 <= value < 10**_MOST_DIGITS else otherwise


def _thread_names(events: ChromeEvents) -> list[str]:
    """Names of the places; where several processes did something, with that of the process."""
    several = len({pid for pid, _ in events.places}) > 1
    names = []
    for pid, tid in events.places:
        process = events.processes.get(pid, f"process {pid}")
        thread = events.threads.get((pid, tid), {}).get("name")
        if thread is None:
            names.append(f"{process} {tid}" if several else f"thread {tid}")
        else:
            names.append(f"{process}: {thread}" if several else thread)
    return names

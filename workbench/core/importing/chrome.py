"""Chrome trace JSON of any tool → Trace. Needs no TensorFlow."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from workbench.core.importing.chrome_events import ChromeEvents, Place, Slice, chrome_events
from workbench.core.importing.chrome_own import is_own, own_trace
from workbench.core.importing.chrome_text import BASE, CUT, OWN, ChromeText
from workbench.core.importing.faults import Faults
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
from workbench.errors import TraceError

# Steps are marked on the CPU; a mark on the GPU is the time of its kernels.
_GPU_MARK = "gpu_user_annotation"
_MOST_DIGITS = 18
# A million slices have a few hundred names.
_split = functools.lru_cache(1 << 16)(name_and_op)
_numbered = functools.lru_cache(1 << 16)(step_number)


def chrome_trace(read: Callable[[int], bytes], title: str, is_cut: Callable[[], bool]) -> Trace:
    """The Trace of a Chrome JSON file.

    Args:
      read: the next bytes, about as many as it is asked for; none at the end.
      title: of the trace.
      is_cut: whether the file has turned out to end too early.

    Raises:
      TraceError: it is no JSON, holds no events, or none of them is whole.
    """
    faults = Faults()
    text = ChromeText(read, faults)
    events = chrome_events(text.events(), faults)
    cut = text.cut or is_cut()
    if cut and not len(events.slices):
        raise TraceError("it is cut off before its first event is whole; write or copy it again")
    damage = {**faults.left_out(), **({CUT: 1} if cut else {})}
    if is_own(text.notes):
        trace = own_trace(text.notes[OWN], events)
    else:
        trace = _trace(text.notes, events, title)
    left_out = {**trace.meta.left_out, **damage}
    return dataclasses.replace(trace, meta=dataclasses.replace(trace.meta, left_out=left_out))


def _trace(notes: Mapping[str, Any], events: ChromeEvents, title: str) -> Trace:
    base = notes.get(BASE)
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
    for row, place in zip(shown.tolist(), events.place[shown].tolist(), strict=True):
        what = events.slices[row]
        steps.append(_marked_step(what))
        groups.append(_whole(what.args.get("group_id"), NO_GROUP))
        node = _node(what.name, what.args, devices[place])
        rows.append(nodes.setdefault(node, len(nodes)))
    step, group, node_rows = (np.array(each, np.int64) for each in (steps, groups, rows))
    return step, group, node_rows, list(nodes)


def _marked_step(what: Slice) -> int:
    """The number of the step that a slice marks, -1 for work."""
    if "step_num" in what.args:
        return _whole(what.args["step_num"], -1)
    if what.category == _GPU_MARK or "op" in what.args:
        return -1
    return _numbered(what.name)


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
        if thread is None and tid is None:
            names.append(process)
        elif thread is None:
            names.append(f"{process} {tid}" if several else f"thread {tid}")
        else:
            names.append(f"{process}: {thread}" if several else thread)
    return names

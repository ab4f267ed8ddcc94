"""XSpace of `tf.profiler` → Trace; reads the message, needs no TensorFlow itself."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

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
from workbench.core.trace.meta import PROFILER, TraceMeta
from workbench.core.trace.trace import Trace

_LOG = logging.getLogger("workbench")
_ENVIRONMENT, _BEGUN = "Task Environment", "profile_start_time"
_STEP, _GROUP, _OP = "step_num", "group_id", "tf_op"
_READ = frozenset((_STEP, _GROUP, _OP))
_MOST_DIGITS = 18
_PS = 1000
# No sum of two such times leaves 64 bits.
_MOST_NS = 1 << 61


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What the events of one id of a plane are: node and op type; the step that a name marks."""

    node: str
    op: str
    step: int


@dataclasses.dataclass(eq=False)
class _Columns:
    """What is collected, plane by plane.

    Attributes:
      rows: of each span start_ns, end_ns, node, thread, group and step, as `Spans` has them.
      nodes: row of each node.
      names: of threads.
      left_out: events that are no spans, by what they are.
      faults: events that lack something.
    """

    rows: list[tuple[int, ...]] = dataclasses.field(default_factory=list)
    nodes: dict[tuple[str, str, str], int] = dataclasses.field(default_factory=dict)
    names: list[str] = dataclasses.field(default_factory=list)
    left_out: Counter[str] = dataclasses.field(default_factory=Counter)
    faults: Faults = dataclasses.field(default_factory=Faults)


def xspace_trace(space: Any, title: str) -> Trace:
    """The Trace of a profile: one track for each line of its planes.

    Raises:
      TraceError: it holds no events, or all of them lack a field; names plane, line and event.
    """
    begun_ns = _begun_ns(space)
    columns = _Columns()
    filled = [plane for plane in space.planes if any(line.events for line in plane.lines)]
    for plane in filled:
        _add_plane(columns, plane, begun_ns, f"{plane.name}: " if len(filled) > 1 else "")
    if not columns.rows:
        columns.faults.raise_first()
    table = np.array(columns.rows, np.int64).reshape(-1, 6)
    start, end, node, thread, group, step = table.T
    if space.errors:
        _LOG.warning("%s: the profiler itself reported: %s", title or "import", space.errors[0])
    spans = Spans(
        start_ns=start,
        end_ns=end,
        node=node,
        thread=thread,
        group=group,
        step=step,
        nodes=list(columns.nodes),
        threads=columns.names,
    )
    left_out = {**columns.left_out, **columns.faults.left_out()}
    return trace_of(spans, TraceMeta(title=title, source=PROFILER, left_out=left_out))


def _begun_ns(space: Any) -> int:
    """When the profile began, from which newer ones count; 0 where it does not say."""
    for plane in space.planes:
        if plane.name == _ENVIRONMENT:
            names = {number: held.name for number, held in plane.stat_metadata.items()}
            for stat in plane.stats:
                if names.get(stat.metadata_id) == _BEGUN:
                    return min(int(stat.uint64_value or stat.int64_value), _MOST_NS - 1)
    return 0


def _add_plane(columns: _Columns, plane: Any, begun_ns: int, prefix: str) -> None:
    stats = {number: held.name for number, held in plane.stat_metadata.items()}
    kinds = {
        number: _kind(held, _stats(held.stats, stats))
        for number, held in plane.event_metadata.items()
    }
    threads: dict[int, int] = {}
    for line in plane.lines:
        name = line.display_name or line.name or f"line {line.id}"
        if plane.name.startswith("/device:") and name in SUMMARY_LANES:
            columns.left_out[SUMMARIES] += len(line.events)
            continue
        # Lines of one id are one thread.
        thread = threads.setdefault(line.id, len(columns.names))
        if thread == len(columns.names):
            columns.names.append(prefix + name)
        # Times before a profile's begin count from there.
        relative = 0 <= line.timestamp_ns < begun_ns // 2
        line_ps = (line.timestamp_ns + (begun_ns if relative else 0)) * _PS
        where = f"plane `{plane.name}`, line `{name}`, event "
        for start_ns, end_ns, kind, held in _events(columns, line, line_ps, kinds, stats, where):
            node = (*_node(kind, held), plane.name)
            row = columns.nodes.setdefault(node, len(columns.nodes))
            group, step = _whole(held, _GROUP, NO_GROUP), _whole(held, _STEP, kind.step)
            columns.rows.append((start_ns, end_ns, row, thread, group, step))


def _events(
    columns: _Columns,
    line: Any,
    line_ps: int,
    kinds: Mapping[int, _Kind | None],
    stats: Mapping[int, str],
    where: str,
) -> Iterator[tuple[int, int, _Kind, Mapping[str, Any]]]:
    """The spans of a line: start and end in ns, kind, stats; counts what is no span."""
    for number, event in enumerate(line.events):
        times = _times(columns, event, line_ps, where, number)
        if times is None:
            continue
        kind = kinds.get(event.metadata_id)
        if kind is not None:
            yield *times, kind, _stats(event.stats, stats)
        elif event.metadata_id in kinds:
            columns.faults.add(f"{where}{number}: event type {event.metadata_id} has no `name`")
        else:
            columns.faults.add(
                f"{where}{number}: `metadata_id` {event.metadata_id} is not in the plane's "
                "`event_metadata`, which name events"
            )


def _times(
    columns: _Columns, event: Any, line_ps: int, where: str, number: int
) -> tuple[int, int] | None:
    """Start and end in ns; None for an event that is no span or has a fault: it is counted."""
    held = event.WhichOneof("data")
    if held == "num_occurrences":
        columns.left_out["sums of events"] += 1
        return None
    if held is None:
        columns.faults.add(f"{where}{number} has no `offset_ps`: an event needs a start")
        return None
    start_ps, length_ps = line_ps + event.offset_ps, event.duration_ps
    if length_ps == 0:
        columns.left_out["instants"] += 1
        return None
    for field, value in (("offset_ps", start_ps), ("duration_ps", length_ps)):
        if not 0 <= value < _MOST_NS * _PS:
            columns.faults.add(
                f"{where}{number}: `{field}` is {getattr(event, field)}; expected a time of 0 or "
                "more, counted from the line's `timestamp_ns`"
            )
            return None
    return start_ps // _PS, (start_ps + length_ps) // _PS


def _kind(held: Any, stats: Mapping[str, Any]) -> _Kind | None:
    """What events of this type are; None where it has no name."""
    name = held.name or held.display_name
    if not name:
        return None
    node, op = name_and_op(name)
    if node == name:
        # A call of the runtime: "EagerExecute: MatMul", or a stage of tf.data that is shown short.
        op = held.display_name or name.partition(": ")[0]
    return _Kind(*_node(_Kind(node, op, -1), stats), step_number(name))


def _node(kind: _Kind, stats: Mapping[str, Any]) -> tuple[str, str]:
    """Node and type: those of the op that a kernel belongs to, where the profiler says it."""
    of = stats.get(_OP) if stats else None
    return name_and_op(of) if isinstance(of, str) and of else (kind.node, kind.op)


def _stats(held: Any, names: Mapping[int, str]) -> dict[str, Any]:
    """Those of an event, or of a kind, that say what it belongs to."""
    found: dict[str, Any] = {}
    for stat in held:
        name = names.get(stat.metadata_id)
        if name in _READ:
            kind = stat.WhichOneof("value")
            value: Any = getattr(stat, kind) if kind else None
            found[name] = names.get(value) if kind == "ref_value" else value
    return found


def _whole(stats: Mapping[str, Any], name: str, otherwise: int) -> int:
    """A number of steps or groups, also as text."""
    value = stats.get(name) if stats else None
    if isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS:
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 10**_MOST_DIGITS else otherwise

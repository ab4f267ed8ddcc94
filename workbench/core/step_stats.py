"""RunMetadata step stats → columns of ops: the tracer that stock TensorFlow brings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

_BOOKKEEPING = frozenset({"_SOURCE", "_SINK"})
# RunOptions.TraceLevel. A server collects step stats for the highest level only; in a local session
# that level would start TensorFlow's profiler as well.
_SOFTWARE_TRACE, _FULL_TRACE = 1, 3


def trace_level(session: Any) -> int:
    """The `RunOptions.trace_level` at which runs of this raw session return step stats."""
    return _FULL_TRACE if server_of(session) else _SOFTWARE_TRACE


def server_of(session: Any) -> str:
    """Address of the server that runs the session's steps; empty for a local session."""
    target = getattr(session, "sess_str", "") or ""
    return target.decode() if isinstance(target, bytes) else str(target)


@dataclasses.dataclass(frozen=True, slots=True)
class OpSpan:
    """One executed op; times in ns of the wall clock, thread as the operating system counts."""

    name: str
    op: str
    device: str
    thread: int
    scheduled_ns: int
    start_ns: int
    end_ns: int


def op_spans(metadata: Any) -> Iterator[OpSpan]:
    """The ops of one run, in the order of the stats.

    Args:
      metadata: a `RunMetadata` of a run with trace level SOFTWARE_TRACE or above.

    Yields:
      One span per executed node; the executor's own source and sink are left out.
    """
    for device_stats in metadata.step_stats.dev_stats:
        device = device_stats.device
        for stats in device_stats.node_stats:
            if stats.node_name in _BOOKKEEPING:
                continue
            start_ns = stats.all_start_nanos or stats.all_start_micros * 1000
            scheduled_ns = stats.scheduled_nanos or stats.scheduled_micros * 1000 or start_ns
            yield OpSpan(
                name=stats.node_name,
                op=_op_type(stats.timeline_label, stats.node_name),
                device=device,
                thread=stats.thread_id,
                scheduled_ns=min(scheduled_ns, start_ns),
                start_ns=start_ns,
                end_ns=start_ns + max(stats.op_end_rel_nanos, stats.all_end_rel_nanos, 0),
            )


def _op_type(label: str, name: str) -> str:
    """The op type out of a label such as "name = MatMul(a, b)"; a label is free text."""
    if label.startswith(name):
        label = label[len(name) :]
    before, found, rest = label.partition(" = ")
    op = (rest if found else before.lstrip(" =")).partition("(")[0].strip()
    return op or "Unknown"

"""RunMetadata step stats → columns of ops: the tracer that stock TensorFlow brings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

# The executor's own first and last node.
BOOKKEEPING = frozenset({"_SOURCE", "_SINK"})
NODE_COLUMNS = ["name", "op", "device"]
# RunOptions.TraceLevel. A server collects step stats for the highest level only; in a local session
# that level would start TensorFlow's profiler as well.
_SOFTWARE_TRACE, _FULL_TRACE = 1, 3
_OWN_EXECUTORS = "WORKBENCH_"


def trace_level(session: Any) -> int:
    """The `RunOptions.trace_level` at which runs of this raw session return step stats."""
    return _FULL_TRACE if server_of(session) else _SOFTWARE_TRACE


def traced_by_executor(session: Any) -> bool:
    """Whether this raw session runs on one of Workbench's executors, which record their ops."""
    return records_ops(getattr(session, "_config", None)) and not server_of(session)


def records_ops(config: Any) -> bool:
    """Whether the executor of a local session with this ConfigProto, or None, records its ops."""
    kind = config.experimental.executor_type if config is not None else ""
    return kind.startswith(_OWN_EXECUTORS)


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


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OpColumns:
    """The ops that recorded runs executed, whichever tracer saw them; one row each, in any order.

    Attributes:
      run: int64 [ops], number of the run in the list of runs that were recorded.
      node: int64 [ops], rows of `nodes`.
      thread: int64 [ops], the operating system's id of the thread; 0 where it is not known.
      scheduled_ns, start_ns, end_ns: int64 [ops], of the wall clock; in this order.
      nodes: name, op (type) and device, each combination once.
      run_of_step: the run of each of TensorFlow's step ids, where the tracer knows them.
      thread_names: names of threads by id, where the tracer knows them.
    """

    run: np.ndarray
    node: np.ndarray
    thread: np.ndarray
    scheduled_ns: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    nodes: pd.DataFrame
    run_of_step: Mapping[int, int] = dataclasses.field(default_factory=dict)
    thread_names: Mapping[int, str] = dataclasses.field(default_factory=dict)

    def rows(self, which: np.ndarray) -> OpColumns:
        """These ops, by row numbers or a mask; the nodes stay."""
        if which.dtype == bool and which.all():
            return self
        names = ("run", "node", "thread", "scheduled_ns", "start_ns", "end_ns")
        return dataclasses.replace(self, **{name: getattr(self, name)[which] for name in names})


def stats_columns(runs: Sequence[Any]) -> OpColumns:
    """The ops of several runs.

    Args:
      runs: the `RunMetadata` of each; None is a run without ops.
    """
    nodes: dict[tuple[str, str, str], int] = {}
    rows = [
        (
            run,
            nodes.setdefault((span.name, span.op, span.device), len(nodes)),
            span.thread,
            span.scheduled_ns,
            span.start_ns,
            span.end_ns,
        )
        for run, metadata in enumerate(runs)
        if metadata is not None
        for span in op_spans(metadata)
    ]
    table = np.array(rows, np.int64).reshape(-1, 6)
    return OpColumns(
        run=table[:, 0],
        node=table[:, 1],
        thread=table[:, 2],
        scheduled_ns=table[:, 3],
        start_ns=table[:, 4],
        end_ns=table[:, 5],
        nodes=pd.DataFrame(list(nodes), columns=NODE_COLUMNS),
    )


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
            if stats.node_name in BOOKKEEPING:
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

"""RunMetadata step stats → columns of ops: the tracer that stock TensorFlow brings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.capture.server_partitions import is_partition
from workbench.core.capture.step_transfers import is_transfer, transfer_row
from workbench.core.trace.op_columns import NODE_COLUMNS, TRANSFER_COLUMNS, OpColumns

_LONGEST_WAIT_NS = 24 * 3600 * 10**9
# The executor's own first and last node.
BOOKKEEPING = frozenset({"_SOURCE", "_SINK"})


@dataclasses.dataclass(frozen=True, slots=True)
class OpSpan:
    """One executed op; times in ns of the wall clock, thread as the operating system counts.

    `made_ns` is when its kernel had ended: no one can have had its outputs before.
    """

    name: str
    op: str
    device: str
    thread: int
    scheduled_ns: int
    start_ns: int
    made_ns: int
    end_ns: int


def stats_columns(runs: Sequence[Any]) -> OpColumns:
    """The ops of several runs.

    Args:
      runs: the `RunMetadata` of each; None is a run without ops.
    """
    nodes: dict[tuple[str, str, str], int] = {}
    rows: list[tuple[int, ...]] = []
    transfers: list[tuple[int, ...]] = []
    for run, metadata in enumerate(runs):
        if metadata is None:
            continue
        ran_ops: dict[tuple[str, str], tuple[str, int]] = {}
        for span in op_spans(metadata):
            node = nodes.setdefault((span.name, span.op, span.device), len(nodes))
            rows.append((run, node, span.thread, span.scheduled_ns, span.start_ns, span.end_ns))
            key = (span.device, span.name)
            ran_ops[key] = (span.op, -1 if key in ran_ops else span.made_ns)
        received = (
            s for d in metadata.step_stats.dev_stats for s in d.node_stats if is_transfer(s)
        )
        transfers += [(run, *transfer_row(stats, ran_ops, nodes)) for stats in received]
    table = np.array(rows, np.int64).reshape(-1, 6)
    return OpColumns(
        run=table[:, 0],
        node=table[:, 1],
        thread=table[:, 2],
        scheduled_ns=table[:, 3],
        start_ns=table[:, 4],
        end_ns=table[:, 5],
        nodes=pd.DataFrame(list(nodes), columns=NODE_COLUMNS),
        transfers=pd.DataFrame(transfers, columns=TRANSFER_COLUMNS, dtype=np.int64),
    )


def op_spans(metadata: Any) -> Iterator[OpSpan]:
    """The ops of one run, in the order of the stats.

    Args:
      metadata: a `RunMetadata` of a run with trace level SOFTWARE_TRACE or above.

    Yields:
      One span per executed node. The executor's own source and sink, records of tensors that were
      received from other tasks, and nodes that run a whole partition are left out.
    """
    for device_stats in metadata.step_stats.dev_stats:
        device = device_stats.device
        for stats in device_stats.node_stats:
            if stats.node_name in BOOKKEEPING or is_transfer(stats) or is_partition(stats):
                continue
            start_ns = stats.all_start_nanos or stats.all_start_micros * 1000
            length_ns = max(stats.op_end_rel_nanos, stats.all_end_rel_nanos, 0)
            # Old versions write microseconds alone.
            length_ns = length_ns or 1000 * max(
                stats.op_end_rel_micros, stats.all_end_rel_micros, 0
            )
            yield OpSpan(
                name=stats.node_name,
                op=_op_type(stats.timeline_label, stats.node_name),
                device=device,
                thread=stats.thread_id,
                scheduled_ns=_scheduled_ns(stats, start_ns),
                start_ns=start_ns,
                made_ns=start_ns + max(0, stats.op_end_rel_nanos),
                end_ns=start_ns + length_ns,
            )


def _scheduled_ns(stats: Any, start_ns: int) -> int:
    """When an op became ready; its start where that isn't known.

    TensorFlow 2.18 and 2.19 write the nanoseconds times 1000, of which 64 bits remain; what an op
    waited follows from them, as no op waits for months.
    """
    noted = stats.scheduled_nanos or stats.scheduled_micros * 1000 or start_ns
    waited = start_ns - noted
    if not 0 <= waited < _LONGEST_WAIT_NS:
        waited, rest = divmod((1000 * start_ns - noted) % 2**64, 1000)
        if rest or waited >= _LONGEST_WAIT_NS:
            waited = 0
    return start_ns - waited


def _op_type(label: str, name: str) -> str:
    """The op type out of a label such as "name = MatMul(a, b)"; a label is free text."""
    if label.startswith(name):
        label = label[len(name) :]
    before, found, rest = label.partition(" = ")
    op = (rest if found else before.lstrip(" =")).partition("(")[0].strip()
    return op or "Unknown"

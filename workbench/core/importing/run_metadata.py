"""RunMetadata or StepStats of steps → Trace; reads the messages, needs no TensorFlow itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from workbench.core.capture.step_stats import BOOKKEEPING, stats_columns
from workbench.core.trace.builder import StepRecord, build_trace
from workbench.core.trace.intervals import sub_rows
from workbench.core.trace.meta import STEP_STATS, TraceMeta
from workbench.core.trace.op_columns import OpColumns
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError

# No sum of two such times leaves 64 bits.
_MOST = 1 << 61
_STARTS = ("all_start_nanos", "all_start_micros")
_TIMES = {
    "all_start_nanos": 1,
    "op_end_rel_nanos": 1,
    "all_end_rel_nanos": 1,
    "all_start_micros": 1000,
    "op_end_rel_micros": 1000,
    "all_end_rel_micros": 1000,
}


@dataclasses.dataclass(frozen=True)
class _Run:
    """What a RunMetadata is here, where only its StepStats were kept."""

    step_stats: Any


def run_metadata_trace(messages: Sequence[Any], title: str) -> Trace:
    """The Trace of steps, one for each message, numbered from 1 in this order.

    A step goes from its first op to its last. Steps that overlap are of several clients.

    Raises:
      TraceError: a step has no ops, or an op lacks a field.
    """
    runs = [message if hasattr(message, "step_stats") else _Run(message) for message in messages]
    for number, run in enumerate(runs):
        _check(run.step_stats, f"step {number + 1}")
    ops = stats_columns(runs)
    steps = list(_steps(ops, len(runs)))
    return build_trace(steps, [], {}, TraceMeta(title=title, source=STEP_STATS), ops)


def _steps(ops: OpColumns, runs: int) -> Iterator[StepRecord]:
    first, last = np.full(runs, np.iinfo(np.int64).max), np.zeros(runs, np.int64)
    np.minimum.at(first, ops.run, ops.start_ns)
    np.maximum.at(last, ops.run, ops.end_ns)
    order = np.argsort(first, kind="stable")
    client = np.zeros(runs, np.int64)
    client[order] = sub_rows(first[order], last[order])
    for run, columns in enumerate(zip(client.tolist(), first.tolist(), last.tolist(), strict=True)):
        own, start, end = columns
        yield StepRecord(number=run + 1, client=own, start_ns=start, end_ns=end)


def _check(step_stats: Any, step: str) -> None:
    """Checks every field that an op's times and names come from."""
    ops = 0
    for place, device in enumerate(step_stats.dev_stats):
        if not device.device:
            raise TraceError(f"{step}: dev_stats {place} has no `device`; expected its name")
        for number, node in enumerate(device.node_stats):
            where = f"{step}: node_stats {number} of device `{device.device}`"
            if not node.node_name:
                raise TraceError(f"{where} has no `node_name`; an op needs a name and a start")
            _check_times(node, f"{where} (`{node.node_name}`)")
            ops += node.node_name not in BOOKKEEPING
    if not ops:
        raise TraceError(
            f"{step} has no `node_stats`: it was run without a trace; run it with "
            "options=RunOptions(trace_level=RunOptions.SOFTWARE_TRACE)"
        )


def _check_times(node: Any, where: str) -> None:
    for field, nanoseconds in _TIMES.items():
        value = getattr(node, field)
        if not 0 <= value < _MOST // nanoseconds:
            raise TraceError(f"{where}: `{field}` is {value}; expected a time of 0 or more")
    if not any(getattr(node, field) for field in _STARTS):
        raise TraceError(f"{where} has no `{'` or `'.join(_STARTS)}`; an op needs a start")

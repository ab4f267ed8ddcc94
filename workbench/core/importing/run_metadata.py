"""RunMetadata or StepStats of steps → Trace; reads the messages, needs no TensorFlow itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from workbench.core.capture.step_stats import BOOKKEEPING, stats_columns
from workbench.core.importing.faults import Faults
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
    """What a RunMetadata is here."""

    step_stats: Any


def run_metadata_trace(messages: Sequence[Any], title: str) -> Trace:
    """The Trace of steps, one for each message, numbered from 1 in this order.

    A step goes from its first op to its last. Steps that overlap are of several clients.

    Raises:
      TraceError: a step has no ops, or all of them lack a field.
    """
    faults = Faults()
    runs = [
        _Run(_whole(getattr(message, "step_stats", message), f"step {number}", faults))
        for number, message in enumerate(messages, start=1)
    ]
    ops = stats_columns(runs)
    steps = list(_steps(ops, len(runs)))
    meta = TraceMeta(title=title, source=STEP_STATS, left_out=faults.left_out())
    return build_trace(steps, [], {}, meta, ops)


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


def _whole(step_stats: Any, step: str, faults: Faults) -> Any:
    """The stats without ops that lack what their times and names come from.

    Raises:
      TraceError: no op is left.
    """
    before, odd, ops = faults.count, [], 0
    for place, device in enumerate(step_stats.dev_stats):
        for number, node in enumerate(device.node_stats):
            fault = _fault(device, place, number, node)
            if fault:
                odd.append((place, number))
                faults.add(f"{step}: {fault}")
            else:
                ops += node.node_name not in BOOKKEEPING
    if not ops and faults.count > before:
        faults.raise_first()
    if not ops:
        raise TraceError(
            f"{step} has no `node_stats`: it was run without a trace; run it with "
            "options=RunOptions(trace_level=RunOptions.SOFTWARE_TRACE)"
        )
    if not odd:
        return step_stats
    whole = type(step_stats)()
    whole.CopyFrom(step_stats)
    for place, number in reversed(odd):
        del whole.dev_stats[place].node_stats[number]
    return whole


def _fault(device: Any, place: int, number: int, node: Any) -> str:
    """What an op lacks; empty for a whole one."""
    if not device.device:
        return f"dev_stats {place} has no `device`; expected its name"
    where = f"node_stats {number} of device `{device.device}`"
    if not node.node_name:
        return f"{where} has no `node_name`; an op needs a name and a start"
    where = f"{where} (`{node.node_name}`)"
    for field, nanoseconds in _TIMES.items():
        value = getattr(node, field)
        if not 0 <= value < _MOST // nanoseconds:
            return f"{where}: `{field}` is {value}; expected a time of 0 or more"
    if not any(getattr(node, field) for field in _STARTS):
        return f"{where} has no `{'` or `'.join(_STARTS)}`; an op needs a start"
    return ""

"""Traced runs and buffer events → Trace. Reads protos by their fields; needs no TensorFlow."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from workbench.core.step_stats import OpSpan, op_spans
from workbench.core.trace import Trace
from workbench.core.trace_tables import column_names

# Columns of a buffer's event log, and the two kinds of event in it.
_KIND, _ITEM, _WHO, _START, _END, _SIZE = range(6)
_PUT, _TAKE = 0, 1
# The buffer's own ops: all they do is wait, and the items say for how long.
_WAITING_OPS = frozenset({"WorkbenchBufferPut", "WorkbenchBufferTake"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One traced run of the main step; times in ns of the wall clock."""

    number: int
    client: int
    start_ns: int
    end_ns: int
    metadata: Any


class StageRecord(Protocol):
    """One traced run of a staged side."""

    @property
    def stage(self) -> str: ...
    @property
    def thread(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def metadata(self) -> Any: ...


def build_trace(
    steps: Sequence[StepRecord],
    stage_runs: Sequence[StageRecord],
    buffer_events: Mapping[str, Any],
    meta: Mapping[str, Any],
) -> Trace:
    """Makes a Trace of what was recorded.

    Args:
      steps: traced runs of the main step, at least one.
      stage_runs: traced runs of the stages.
      buffer_events: per stage the rows (kind, item, thread or step id, start_ns, end_ns, size).
      meta: what to note beside it.

    Returns:
      The Trace; its times are as recorded, not shifted.
    """
    build = _Build()
    takes: list[tuple[OpSpan, int, int]] = []
    ops: list[tuple[OpSpan, int]] = []
    for record in sorted(steps, key=lambda r: r.start_ns):
        track = build.client_track(record.client)
        build.run(track, record.number, record.start_ns, record.end_ns)
        for span in op_spans(record.metadata):
            if span.op == "WorkbenchBufferTake":
                takes.append((span, record.number, track))
            elif span.op not in _WAITING_OPS:
                ops.append((span, record.number))
    threads_known = any(span.thread for span, _ in ops)
    threads = [span.thread for span, _ in ops] if threads_known else _overlap_rows(ops)
    for (span, number), thread in zip(ops, threads, strict=True):
        build.event(span, build.thread_track(thread), number)
    for run in sorted(stage_runs, key=lambda r: r.start_ns):
        track = build.prefetch_track(run.stage, run.thread)
        build.run(track, run.number, run.start_ns, run.end_ns)
        for span in op_spans(run.metadata):
            if span.op not in _WAITING_OPS:
                build.event(span, track, run.number)
    for stage, events in buffer_events.items():
        build.items_of(stage, np.asarray(events, np.int64).reshape(-1, 6), takes, stage_runs)
    return build.trace(
        {
            **meta,
            "threads": "recorded" if threads_known else "inferred from overlap",
            "occupancy_at_start": _occupancy_at_start(buffer_events),
        }
    )


class _Build:
    """The tables of a trace while they grow."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str, str], int] = {}
        self._tracks: dict[tuple[str, str, int], int] = {}
        self._events: list[tuple[int, int, int, int, int, int]] = []
        self._runs: list[tuple[int, int, int, int]] = []
        self._items: list[dict[str, Any]] = []

    def client_track(self, client: int) -> int:
        return self._tracks.setdefault(("step", "", client), len(self._tracks))

    def thread_track(self, thread: int) -> int:
        return self._tracks.setdefault(("inter_op", "", thread), len(self._tracks))

    def prefetch_track(self, stage: str, thread: int) -> int:
        return self._tracks.setdefault(("prefetch", stage, thread), len(self._tracks))

    def run(self, track: int, number: int, start_ns: int, end_ns: int) -> None:
        self._runs.append((track, number, start_ns, end_ns))

    def event(self, span: OpSpan, track: int, step: int) -> None:
        node = self._nodes.setdefault((span.name, span.op, span.device), len(self._nodes))
        self._events.append(
            (
                span.start_ns,
                span.end_ns - span.start_ns,
                span.start_ns - span.scheduled_ns,
                node,
                track,
                step,
            )
        )

    def items_of(
        self,
        stage: str,
        events: np.ndarray,
        takes: Sequence[tuple[OpSpan, int, int]],
        stage_runs: Iterable[StageRecord],
    ) -> None:
        puts = {int(row[_ITEM]): row for row in events if row[_KIND] == _PUT}
        taken = {int(row[_ITEM]): row for row in events if row[_KIND] == _TAKE}
        own_takes = [take for take in takes if take[0].name.startswith(f"{stage}/")]
        own_runs = [run for run in stage_runs if run.stage == stage]
        for item in sorted(puts.keys() | taken.keys()):
            put, take = puts.get(item), taken.get(item)
            row = {
                "stage": stage,
                "item": item,
                "put_start_ns": -1,
                "put_end_ns": -1,
                "take_start_ns": -1,
                "take_end_ns": -1,
                "put_track": -1,
                "put_run": -1,
                "take_step": -1,
                "take_track": -1,
            }
            if put is not None:
                row["put_start_ns"], row["put_end_ns"] = int(put[_START]), int(put[_END])
                row["put_track"] = self.prefetch_track(stage, int(put[_WHO]))
                row["put_run"] = _run_of_put(put, own_runs)
            if take is not None:
                row["take_start_ns"], row["take_end_ns"] = int(take[_START]), int(take[_END])
                row["take_step"], row["take_track"] = _step_of_take(take, own_takes)
            self._items.append(row)

    def trace(self, meta: Mapping[str, Any]) -> Trace:
        """Tracks get their final numbers here: main steps, prefetch threads, inter-op threads."""
        tracks, order = self._track_table()
        events = pd.DataFrame(self._events, columns=column_names("events")).sort_values(
            "start_ns", kind="stable", ignore_index=True
        )
        runs = pd.DataFrame(self._runs, columns=column_names("runs"))
        items = pd.DataFrame(self._items, columns=column_names("items"))
        for table, columns in (
            (events, ["track"]),
            (runs, ["track"]),
            (items, ["put_track", "take_track"]),
        ):
            for column in columns:
                table[column] = [order.get(track, -1) for track in table[column]]
        nodes = pd.DataFrame(list(self._nodes), columns=column_names("nodes"))
        return Trace(
            events=events, nodes=nodes, tracks=tracks, runs=runs, items=items, meta=dict(meta)
        )

    def _track_table(self) -> tuple[pd.DataFrame, dict[int, int]]:
        busy: dict[int, int] = {}
        for _, duration, _, _, track, _ in self._events:
            busy[track] = busy.get(track, 0) + duration
        rank = {"step": 0, "prefetch": 1, "inter_op": 2}

        def place(entry: tuple[tuple[str, str, int], int]) -> tuple[Any, ...]:
            (kind, stage, number), track = entry
            # Thread ids say nothing: the busiest inter-op thread comes first.
            within = -busy.get(track, 0) if kind == "inter_op" else track
            return (rank[kind], stage, number if kind == "prefetch" else within)

        rows: list[tuple[str, str, int, str]] = []
        order: dict[int, int] = {}
        count: dict[str, int] = {}
        for (kind, stage, _), track in sorted(self._tracks.items(), key=place):
            index = count[kind] = count.get(kind, -1) + 1
            order[track] = len(rows)
            rows.append((_track_name(kind, index), kind, index, stage))
        return pd.DataFrame(rows, columns=column_names("tracks")), order


def _track_name(kind: str, index: int) -> str:
    if kind == "step":
        return "Main step" if index == 0 else f"Main step {index + 1}"
    return f"{'Prefetch' if kind == 'prefetch' else 'Inter-op'} {index}"


def _overlap_rows(ops: Sequence[tuple[OpSpan, int]]) -> list[int]:
    """The lowest row free when each op starts.

    Step stats of CPU ops name no thread. Ops that overlap ran on different ones, so the rows are
    one assignment that is consistent with what was seen, and never more than there were threads.
    """
    rows = [0] * len(ops)
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    used = 0
    for i in sorted(range(len(ops)), key=lambda i: ops[i][0].start_ns):
        span = ops[i][0]
        while busy and busy[0][0] <= span.start_ns:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            rows[i] = heapq.heappop(free)
        else:
            rows[i], used = used, used + 1
        heapq.heappush(busy, (span.end_ns, rows[i]))
    return rows


def _run_of_put(put: np.ndarray, runs: Sequence[StageRecord]) -> int:
    """The run of the same thread in which put was called: a thread has one at a time."""
    for run in runs:
        if run.thread == put[_WHO] and run.start_ns <= put[_START] <= run.end_ns:
            return run.number
    return -1


def _step_of_take(take: np.ndarray, takes: Sequence[tuple[OpSpan, int, int]]) -> tuple[int, int]:
    """The traced step whose take op was running when the buffer was asked; (-1, -1) if none."""
    within = [
        (abs(int(take[_START]) - span.start_ns), step, track)
        for span, step, track in takes
        if span.start_ns <= take[_START] <= span.end_ns
    ]
    return min(within)[1:] if within else (-1, -1)


def _occupancy_at_start(buffer_events: Mapping[str, Any]) -> dict[str, int]:
    """Items in each buffer before its first event."""
    found = {}
    for stage, events in buffer_events.items():
        rows = np.asarray(events, np.int64).reshape(-1, 6)
        rows = rows[rows[:, _KIND] <= _TAKE]  # a third kind counts events that were dropped
        if len(rows):
            first = rows[np.argmin(rows[:, _END])]
            found[stage] = int(first[_SIZE] + (1 if first[_KIND] == _TAKE else -1))
    return found

"""Events of buffers → the items of a trace: which producer put each, and which step took it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.graph.op_types import STAGE_TAKE
from workbench.core.staging.buffer_scope import stages_of_takes
from workbench.core.trace.op_columns import OpColumns
from workbench.core.trace.tables import column_names

# Columns of a buffer's event log, and the two kinds of event in it.
_KIND, _ITEM, _WHO, _START, _END, _SIZE = range(6)
_PUT, _TAKE = 0, 1

# A put or take under this had nothing to wait for: it is an op, not a wait.
WAIT_MIN_NS = 20_000

BufferEvents = Mapping[str, np.ndarray]


def event_arrays(found: Mapping[str, Any]) -> BufferEvents:
    """Per stage the rows (kind, item, thread or step id, start_ns, end_ns, size), as an array."""
    return {stage: np.asarray(rows, np.int64).reshape(-1, 6) for stage, rows in found.items()}


def producers(events: BufferEvents) -> set[tuple[str, int]]:
    """Stage and thread of all producers that put something."""
    return {
        (stage, thread)
        for stage, rows in events.items()
        for thread in np.unique(rows[rows[:, _KIND] == _PUT, _WHO]).tolist()
    }


class StageRuns:
    """Runs of stages, found by the thread that ran them and when."""

    def __init__(self, runs: Sequence[Any]) -> None:
        self._of: dict[tuple[str, int], list[Any]] = {}
        for run in sorted(runs, key=lambda run: run.start_ns):
            self._of.setdefault((run.stage, run.thread), []).append(run)
        self._starts = {key: np.array([r.start_ns for r in own]) for key, own in self._of.items()}

    def number_at(self, stage: str, thread: int, moment: int) -> int:
        """Number of the run that the thread was in at that moment: it has one at a time; or -1."""
        own = self._of.get((stage, thread))
        if own is None:
            return -1
        last = int(np.searchsorted(self._starts[stage, thread], moment, side="right")) - 1
        return own[last].number if last >= 0 and moment <= own[last].end_ns else -1


class Takes:
    """Runs of steps, found by what they took from a buffer."""

    def __init__(self, ops: OpColumns, stages: Iterable[str]) -> None:
        """Of the ops of all runs, the buffers' own ops among them, and the stages' names."""
        self._ops = ops
        rows = np.flatnonzero((ops.nodes["op"] == STAGE_TAKE).to_numpy(bool)[ops.node])
        self._rows = rows[np.argsort(ops.start_ns[rows], kind="stable")]
        names = ops.nodes["name"].to_numpy(object)[ops.node[self._rows]].tolist()
        of = stages_of_takes(dict.fromkeys(names), stages)
        self._stages = [of.get(name, "") for name in names]
        # What leaves a buffer is held by nothing else.
        took = np.zeros(len(rows), np.int64) if ops.bytes is None else ops.bytes[self._rows, 0]
        self._taken: dict[int, list[tuple[str, int]]] = {}
        for row, stage, size in zip(self._rows, self._stages, took.tolist(), strict=True):
            self._taken.setdefault(int(ops.run[row]), []).append((stage, size))

    def bytes(self, stage: str, run: int) -> int:
        """What a run took from the buffer of a stage; 0 where it is not known."""
        taken = self._taken.get(run, [])
        return next((size for own, size in taken if own == stage), 0)

    def runs(self, stage: str, took: np.ndarray) -> list[int]:
        """The run that made each of these takes, -1 if none: by its step id where it is known.

        Otherwise the one whose take op was running when the buffer was asked, and began last.
        """
        ids = self._ops.run_of_step
        if ids:
            return [ids.get(step, -1) for step in took[:, _WHO].tolist()]
        rows = self._rows[[each == stage for each in self._stages]]
        start, end = self._ops.start_ns[rows], self._ops.end_ns[rows]
        latest = np.maximum.accumulate(end)
        found = []
        for moment in took[:, _START].tolist():
            at = int(np.searchsorted(start, moment, side="right")) - 1
            while at >= 0 and end[at] < moment <= latest[at]:
                at -= 1
            within = at >= 0 and moment <= end[at]
            found.append(int(self._ops.run[rows[at]]) if within else -1)
        return found


def item_table(
    events: BufferEvents,
    stage_runs: StageRuns,
    takes: Takes,
    *,
    producer_tracks: Mapping[tuple[str, int], int],
    steps: Sequence[tuple[int, int]],
) -> pd.DataFrame:
    """The items of all stages.

    Args:
      events: of the buffers.
      stage_runs, takes: where to find the runs that put and took.
      producer_tracks: track of each stage and thread.
      steps: number and track of each run of the main step; other runs take for themselves.
    """
    rows: list[dict[str, Any]] = []
    for stage, found in events.items():
        put, took = found[found[:, _KIND] == _PUT], found[found[:, _KIND] == _TAKE]
        seen = np.unique(np.concatenate((put[:, _ITEM], took[:, _ITEM]))).tolist()
        of_stage = {item: _unseen(stage, item) for item in seen}
        for _, item, thread, start, end, _ in put.tolist():
            of_stage[item].update(
                put_start_ns=start,
                put_end_ns=end,
                put_track=producer_tracks[stage, thread],
                put_run=stage_runs.number_at(stage, thread, start),
            )
        for event, run in zip(took.tolist(), takes.runs(stage, took), strict=True):
            number, track = steps[run] if 0 <= run < len(steps) else (-1, -1)
            of_stage[event[_ITEM]].update(
                take_start_ns=event[_START],
                take_end_ns=event[_END],
                take_step=number,
                take_track=track,
                bytes=takes.bytes(stage, run),
            )
        rows += of_stage.values()
    return pd.DataFrame(rows, columns=[*column_names("items"), "bytes"])


def _unseen(stage: str, item: int) -> dict[str, Any]:
    return dict.fromkeys(column_names("items"), -1) | {"stage": stage, "item": item, "bytes": 0}


def occupancy_at_start(events: BufferEvents) -> dict[str, int]:
    """Items in each buffer before its first event."""
    found = {}
    for stage, rows in events.items():
        rows = rows[rows[:, _KIND] <= _TAKE]  # a third kind counts events that were dropped
        if len(rows):
            first = rows[np.argmin(rows[:, _END])]
            found[stage] = int(first[_SIZE] + (1 if first[_KIND] == _TAKE else -1))
    return found

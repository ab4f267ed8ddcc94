"""Recorded runs, their ops and the events of buffers → Trace. Needs no TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.graph import op_types
from workbench.core.staging.stage_record import StageRunRecord
from workbench.core.trace.items import (
    StageRuns,
    Takes,
    event_arrays,
    item_table,
    occupancy_at_start,
    producers,
)
from workbench.core.trace.meta import TraceMeta
from workbench.core.trace.op_columns import OpColumns
from workbench.core.trace.tables import column_names
from workbench.core.trace.task_tracks import OpTracks, op_tracks
from workbench.core.trace.trace import Trace


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One traced run of the main step; times in ns of the wall clock.

    Attributes:
      number: of the step.
      client: Python's number of the thread that ran it.
      start_ns, end_ns: when.
      metadata: its `RunMetadata`; None where the ops come from elsewhere.
      thread_id: the operating system's id of that thread.
    """

    number: int
    client: int
    start_ns: int
    end_ns: int
    metadata: Any = None
    thread_id: int = 0


def build_trace(
    steps: Sequence[StepRecord],
    stage_runs: Sequence[StageRunRecord],
    buffer_events: Mapping[str, Any],
    meta: TraceMeta,
    ops: OpColumns,
) -> Trace:
    """Makes a Trace of what was recorded.

    Args:
      steps: traced runs of the main step, at least one.
      stage_runs: traced runs of the stages.
      buffer_events: per stage the rows (kind, item, thread or step id, start_ns, end_ns, size).
      meta: what is known beside it; of the threads and the buffers it need know nothing.
      ops: those of all runs, which are counted through `steps`, then `stage_runs`.

    Returns:
      The Trace; its times are as recorded, not shifted.
    """
    runs: list[StepRecord | StageRunRecord] = [*steps, *stage_runs]
    buffers = event_arrays(buffer_events)
    clients = {client: track for track, client in enumerate(_clients(steps))}
    producer_tracks = {
        producer: len(clients) + i
        for i, producer in enumerate(sorted(_producers(stage_runs, buffers)))
    }
    run_tracks = [clients[step.client] for step in steps]
    run_tracks += [producer_tracks[run.stage, run.thread] for run in stage_runs]
    numbers = [run.number for run in runs]
    shown = _shown(ops)
    main = shown.run < len(steps)
    callers = {s.thread_id: client_name(clients[s.client]) for s in steps if s.thread_id}
    threads = op_tracks(shown.rows(main), callers, meta.task)
    track = np.array(run_tracks, np.int64)[shown.run]
    track[main] = len(clients) + len(producer_tracks) + threads.track
    return Trace(
        events=_event_table(shown, track, np.array(numbers, np.int64)[shown.run]),
        nodes=shown.nodes,
        edges=pd.DataFrame(shown.edges, columns=column_names("edges")),
        tracks=_track_table(len(clients), list(producer_tracks), threads, meta.task),
        runs=_run_table(runs, run_tracks),
        items=item_table(
            buffers,
            StageRuns(stage_runs),
            Takes(ops, buffers),
            producer_tracks=producer_tracks,
            steps=list(zip(numbers, run_tracks, strict=True))[: len(steps)],
        ),
        transfers=_transfer_table(shown.transfers, run_tracks, numbers),
        meta=dataclasses.replace(
            meta,
            threads="recorded" if threads.known else "inferred from overlap",
            thread_names=threads.system_names,
            occupancy_at_start=occupancy_at_start(buffers),
        ),
    )


def _clients(steps: Sequence[StepRecord]) -> list[int]:
    """Those that ran steps, the first to begin one first."""
    return list(dict.fromkeys(step.client for step in sorted(steps, key=lambda s: s.start_ns)))


def client_name(index: int) -> str:
    """Name of the track of a client's steps."""
    return "Main step" if index == 0 else f"Main step {index + 1}"


def _producers(
    stage_runs: Sequence[StageRunRecord], buffers: Mapping[str, np.ndarray]
) -> set[tuple[str, int]]:
    """Stage and thread of all that ran a stage, or put what they had made before."""
    return {(run.stage, run.thread) for run in stage_runs} | producers(buffers)


def _shown(ops: OpColumns) -> OpColumns:
    """The ops that are events of a trace, by start; nodes that did not run are left out."""
    # The items say how long the buffer's own ops wait.
    wanted = ~ops.nodes["op"].astype(object).isin(op_types.BUFFER_OPS).to_numpy(bool)
    rows = np.flatnonzero(wanted[ops.node])
    rows = rows[np.argsort(ops.start_ns[rows], kind="stable")]
    shown = ops.rows(rows)
    ran = np.bincount(ops.node, minlength=len(wanted)) > 0
    for end in ("node", "source"):
        ran[ops.transfers[end].to_numpy(np.int64)] = True
    row = np.cumsum(ran) - 1
    edges = ops.edges[ran[ops.edges[:, 0]] & ran[ops.edges[:, 1]]]
    return dataclasses.replace(
        shown,
        node=row[shown.node],
        nodes=shown.nodes[ran].reset_index(drop=True),
        edges=np.column_stack((row[edges[:, :2]], edges[:, 2])),
        transfers=ops.transfers.assign(
            **{end: row[ops.transfers[end].to_numpy(np.int64)] for end in ("node", "source")}
        ),
    )


def _event_table(ops: OpColumns, track: np.ndarray, step: np.ndarray) -> pd.DataFrame:
    columns = {
        "start_ns": ops.start_ns,
        "dur_ns": ops.end_ns - ops.start_ns,
        "delay_ns": ops.start_ns - ops.scheduled_ns,
        "node": ops.node,
        "track": track,
        "step": step,
    }
    if ops.bytes is not None:
        columns |= {"made_bytes": ops.bytes[:, 0], "passed_bytes": ops.bytes[:, 1]}
    return pd.DataFrame(columns, copy=False)


def _track_table(
    clients: int, producers: Sequence[tuple[str, int]], threads: OpTracks, task: str
) -> pd.DataFrame:
    """Main steps, prefetch threads, then threads that ran ops of main steps."""
    rows = [(client_name(i), "step", i, "", task) for i in range(clients)]
    rows += [
        (f"Prefetch {i}", "prefetch", i, stage, task) for i, (stage, _) in enumerate(producers)
    ]
    columns = zip(threads.names, threads.index, threads.tasks, strict=True)
    rows += [(name, "inter_op", index, "", place) for name, index, place in columns]
    return pd.DataFrame(rows, columns=[*column_names("tracks"), "task"]).assign(client=task)


def _transfer_table(
    transfers: pd.DataFrame, tracks: Sequence[int], numbers: Sequence[int]
) -> pd.DataFrame:
    """The transfers by the begin of their receipt."""
    run = transfers["run"].to_numpy(np.int64)
    placed = transfers.assign(
        track=np.array(tracks, np.int64)[run], step=np.array(numbers, np.int64)[run]
    )
    ordered = placed.sort_values("start_ns", kind="stable")
    return ordered[column_names("transfers")]


def _run_table(runs: Sequence[StepRecord | StageRunRecord], tracks: Sequence[int]) -> pd.DataFrame:
    rows = [
        (track, run.number, run.start_ns, run.end_ns)
        for track, run in zip(tracks, runs, strict=True)
    ]
    table = pd.DataFrame(rows, columns=column_names("runs"))
    return table.sort_values(["track", "start_ns"], kind="stable", ignore_index=True)

"""The native tracer's events → columns of ops: recording, draining, and whose run an op was of.

Workbench's executors record every op of this process. A recording keeps those of the runs that its
owner recorded meanwhile: by TensorFlow's step id, which the run is found for by thread and time.
"""

from __future__ import annotations

import csv
import ctypes
import dataclasses
import io
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from workbench import _native
from workbench.core.capture.step_stats import BOOKKEEPING
from workbench.core.trace.op_columns import NODE_COLUMNS, OpColumns

# Rows that other threads may add while some are taken.
_MEANWHILE = 10_000
# Columns of the runs that `op_columns` is given.
RUN_THREAD, RUN_START, RUN_END = range(3)

# Reentrant: the garbage collector may drop a recording while another one begins or ends.
_LOCK = threading.RLock()
_ACTIVE: weakref.WeakSet[Recording] = weakref.WeakSet()


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class StepEvents:
    """Steps of executors that have ended, one row each.

    Attributes:
      start_ns, end_ns: int64, ns of the wall clock.
      step: int64, TensorFlow's step id: the same for all executors of one run.
      tid: int64, the operating system's id of the thread that called.
      root: bool, whether a client's run began it, not a function call within one.
    """

    start_ns: np.ndarray
    end_ns: np.ndarray
    step: np.ndarray
    tid: np.ndarray
    root: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OpEvents:
    """What the native tracer saw of the whole process, one row for each op that ran.

    Attributes:
      scheduled_ns, start_ns, end_ns: int64, ns of the wall clock; of an asynchronous kernel the
        end is that of its done callback.
      step: int64, TensorFlow's step id.
      made_bytes, passed_bytes: int64, memory of its outputs that nothing else held, and of those
        that are memory of its inputs; in lines of 64 bytes.
      node, thread: int32, rows of `nodes` and `threads`.
      steps: the steps that ended meanwhile.
      nodes: name, op, device; one row for each node of each executor.
      edges: int64 [edges, 3], rows of `nodes` that run one after the other, and 1 for a control
        edge.
      threads: tid, name.
      lost: how many events were dropped, because memory is bounded.
    """

    scheduled_ns: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    step: np.ndarray
    made_bytes: np.ndarray
    passed_bytes: np.ndarray
    node: np.ndarray
    thread: np.ndarray
    steps: StepEvents
    nodes: pd.DataFrame
    edges: np.ndarray
    threads: pd.DataFrame
    lost: int


class Recording:
    """Events of this process from its making until `stop`.

    Recordings may overlap; the tracer is on as long as there is one. One that is forgotten ends.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[list[np.ndarray], list[np.ndarray]]] = []
        self._lost = 0
        self._native = _native.calls()
        with _LOCK:
            if not list(_ACTIVE):
                _drain(self._native)  # what an abandoned recording left
            _ACTIVE.add(self)
            self._native.workbench_trace_ops(1)
        weakref.finalize(self, _switch_off_if_last, self._native).atexit = False

    def stop(self) -> OpEvents:
        """Ends it and returns what was seen. Events of steps under way may be missing."""
        with _LOCK:
            # Off before the last drain, so that nothing is left behind.
            self._leave()
            parts, lost = _drain(self._native)
            for each in (self, *_ACTIVE):
                each._parts.append(parts)
                each._lost = max(each._lost, lost)
        steps, ops = (
            [_joined(columns) for columns in zip(*kind, strict=True)]
            for kind in zip(*self._parts, strict=True)
        )
        start_ns, end_ns, step, _, tid, root = steps
        # Before the nodes: an executor that is made meanwhile adds nodes and edges between them.
        edges = _edges()
        return OpEvents(
            **dict(zip(_OP_COLUMNS, ops, strict=True)),
            steps=StepEvents(start_ns=start_ns, end_ns=end_ns, step=step, tid=tid, root=root > 0),
            nodes=_table("workbench_traced_nodes", NODE_COLUMNS),
            edges=edges,
            threads=_table("workbench_traced_threads", ["tid", "name"]).astype({"tid": np.int64}),
            lost=self._lost,
        )

    def abandon(self) -> None:
        """Ends it; what was seen is dropped."""
        with _LOCK:
            self._leave()
            self._parts.clear()

    def _leave(self) -> None:
        _ACTIVE.discard(self)
        _switch_off_if_last(self._native)


def op_columns(events: OpEvents, runs: np.ndarray) -> OpColumns:
    """The ops of the recorded runs, in any order; those of all other runs are left out.

    Args:
      events: what the tracer saw.
      runs: int64 [runs, 3], of each the operating system's id of the thread that called it, start
        and end in ns of the wall clock. Runs of one thread lie apart.
    """
    run_of_step = _run_of_step(events.steps, runs)
    run = _looked_up(run_of_step, events.step)
    node_of, nodes = _distinct(events.nodes)
    node = node_of[events.node]
    rows = np.flatnonzero((run >= 0) & (node >= 0))
    start = events.start_ns[rows]
    tid = events.threads["tid"].to_numpy(np.int64)
    return OpColumns(
        run=run[rows],
        node=node[rows],
        thread=tid[events.thread[rows]],
        # The wall clock may be set back between two readings.
        scheduled_ns=np.minimum(events.scheduled_ns[rows], start),
        start_ns=start,
        end_ns=np.maximum(events.end_ns[rows], start),
        nodes=nodes,
        edges=_distinct_edges(node_of, events.edges),
        bytes=np.column_stack((events.made_bytes[rows], events.passed_bytes[rows])),
        run_of_step=run_of_step,
        thread_names=dict(zip(tid.tolist(), events.threads["name"].tolist(), strict=True)),
    )


def _run_of_step(steps: StepEvents, runs: np.ndarray) -> dict[int, int]:
    """The run that each step id belongs to: the one on whose thread, and while which, it began."""
    root = np.flatnonzero(steps.root)
    root = root[np.argsort(steps.start_ns[root], kind="stable")]
    run = _run_at(steps.tid[root], steps.start_ns[root], runs)
    known = np.flatnonzero(run >= 0)
    # A run has several executors where it uses several devices.
    ids, first = np.unique(steps.step[root[known]], return_index=True)
    return dict(zip(ids.tolist(), run[known[first]].tolist(), strict=True))


def _run_at(thread: np.ndarray, moment: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """The run that each thread was in at that moment, int64; -1 for none."""
    run_of = np.full(len(moment), -1, np.int64)
    for each in np.unique(runs[:, RUN_THREAD]):
        own = np.flatnonzero(runs[:, RUN_THREAD] == each)
        own = own[np.argsort(runs[own, RUN_START], kind="stable")]
        rows = np.flatnonzero(thread == each)
        last = np.searchsorted(runs[own, RUN_START], moment[rows], side="right") - 1
        inside = (last >= 0) & (moment[rows] <= runs[own[np.maximum(last, 0)], RUN_END])
        run_of[rows[inside]] = own[last[inside]]
    return run_of


def _looked_up(run_of_step: dict[int, int], step: np.ndarray) -> np.ndarray:
    """The run of each step id, int64; -1 for none."""
    if not run_of_step:
        return np.full(len(step), -1, np.int64)
    ids = np.array(sorted(run_of_step), np.int64)
    run = np.array([run_of_step[each] for each in ids.tolist()], np.int64)
    place = np.minimum(np.searchsorted(ids, step), len(ids) - 1)
    return np.where(ids[place] == step, run[place], -1)


def _distinct(nodes: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
    """For each row the row in the table of distinct nodes, -1 for bookkeeping; and that table.

    Executors have nodes of their own: two of one graph have equal ones.
    """
    shown = ~nodes["name"].isin(BOOKKEEPING)
    number = np.full(len(nodes), -1, np.int64)
    number[shown] = nodes[shown].groupby(NODE_COLUMNS, sort=False).ngroup()
    return number, nodes[shown].drop_duplicates(ignore_index=True)


def _distinct_edges(row: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The edges between rows of distinct nodes, each once; those of bookkeeping are left out."""
    between = row[edges[:, :2]].reshape(-1, 2)
    kept = (between >= 0).all(axis=1)
    return np.unique(np.column_stack((between, edges[:, 2]))[kept], axis=0)


_OP_COLUMNS = (
    *("scheduled_ns", "start_ns", "end_ns", "step", "made_bytes", "passed_bytes"),
    *("node", "thread"),
)
_OP_TYPES = (np.int64,) * 6 + (np.int32,) * 2
# start_ns, end_ns, step, executor, tid, root.
_STEP_TYPES = (np.int64,) * 3 + (np.int32, np.int64, np.int32)


def _drain(native: Any) -> tuple[tuple[list[np.ndarray], list[np.ndarray]], int]:
    """Moves out the columns of steps and of ops; and says how many events were lost so far."""
    # Steps first: of a step that has ended by now, every op is there to be taken.
    steps = _taken(native.workbench_traced_steps, native.workbench_take_steps, _STEP_TYPES)
    ops = _taken(native.workbench_traced_ops, native.workbench_take_ops, _OP_TYPES)
    return (steps, ops), int(native.workbench_lost_ops())


def _taken(ready: Callable[[], int], take: Any, types: tuple[Any, ...]) -> list[np.ndarray]:
    """All rows that are ready.

    Threads go on meanwhile, and their rows may come before those that were ready first. So there is
    room for more, and rows are taken until there was enough.
    """
    c_types = {np.int64: ctypes.c_int64, np.int32: ctypes.c_int32}
    parts = []
    while True:
        most = ready() + _MEANWHILE
        columns = [np.empty(most, kind) for kind in types]
        places = [
            column.ctypes.data_as(ctypes.POINTER(c_types[kind]))
            for column, kind in zip(columns, types, strict=True)
        ]
        count = take(most, *places)
        parts.append([column[:count].copy() for column in columns])
        if count < most:
            return [_joined(each) for each in zip(*parts, strict=True)]


def _joined(parts: tuple[np.ndarray, ...]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _switch_off_if_last(native: Any) -> None:
    with _LOCK:
        # Its length would count one that is being forgotten.
        if not list(_ACTIVE):
            native.workbench_trace_ops(0)


def _edges() -> np.ndarray:
    numbers = np.array(_native.taken_text("workbench_traced_edges").split(), np.int64)
    return numbers.reshape(-1, 3)


def _table(call: str, columns: list[str]) -> pd.DataFrame:
    """A table that the tracer writes as text: a header, then lines of a number and the columns."""
    lines = io.StringIO(_native.taken_text(call))
    rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    table = pd.DataFrame([row[1:] for row in rows], columns=columns, dtype=str)
    numbers = np.array([int(row[0]) for row in rows], np.int64)
    # Events count by the number; it is the row in all but name.
    return table.iloc[np.argsort(numbers, kind="stable")].reset_index(drop=True)

"""FunctionRecorder: steps of a tf.function under the tracer of Workbench's executors → Trace."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import tensorflow as tf

from workbench.core.capture.op_events import OpEvents, Recording, op_columns
from workbench.core.function.run import FunctionRunner
from workbench.core.graph.op_types import STAGE_PUT
from workbench.core.staging.buffer import EVENT_PUT
from workbench.core.staging.stage_record import StageRunRecord
from workbench.core.trace.builder import StepRecord, build_trace
from workbench.core.trace.meta import EXECUTOR, TraceMeta
from workbench.core.trace.op_columns import OpColumns
from workbench.core.trace.trace import Trace
from workbench.usable import usable_cores

_CPU = "/device:CPU:0"
# What reading an element of a dataset outside of a function runs.
_READ = ("IteratorGetNext", "IteratorGetNext", "/job:localhost/replica:0/task:0" + _CPU)


class FunctionRecorder:
    """Traces the steps of one loop, which must run on one of Workbench's executors.

    Attributes:
      reads: when the loop read an element itself, (start, end) in ns of the wall clock; the loop
        adds to it.
    """

    def __init__(self, title: str, runner: FunctionRunner | None) -> None:
        self.reads: list[tuple[int, int]] = []
        self._title = title
        self._runner = runner
        self._steps: list[StepRecord] = []
        self._recording: Recording | None = None

    def start(self) -> None:
        """Switches the tracer on."""
        self._drain(enable=True)
        self._recording = Recording()

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Notes the step that runs inside."""
        start_ns = time.time_ns()
        yield
        record = StepRecord(
            number=number,
            client=threading.get_ident(),
            start_ns=start_ns,
            end_ns=time.time_ns(),
            thread_id=threading.get_native_id(),
        )
        self._steps.append(record)

    def abandon(self) -> None:
        """Switches the tracer off; what was seen is dropped."""
        if self._recording is not None:
            self._recording.abandon()
        self._drain(enable=False)

    def stop(self) -> Trace:
        """Switches the tracer off and returns what was seen."""
        assert self._recording is not None
        events, put_take = self._recording.stop(), self._drain(enable=False)
        name = self._runner.halves.stage.name if self._runner else ""
        calls = _calls(events)
        ahead, ahead_calls = _stage_runs([c for c in calls if c.puts], put_take, name)
        own = [call for call in calls if not call.puts]
        step_calls = [_call_in(own, step) for step in self._steps]
        runs = np.array([*step_calls, *ahead_calls], np.int64).reshape(-1, 3)
        ops = op_columns(events, runs)
        meta = TraceMeta(
            title=self._title,
            tensorflow=tf.version.VERSION,
            cores=usable_cores(),
            capacity={name: self._runner.options.capacity} if self._runner else {},
            inter_op_threads=tf.config.threading.get_inter_op_parallelism_threads(),
            source=EXECUTOR,
            lost_ops=events.lost,
        )
        return build_trace(
            self._steps,
            ahead,
            {name: put_take} if self._runner else {},
            meta,
            _with_reads(ops, self.reads, self._steps),
        )

    def _drain(self, *, enable: bool) -> np.ndarray:
        """The buffer's events so far, int64 [n, 6]."""
        if self._runner is None:
            return np.empty((0, 6), np.int64)
        with tf.device(_CPU):
            events: np.ndarray = self._runner.buffer.drain(tf.constant(enable)).numpy()
        return events


class _Call(NamedTuple):
    """A call of a function: the thread on which its executor began, when, whether it puts."""

    thread: int
    start_ns: int
    end_ns: int
    puts: bool


def _calls(events: OpEvents) -> list[_Call]:
    """The calls that Python made, by start."""
    steps = events.steps
    put = (events.nodes["op"] == STAGE_PUT).to_numpy(bool)[events.node]
    puts = np.isin(steps.step, events.step[put])
    # A call on several devices has an executor on each, all of one step.
    _, first = np.unique(steps.step, return_index=True)
    rows = first[steps.root[first]]
    rows = rows[np.argsort(steps.start_ns[rows], kind="stable")]
    columns = (steps.tid, steps.start_ns, steps.end_ns, puts)
    return [_Call(*row) for row in zip(*(c[rows].tolist() for c in columns), strict=True)]


def _call_in(calls: Sequence[_Call], step: StepRecord) -> tuple[int, int, int]:
    """Thread, start and end of the call that a step made; an executor has threads of its own."""
    within = [call for call in calls if step.start_ns <= call.start_ns <= step.end_ns]
    # Whatever else the loop called is shorter than the step's function.
    longest = max(within, key=lambda call: call.end_ns - call.start_ns, default=None)
    return longest[:3] if longest else (step.thread_id, step.start_ns, step.end_ns)


def _stage_runs(
    calls: Sequence[_Call], put_take: np.ndarray, stage: str
) -> tuple[list[StageRunRecord], list[tuple[int, int, int]]]:
    """The calls that put into the buffer, with the producer that each was."""
    puts = put_take[put_take[:, 0] == EVENT_PUT]
    puts = puts[np.argsort(puts[:, 3], kind="stable")]
    runs, called = [], []
    numbers: dict[int, int] = {}
    for call in calls:
        inside = np.flatnonzero((puts[:, 3] >= call.start_ns) & (puts[:, 3] <= call.end_ns))
        if not len(inside):
            continue
        # Of several producers another one may have put meanwhile; each put is of one call.
        thread = int(puts[inside[0], 2])
        puts = np.delete(puts, inside[0], axis=0)
        numbers[thread] = numbers.get(thread, 0) + 1
        runs.append(
            StageRunRecord(
                stage=stage,
                thread=thread,
                number=numbers[thread],
                start_ns=call.start_ns,
                end_ns=call.end_ns,
            )
        )
        called.append(call[:3])
    return runs, called


def _with_reads(
    ops: OpColumns, reads: Sequence[tuple[int, int]], steps: Sequence[StepRecord]
) -> OpColumns:
    """The ops with those that read an element on the thread of the step."""
    if not reads:
        return ops
    begun = np.array([step.start_ns for step in steps], np.int64)
    threads = np.array([step.thread_id for step in steps], np.int64)
    start, end = np.array(reads, np.int64).T
    run = np.maximum(np.searchsorted(begun, start, side="right") - 1, 0)
    node = np.full(len(start), len(ops.nodes), np.int64)
    read = pd.DataFrame([_READ], columns=ops.nodes.columns)

    def with_new(name: str, new: np.ndarray) -> np.ndarray:
        return np.concatenate([getattr(ops, name), new])

    return dataclasses.replace(
        ops,
        run=with_new("run", run),
        node=with_new("node", node),
        thread=with_new("thread", threads[run]),
        scheduled_ns=with_new("scheduled_ns", start),
        start_ns=with_new("start_ns", start),
        end_ns=with_new("end_ns", end),
        nodes=pd.concat([ops.nodes, read], ignore_index=True),
        # What Python reads is nobody's output.
        bytes=with_new("bytes", np.zeros((len(start), 2), np.int64)),
    )

"""SessionRecorder: runs of one session under a tracer, its stages and their buffers → Trace.

Of a session on one of Workbench's executors the executor records the ops, at about 30 ns an op. Of
any other the tracer is stock TensorFlow's step stats, which lengthen the step by a third or more;
a recorder that has to fall back on them says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
from typing import Any

import tensorflow as tf

from workbench import _native
from workbench.core.capture.cpu_time import CpuSampler, StepClock, cores_while_waiting
from workbench.core.capture.fusable import with_fusable
from workbench.core.capture.idle_cores import packs_when_idle
from workbench.core.capture.op_events import Recording
from workbench.core.capture.run_ops import ops_of_stats, recorded_ops
from workbench.core.capture.server_partitions import policies
from workbench.core.cluster.aligned_ops import AlignedOps, align_ops, lost_transfers
from workbench.core.session.running.stage_run import StageRun, live_runs
from workbench.core.session.session_facts import server_of, trace_level, traced_by_executor
from workbench.core.staging.stage_record import StageRunRecord
from workbench.core.tf_graph.op_sources import op_sources
from workbench.core.trace.builder import StepRecord, build_trace
from workbench.core.trace.meta import EXECUTOR, STEP_STATS, TraceMeta, UntracedSteps
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError
from workbench.usable import usable_cores

v1 = tf.compat.v1
_LOG = logging.getLogger("workbench")
_BECAUSE_OF_OPTION = "step_stats=True asked for them"


class SessionRecorder:
    """Collects traced runs of one session and the events of its stages, then makes the Trace.

    Between `start` and `stop` every stage of the session is traced; its
    caller adds the main steps. Safe for several threads that run steps.

    Attributes:
      started: whether it was started.
    """

    def __init__(
        self,
        session: Any,
        title: str = "",
        untraced: UntracedSteps | None = None,
        step_stats: bool = False,
        sample_cpu: bool = True,
        ask_rules: bool = True,
    ) -> None:
        """`untraced` is the time of the steps before, as `StepClock.untraced` gives it.

        `step_stats`, `sample_cpu` and `ask_rules` are as of `CaptureHook.start`.
        """
        self.started = False
        self._session = session
        self._why = _BECAUSE_OF_OPTION if step_stats else _why_step_stats(session)
        self._step_stats = bool(self._why)
        if self._step_stats and not step_stats:
            _LOG.warning(
                "the capture uses TensorFlow's step stats, which lengthen every step and op: %s; "
                "step_stats=True asks for them without this line",
                self._why,
            )
        # A server's ops use the CPU of another process.
        self._sample_cpu = sample_cpu and not server_of(session)
        self._ask_rules = ask_rules
        self._asks_graphs = bool(server_of(session))
        self._title = title
        self._untraced = untraced
        self._lock = threading.Lock()
        self._steps: list[StepRecord] = []
        self._stage_runs: list[tuple[StageRunRecord, int]] = []
        self._stages: list[StageRun] = []
        self._sampler: CpuSampler | None = None
        self._recording: Recording | None = None
        self._clock = StepClock()

    def start(self) -> None:
        """Switches the tracer, that of the stages and the buffers' event logs on."""
        self.started = True
        # First: of a run that is recorded, every op must be.
        self._recording = None if self._step_stats else Recording()
        self._stages = list(live_runs(self._session))
        for stage in self._stages:
            stage.drain(True)
            stage.step_stats = self._step_stats
            stage.sink = self._add_stage_run
        self._sampler = CpuSampler() if self._sample_cpu else None

    def begin_step(self) -> Any:
        """Call it before a run of the main step.

        Returns:
          RunOptions under which to run it and to ask for its metadata; None needs neither.
        """
        self._clock.begin()
        if not self._step_stats:
            return None
        # The graph is the same in all steps, and large.
        with self._lock:
            graphs, self._asks_graphs = self._asks_graphs, False
        return v1.RunOptions(trace_level=trace_level(self._session), output_partition_graphs=graphs)

    def add_step(self, number: int, start_ns: int, end_ns: int, metadata: Any) -> None:
        """Adds a run of the main step by this thread; times in ns of the wall clock."""
        step = StepRecord(
            number=number,
            client=threading.get_ident(),
            start_ns=start_ns,
            end_ns=end_ns,
            metadata=metadata if self._step_stats else None,
            thread_id=threading.get_native_id(),
        )
        with self._lock:
            self._steps.append(step)

    def stop(self, *, session_ended: bool = False) -> Trace:
        """Switches everything off again and returns what was seen.

        Args:
          session_ended: whether the session has ended, and the events of its buffers with it.

        Raises:
          TraceError: no step was run in between.
        """
        samples = self._sampler.stop() if self._sampler else None
        events = {} if session_ended else self._drained()
        with self._lock:
            steps, stage_runs = list(self._steps), list(self._stage_runs)
        if not steps:
            self.abandon()
            raise TraceError(
                "no step was run between start and stop, so there is nothing to show; "
                "run at least one step while the capture is on"
            )
        runs = [run for run, _ in stage_runs]
        if self._recording is not None:
            ops, lost = recorded_ops(self._recording, steps, stage_runs)
        else:
            ops, steps, lost = *ops_of_stats(steps, runs), 0
        aligned = align_ops(ops)
        ops = aligned.ops
        meta = dataclasses.replace(
            self._meta(),
            lost_ops=lost,
            lost_transfers=lost_transfers(ops.transfers, len(steps)),
            server_policies=policies(step.metadata for step in steps),
        )
        meta = _with_clocks(meta, aligned)
        if samples is not None:
            meta = _with_cpu_facts(meta, cores_while_waiting(ops, len(steps), samples))
        sources = op_sources(self._session.graph, ops.nodes["name"])
        ops = dataclasses.replace(ops, nodes=ops.nodes.assign(source=sources))
        trace = build_trace(steps, runs, events, meta, ops)
        return with_fusable(trace, self._session.graph) if self._ask_rules else trace

    def _drained(self) -> dict[str, Any]:
        """The events of the buffers, whose stages are traced no longer."""
        events = {}
        try:
            for stage in self._stages:
                stage.sink = None
                events[stage.runner.stage] = stage.drain(False)
        except (tf.errors.OpError, RuntimeError) as error:
            self.abandon()
            raise TraceError(
                f"the session ended before the trace was taken: {error}; "
                "stop the capture before the session closes"
            ) from error
        return events

    def abandon(self) -> None:
        """Switches everything off; what was seen is dropped."""
        if self._recording:
            self._recording.abandon()
        if self._sampler:
            self._sampler.stop()
        for stage in self._stages:
            stage.sink = None
            with contextlib.suppress(tf.errors.OpError, RuntimeError):
                stage.drain(False)

    def _add_stage_run(self, run: StageRunRecord) -> None:
        # Called by the thread that ran it.
        with self._lock:
            self._stage_runs.append((run, threading.get_native_id()))

    def _meta(self) -> TraceMeta:
        config = getattr(self._session, "_config", None)
        threads = config.inter_op_parallelism_threads if config else 0
        return TraceMeta(
            title=self._title,
            tensorflow=tf.version.VERSION,
            cores=usable_cores(),
            capacity={s.runner.stage: s.runner.options.capacity for s in self._stages},
            inter_op_threads=max(0, threads),
            source=STEP_STATS if self._step_stats else EXECUTOR,
            step_stats=self._why,
            untraced=self._untraced or self._while_traced(),
            variables=_variable_bytes(self._session.graph),
        )

    def _while_traced(self) -> UntracedSteps | None:
        """The time of the traced steps; the executor's recording hardly lengthens them."""
        steps = self._clock.untraced() if self._recording is not None else None
        return dataclasses.replace(steps, while_traced=True) if steps else None


def _variable_bytes(graph: Any) -> dict[str, int]:
    """Bytes of the variables of a graph whose shapes are known, by name."""
    found = {}
    for variable in graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES):
        shape = getattr(variable, "shape", None)
        if shape is not None and shape.is_fully_defined():
            size = shape.num_elements() * variable.dtype.base_dtype.size
            found[variable.name.partition(":")[0]] = int(size)
    return found


def _why_step_stats(session: Any) -> str:
    """Why a session can be traced with step stats alone, and what to do; else empty."""
    server = server_of(session)
    if server:
        return (
            f"a session on a server ({server}) returns what its workers saw as step stats; trace a "
            "session without a server"
        )
    if traced_by_executor(session):
        return ""
    if not _native.has_executors():
        return "Workbench's executors, which record their ops, need TensorFlow 2.20 or newer"
    return (
        "the session does not run on one of Workbench's executors, which record their ops; make it "
        'with config=wb.executor_options("normal", config=…)'
    )


def _with_clocks(meta: TraceMeta, aligned: AlignedOps) -> TraceMeta:
    for task, why in aligned.refused.items():
        _LOG.warning("the trace lacks the ops of %s: %s", task, why)
    return dataclasses.replace(
        meta,
        task=aligned.task,
        clock_offset_ns={task: clock.offset_ns for task, clock in aligned.clocks.items()},
        clock_error_ns={task: clock.error_ns for task, clock in aligned.clocks.items()},
        left_out={
            f"ops of {task}, whose clock is not known": count
            for task, count in aligned.left_out.items()
        },
    )


def _with_cpu_facts(meta: TraceMeta, source_cores: float | None) -> TraceMeta:
    return dataclasses.replace(
        meta,
        source_cores=None if source_cores is None else round(source_cores, 3),
        packs_when_idle=packs_when_idle(),
    )

"""Runs steps of a session under a tracer → Trace: the hook, and a function for plain sessions.

The time of untraced steps is noted beside that of the traced ones.
"""

from __future__ import annotations

import dataclasses
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from workbench.core.capture.cpu_time import StepClock
from workbench.core.capture.session_recorder import SessionRecorder
from workbench.core.capture.shape_steps import ShapeSteps
from workbench.core.session.session_facts import server_of
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError

v1 = tf.compat.v1


class CaptureHook(tf.compat.v1.train.SessionRunHook):
    """Traces chosen steps of a MonitoredTrainingSession; costs about 2 µs a step while it is off.

    A session on one of Workbench's executors records its ops at hardly any cost; the normal one
    schedules them as TensorFlow's own does. In any other session the hook falls back on
    TensorFlow's step stats, which lengthen steps, and says so. The steps before `start` are timed,
    untraced, and their time is noted beside the traced one: run at least ten.

    ```
    capture = wb.CaptureHook()
    config = wb.executor_options("normal")
    hooks = [tf.make_prefetch_hook(), capture]
    with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as sess:
        for _ in range(100): sess.run(train_op)     # warm up untraced
        capture.start()
        for _ in range(30): sess.run(train_op)
        trace = capture.stop()
    ```

    In a cluster the trace also holds what other tasks did for the steps, by the clock of this one,
    and what travelled between them. Steps are numbered by the global step, as it is when each has
    ended. Use `wb.cluster.merge_traces` to make one trace of all workers'.

    Attributes:
      clock: notes the untraced steps; put another one in its place to count from there on.
    """

    def __init__(self, title: str = "") -> None:
        self.clock = StepClock()
        self._title = title
        # A hook may outlive its session, and must not hold what that holds.
        self._session: Callable[[], Any] = lambda: None
        self._recorder: SessionRecorder | None = None
        self._shapes: ShapeSteps | None = None
        self._local = threading.local()
        self._lock = threading.Lock()
        self._step = 0
        self._global_step: Any = None
        self._last = -1

    def start(
        self,
        *,
        step_stats: bool = False,
        sample_cpu: bool = True,
        ask_rules: bool = True,
        shapes: bool = False,
    ) -> None:
        """Traces from the next step on.

        Args:
          step_stats: trace with TensorFlow's step stats, whatever the session's executor. They
            lengthen every step and op; they are what other TensorFlow tools show.
          sample_cpu: note how many cores the input uses, which `plan` wants to know of a trace. A
            thread takes up to a twentieth of a core for it, less and less in a longer capture.
          ask_rules: note which nodes `auto_fused` would do without, for `findings`; `stop` takes
            up to half a second longer for each 2,000 nodes of the graph.
          shapes: note the shapes of all tensors, for `limit`. The next step tells them, and with a
            stage up to seven more; they take longer, and are no part of the trace. A server's steps
            tell none.

        Raises:
          TraceError: the hook is not in a session yet, or is on already.
        """
        session = self._session()
        if session is None:
            raise TraceError(
                "the capture has no session; hand the hook to MonitoredTrainingSession(hooks=[…]) "
                "and start it inside the session"
            )
        if self._recorder is not None:
            raise TraceError("the capture is on already; stop it before starting it again")
        recorder = SessionRecorder(
            session, self._title, self._untraced(), step_stats, sample_cpu, ask_rules
        )
        if shapes and not server_of(session):
            # It starts once they are known.
            self._shapes = ShapeSteps(session)
        else:
            self._shapes = None
            recorder.start()
        self._recorder = recorder

    def stop(self) -> Trace:
        """Ends tracing and returns the Trace of the steps since `start`.

        Raises:
          TraceError: the capture is off, or no step was run.
        """
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            raise TraceError("the capture is off; call start() before the steps to trace")
        shapes, self._shapes = self._shapes, None
        if shapes is None:
            return recorder.stop()
        shapes.end()
        return shapes.added_to(recorder.stop())

    def rescue(self) -> Trace | None:
        """Ends tracing of a session that has ended, such as one whose server was killed.

        Returns:
          The Trace of the steps that had ended, without items of stages; None where the capture
          was off, or no step had.
        """
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return None
        self._shapes = None
        try:
            return recorder.stop(session_ended=True)
        except TraceError:
            return None

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Notes the session; a re-created one ends a capture that was on."""
        del coord
        recorder, self._recorder = self._recorder, None
        self._shapes = None
        if recorder is not None:
            recorder.abandon()
        self._session = weakref.ref(session)
        self._global_step = v1.train.get_global_step(session.graph) if server_of(session) else None
        self._last = -1
        self.clock = StepClock()

    def before_run(self, run_context: Any) -> Any:
        """Asks for step stats while the capture is on, if they are what is traced."""
        del run_context
        with self._lock:
            self._step += 1
            step = self._step
            shapes = self._shapes_to_ask()
        recorder = self._recorder
        if shapes is not None:
            self.clock.interrupt()
            self._local.run = shapes
            return v1.train.SessionRunArgs(None, options=shapes.options())
        self._local.run = None if recorder is None else (recorder, step, time.time_ns())
        if recorder is None:
            self.clock.begin()
            return None
        self.clock.interrupt()
        options = recorder.begin_step()
        return None if options is None else v1.train.SessionRunArgs(None, options=options)

    def _shapes_to_ask(self) -> ShapeSteps | None:
        """What still asks steps for shapes; starts the recorder once none does."""
        shapes = self._shapes
        if shapes is None or self._recorder is None or self._recorder.started:
            return None
        if shapes.ended:
            self._recorder.start()
            return None
        return shapes

    def _untraced(self) -> UntracedSteps | None:
        """The time of the untraced steps; the CPU time of a server is not known here."""
        steps = self.clock.untraced()
        if steps and server_of(self._session()):
            return dataclasses.replace(steps, cpu_ns=None)
        return steps

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Keeps what a traced step gave."""
        run, self._local.run = self._local.run, None
        if run is None:
            self.clock.end()
        elif isinstance(run, ShapeSteps):
            run.add_step(run_values.run_metadata)
        else:
            recorder, step, start_ns = run
            end_ns = time.time_ns()
            if self._global_step is not None:
                # After the step, so that reading it is no part of the step.
                step = self._unused(int(run_context.session.run(self._global_step)))
            recorder.add_step(step, start_ns, end_ns, run_values.run_metadata)

    def _unused(self, step: int) -> int:
        """The global step, or the next number where this one has been given: steps need not
        advance it."""
        with self._lock:
            self._last = max(step, self._last + 1)
            return self._last


def capture_steps(
    session: Any,
    fetches: Any,
    steps: int,
    *,
    feed_dict: Mapping[Any, Any] | None = None,
    title: str = "",
    step_stats: bool = False,
) -> Trace:
    """Traces `steps` runs of `fetches` in a plain session.

    Args:
      session: a `tf.compat.v1.Session`; stages started in it (`prefetching`) are traced too.
      fetches: what a step runs.
      steps: how many, at least 1.
      feed_dict: fed to each.
      title: name of the trace.
      step_stats: as of `CaptureHook.start`.

    Returns:
      The Trace. Warm the session up first: the first runs of a graph are not typical.

    Raises:
      TraceError: steps below 1.
    """
    recorder = SessionRecorder(session, title, step_stats=step_stats)
    recorder.start()
    try:
        for number in range(1, steps + 1):
            start_ns = time.time_ns()
            options = recorder.begin_step()
            metadata = None if options is None else v1.RunMetadata()
            session.run(fetches, feed_dict, options=options, run_metadata=metadata)
            recorder.add_step(number, start_ns, time.time_ns(), metadata)
    except BaseException:
        recorder.abandon()
        raise
    return recorder.stop()

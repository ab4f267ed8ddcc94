"""TraceHook: each worker of a cluster traces some of its steps, all at the same time."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from workbench.core.capture.session_capture import CaptureHook
from workbench.core.trace.trace import Trace
from workbench.experiments.cluster.task import PS, WORKER, Task
from workbench.experiments.worker.steps.first_steps import WARM_UP_STEPS
from workbench.files.atomic_file import make_directory

_LOG = logging.getLogger("workbench")
# More make a file larger, and clocks hardly better.
TRACED_STEPS = 30
# Longer than this no worker waits for one that has not come so far.
_MEET_MS = 60_000


class TraceHook(tf.compat.v1.train.SessionRunHook):
    """Traces some steps of a worker in the midst of its training, and saves the trace.

    Where its session ends meanwhile, the steps until then are saved, and the trace says so. A
    worker that was started again keeps what it has saved before.
    """

    def __init__(self, path: Path, meet: Callable[[], None], say: Callable[[str], None]) -> None:
        """Makes the hook.

        Args:
          path: of the file that it writes.
          meet: returns when all workers have called it.
          say: is told what was written.
        """
        self._path, self._meet, self._say = path, meet, say
        self._capture = CaptureHook(path.stem.replace("_", " "))
        self._steps = self._traced = 0
        self._met = self._on = False
        self._saved = path.exists()
        if self._saved:
            say(f"Keeps {path}, which this worker has saved before it was started again")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Notes the session; of one that ended before it saves what was traced."""
        if self._on:
            self._on = False
            trace = self._capture.rescue()
            if trace is not None:
                self._save(_cut_off(trace))
        self._capture.after_create_session(session, coord)

    def before_run(self, run_context: Any) -> Any:
        """Begins to trace after the first steps."""
        if not (self._on or self._saved) and self._steps >= WARM_UP_STEPS:
            if not self._met:
                self._meet()
                self._met = True
            self._capture.start(step_stats=True)
            self._on, self._traced = True, 0
        return self._capture.before_run(run_context)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Ends to trace after enough steps."""
        self._capture.after_run(run_context, run_values)
        self._steps += 1
        self._traced += 1
        if self._on and self._traced == TRACED_STEPS:
            self._stop()

    def end(self, session: Any) -> None:
        """Saves what was traced of a training that ends early."""
        del session
        if self._on:
            self._stop()

    def _stop(self) -> None:
        self._on = False
        self._save(self._capture.stop())

    def _save(self, trace: Trace) -> None:
        self._saved = True
        make_directory(self._path.parent)
        trace.save(self._path)
        self._say(f"Wrote {self._path}")


def _cut_off(trace: Trace) -> Trace:
    """With a note of the steps that it lacks, which a report of the cluster shows."""
    what = f"steps of {trace.meta.title}, whose session ended while it was traced"
    missing = max(0, TRACED_STEPS - len(trace.steps()))
    meta = dataclasses.replace(trace.meta, left_out={**trace.meta.left_out, what: missing})
    return dataclasses.replace(trace, meta=meta)


def meeting(server: Any, task: Task) -> Callable[[], None]:
    """A call that returns when all workers of the cluster have made it.

    Each puts a token for every worker into that one's queue, on the first parameter server, and
    takes as many from its own.
    """

    def meet() -> None:
        workers = len(task.cluster[WORKER])
        with tf.Graph().as_default(), tf.device(f"/job:{PS}/task:0/device:CPU:0"):
            queues = [
                tf.queue.FIFOQueue(
                    workers, [tf.int32], shapes=[()], shared_name=f"workbench_meet_{k}"
                )
                for k in range(workers)
            ]
            tokens = [queue.enqueue(task.index) for queue in queues]
            all_here = queues[task.index].dequeue_many(workers)
            filters = [f"/job:{PS}", f"/job:{WORKER}/task:{task.index}"]
            config = tf.compat.v1.ConfigProto(device_filters=filters)
            with tf.compat.v1.Session(server.target, config=config) as session:
                session.run(tokens)
                options = tf.compat.v1.RunOptions(timeout_in_ms=_MEET_MS)
                try:
                    session.run(all_here, options=options)
                except tf.errors.DeadlineExceededError:
                    _LOG.warning(
                        "%s traces alone: another worker has not come so far within %d s",
                        task.name,
                        _MEET_MS // 1000,
                    )

    return meet

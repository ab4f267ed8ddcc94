"""A worker's session in a cluster, which is created again when a parameter server was killed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from workbench.experiments.cluster.task import PS, WORKER, Task

v1 = tf.compat.v1

_POLL_S = 0.2
# What a closing session waits for threads that cannot end before it has closed, such as one that
# waits for gradients of workers that have ended.
_GRACE_S = 3


def filters(task: Task) -> list[str]:
    """What a worker's session asks: a session that asked other workers would wait for dead ones."""
    return [f"/job:{PS}", f"/job:{WORKER}/task:{task.index}"]


def cluster_session(
    target: str,
    task: Task,
    config: Any,
    hooks: Sequence[Any],
    *,
    scaffold: Any,
    checkpoint: str | None,
    checkpoint_s: float,
) -> Any:
    """The monitored session of a worker on the current graph.

    Args:
      target: of the worker's own server.
      task: the worker's.
      config: ConfigProto.
      hooks: SessionRunHooks.
      scaffold: of the graph.
      checkpoint: a directory that all tasks see; None keeps nothing.
      checkpoint_s: seconds from one checkpoint to the next.
    """
    if task.is_chief:
        return v1.train.MonitoredTrainingSession(
            master=target,
            is_chief=True,
            scaffold=scaffold,
            checkpoint_dir=checkpoint,
            save_checkpoint_secs=checkpoint_s,
            hooks=hooks,
            config=config,
            stop_grace_period_secs=_GRACE_S,
        )
    return v1.train.MonitoredSession(
        session_creator=_AfterChief(target, task, config, scaffold),
        hooks=hooks,
        stop_grace_period_secs=_GRACE_S,
    )


class RawRuns(tf.compat.v1.train.SessionRunHook):
    """Runs of a monitored session without its hooks, which recover as the session does.

    The session's own `run_step_fn` keeps to the session that failed.
    """

    def __init__(self) -> None:
        self._raw: Any = None

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Notes the session that is there now."""
        del coord
        self._raw = session

    def call(self, session: Any, function: Callable[[Any], Any]) -> Any:
        """Calls a function with the raw session of a monitored one that has this hook."""
        return session.run_step_fn(lambda step_context: function(self._raw))


class SessionLines(tf.compat.v1.train.SessionRunHook):
    """Says where each session of a worker begins, also one after a parameter server's death."""

    def __init__(self, task: Task, program: str, say: Callable[[str], None]) -> None:
        """Of the current graph, which has a global step.

        Args:
          task: the worker's.
          program: its name.
          say: is told.
        """
        self._begins = f"{task.name} trains {program}, process {os.getpid()}, from global step"
        self._step = tf.compat.v1.train.get_global_step()
        self._say = say

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Says it of the session that is there now."""
        del coord
        self._say(f"{self._begins} {session.run(self._step)}")


class Checkpoints:
    """Checkpoints of a chief whose own steps are done; until then its session makes them."""

    def __init__(self, scaffold: Any, directory: str, every_s: float) -> None:
        """Of a session's scaffold; as of `cluster_session`."""
        self._scaffold = scaffold
        self._directory = directory
        self._every_s = every_s
        self._next_s = time.monotonic() + every_s

    @property
    def due(self) -> bool:
        """Whether it is time for one."""
        return time.monotonic() >= self._next_s

    def save(self, session: Any) -> None:
        """Makes one of a raw session."""
        self._next_s = time.monotonic() + self._every_s
        step = tf.compat.v1.train.get_global_step()
        path = os.path.join(self._directory, "model.ckpt")
        self._scaffold.saver.save(session, path, step, write_meta_graph=False)


class _AfterChief(tf.compat.v1.train.WorkerSessionCreator):
    """Creates a session once the chief has initialized the variables; TensorFlow's own creator
    looks every 30 s only."""

    def __init__(self, target: str, task: Task, config: Any, scaffold: Any) -> None:
        super().__init__(scaffold, master=target, config=config)
        self._target = target
        self._missing = v1.report_uninitialized_variables(v1.global_variables())
        self._asking = v1.ConfigProto(device_filters=filters(task))

    def create_session(self) -> Any:
        """Waits, and creates it."""
        self._scaffold.finalize()
        while not self._ready():
            time.sleep(_POLL_S)
        return super().create_session()

    def _ready(self) -> bool:
        with v1.Session(self._target, config=self._asking) as session:
            try:
                return not len(session.run(self._missing))
            except (tf.errors.UnavailableError, tf.errors.AbortedError):
                return False  # A parameter server has gone, or come back, meanwhile.

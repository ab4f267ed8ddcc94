"""When the tasks of a cluster end: a worker that is done stays until all are, the chief goes last.

Only the chief restores what a parameter server loses that is killed, so it must not leave before
the others are done. What workers tell a parameter server is lost with it, too; they tell it again
until the chief has heard them all. A worker that is killed when it was done does not train again:
the others would not wait for it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.experiments.cluster.task import PS, WORKER, Task

_POLL_S = 0.2
# How long the chief waits for workers to see that all are done; one that was killed never does.
_LEAVE_S = 10.0
# States of a worker. Of the chief, DONE says that all are, and LEFT that parameter servers may end.
_RUNS, _DONE, _LEFT = 0, 1, 2
_CHIEF = 0


def serve_until_left(tf: Any, server: Any, task: Task) -> None:
    """Serves as a parameter server until the chief has left."""
    with tf.Graph().as_default():
        states = _states(tf, task, task.index)
        own = tf.compat.v1.ConfigProto(device_filters=[f"/job:{PS}/task:{task.index}"])
        with tf.compat.v1.Session(server.target, config=own) as session:
            session.run(states.initializer)
            while session.run(states.value())[_CHIEF] != _LEFT:
                time.sleep(_POLL_S)


class Endings:
    """The states of all workers, on each parameter server, as ops of a worker's graph."""

    def __init__(self, tf: Any, task: Task) -> None:
        """Adds the ops to the current graph."""
        self._failed = (tf.errors.FailedPreconditionError, tf.errors.NotFoundError)
        self._gone = (
            tf.errors.UnavailableError,
            tf.errors.AbortedError,
            tf.errors.DeadlineExceededError,
        )
        self._session = tf.compat.v1.Session
        self._task = task
        self._workers = len(task.cluster[WORKER])
        self._state = tf.compat.v1.placeholder(tf.int32, [], name="workbench_state")
        self._told, self._known, self._began, self._begin = [], [], [], []
        for ps in range(len(task.cluster[PS])):
            states = _states(tf, task, ps)
            self._began.append(states.is_initialized())
            self._begin.append(states.initializer)
            with tf.device(states.device):
                self._known.append(states.read_value())
                told = tf.raw_ops.ResourceScatterMax(
                    resource=states.handle, indices=[task.index], updates=[self._state]
                )
                with tf.control_dependencies([told]):
                    self._told.append(states.read_value())

    def done_before(self, run: Callable[..., Any]) -> bool:
        """Whether this worker was done when it was killed; asked once, before its first step.

        Parameter servers that serve on after a training forget it when the chief of the next asks.

        Args:
          run: as of `wait`.
        """
        try:
            states = np.max(run(self._known), axis=0)
        except self._failed:
            return False  # A parameter server was started after that, or has told nobody yet.
        if states[_CHIEF] == _LEFT:
            if self._task.is_chief:
                run(self._begin)
            return False
        return bool(states[self._task.index] != _RUNS)

    def wait(
        self, run: Callable[..., Any], look: Callable[[], None], stays: Callable[[], None]
    ) -> None:
        """Stays until all workers are done; this one is done with its steps.

        Args:
          run: of a session of the graph, which recovers from a parameter server's death; without
            the session's hooks, which may fetch the next batch.
          look: called before each look at the others.
          stays: called once, when parameter servers know that this worker is done.
        """
        look()
        if not self._task.is_chief:
            self._tell(run, _DONE)
            stays()
            while self._tell(run, _DONE)[_CHIEF] == _RUNS:
                look()
                time.sleep(_POLL_S)
            return
        stays()
        # Kept here: a parameter server that is started again knows of none.
        done = {_CHIEF}
        while True:
            done |= set(np.flatnonzero(self._tell(run, _RUNS)).tolist())
            if len(done) == self._workers:
                break
            look()
            time.sleep(_POLL_S)
        ends_s = time.monotonic() + _LEAVE_S
        while (self._tell(run, _DONE)[1:] != _LEFT).any() and time.monotonic() < ends_s:
            time.sleep(_POLL_S)

    def leave(self, target: str, config: Any) -> None:
        """Tells parameter servers that this worker has left, once its session is closed: a session
        waits for what a server that has ended does not answer."""
        bounded = type(config).FromString(config.SerializeToString())
        bounded.operation_timeout_in_ms = round(1000 * _LEAVE_S)
        ends_s = time.monotonic() + _LEAVE_S
        while time.monotonic() < ends_s:
            with (
                contextlib.suppress(*self._gone),
                self._session(target, config=bounded) as session,
            ):
                self._tell(session.run, _LEFT)
                return

    def _tell(self, run: Callable[..., Any], state: int) -> Any:
        """Tells every parameter server this worker's state; what they know, int [workers]."""
        while True:
            try:
                found: Sequence[Any] = run(self._told, {self._state: state})
                return np.max(found, axis=0)
            except self._failed:
                # It has just been started, or serves without `serve_until_left`.
                time.sleep(_POLL_S)
                if self._task.is_chief:
                    began = run(self._began)
                    run([op for op, there in zip(self._begin, began, strict=True) if not there])


def _states(tf: Any, task: Task, ps: int) -> Any:
    """The variable of a parameter server, int32 [workers]."""
    with tf.device(f"/job:{PS}/task:{ps}/device:CPU:0"):
        return tf.compat.v1.Variable(
            tf.zeros([len(task.cluster[WORKER])], tf.int32),
            trainable=False,
            collections=[],
            use_resource=True,
            name=f"workbench_states_{ps}",
        )

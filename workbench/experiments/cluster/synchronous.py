"""Synchronous training: the workers' gradients of a step are averaged and applied once.

It is TensorFlow's SyncReplicasOptimizer, with three differences. Workers begin without a token to
spare, so that none reads variables before the others' gradients are in them. Gradients of rows are
summed by row before they are averaged: TensorFlow's accumulator averages what it finds at a place
of its list, so that its mean depends on how often an id is named. The queue of tokens is closed by
the worker that ends first, which ends the others too, and by nothing else.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.training.queue_runner_impl import QueueRunner

from workbench.errors import OptionError
from workbench.experiments.cluster.task import WORKER, Task


def synchronous(optimizer: Any) -> Any:
    """An optimizer that also trains synchronously, where a cluster is asked to.

    A program wraps its optimizer in it and calls `minimize` or `apply_gradients` of what it gets,
    once, with a global step.

    Args:
      optimizer: of `tf.compat.v1.train` or `workbench.ops`, or one with `compute_gradients` and
        `apply_gradients` like theirs.

    Returns:
      The same one, but in `workbench cluster --sync`: there one that averages the gradients of all
      workers first.

    Raises:
      OptionError: another optimizer of the program has been wrapped.
    """
    training = _TRAINING.get()
    return optimizer if training is None else training.wrap(optimizer)


class SynchronousTraining:
    """What a worker's graph has for synchronous training; filled while its program is built."""

    def __init__(self, task: Task) -> None:
        """Of one worker's task."""
        self._task = task
        self._workers = len(task.cluster[WORKER])
        self._optimizer: Any = None

    def wrap(self, optimizer: Any) -> Any:
        """The program's optimizer, wrapped."""
        if self._optimizer is not None:
            raise OptionError(
                "wb.cluster.synchronous wraps a second optimizer of one program; expected one that "
                "applies all gradients: put several into one with an apply_gradients of its own"
            )
        self._optimizer = _Synchronous(optimizer, replicas_to_aggregate=self._workers)
        return self._optimizer

    def hooks(self, program: str) -> list[Any]:
        """The session's hooks, once the program is built.

        Raises:
          OptionError: the program has not wrapped its optimizer.
        """
        if self._optimizer is None or self._optimizer._sync_token_queue is None:
            raise OptionError(
                f"program {program!r} trains without wb.cluster.synchronous, which synchronous "
                "training needs; write "
                "wb.cluster.synchronous(optimizer).minimize(loss, global_step=step) in it"
            )
        chief = self._task.is_chief
        hooks = [self._optimizer.make_session_run_hook(chief, num_tokens=0)]
        return [*hooks, _TokensAgain(self._optimizer, self._workers)] if chief else hooks

    def add_end(self) -> tuple[Any, Any]:
        """Adds the ops that tell whether training has ended, and that end it for all workers."""
        queue = self._optimizer._sync_token_queue
        return queue.is_closed(), queue.close(cancel_pending_enqueues=True)


_TRAINING: contextvars.ContextVar[SynchronousTraining | None] = contextvars.ContextVar(
    "workbench_synchronous_training", default=None
)


@contextlib.contextmanager
def synchronizing(task: Task) -> Iterator[SynchronousTraining]:
    """Has `synchronous` wrap the optimizer of the program that is built inside."""
    training = SynchronousTraining(task)
    token = _TRAINING.set(training)
    try:
        yield training
    finally:
        _TRAINING.reset(token)


class _Synchronous(tf.compat.v1.train.SyncReplicasOptimizer):
    def apply_gradients(
        self, grads_and_vars: Sequence[Any], global_step: Any = None, name: str | None = None
    ) -> Any:
        summed = [(_by_row(gradient), variable) for gradient, variable in grads_and_vars]
        return super().apply_gradients(summed, global_step, name)

    def get_chief_queue_runner(self) -> QueueRunner:
        """As TensorFlow's, but that a chief's session that closes leaves the queue open."""
        return QueueRunner(
            self._sync_token_queue,
            super().get_chief_queue_runner().enqueue_ops,
            close_op=tf.no_op(),
            cancel_op=tf.no_op(),
            queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError),
        )


def _by_row(gradient: Any) -> Any:
    """A gradient with one value for each row, in the rows' order; dense ones as they are."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    order = tf.argsort(rows)
    return tf.IndexedSlices(
        tf.gather(values, order), tf.gather(rows, order), dense_shape=gradient.dense_shape
    )


class _TokensAgain(tf.compat.v1.train.SessionRunHook):
    """Gives a token to each worker when the chief begins in a cluster that has trained before.

    The chief before it may have taken the workers' gradients and died before it gave out tokens;
    the workers would wait for those, and the chief for their next gradients.
    """

    def __init__(self, optimizer: Any, workers: int) -> None:
        self._optimizer = optimizer
        self._workers = workers

    def begin(self) -> None:
        """Adds the ops, where the tokens are."""
        step, tokens = self._optimizer._global_step, self._optimizer._sync_token_queue
        with tf.device(step.device):
            begun = tf.queue.FIFOQueue(1, [tf.int32], [[]], shared_name="workbench_sync_begun")
            self._begun, self._begin = begun.size(), begun.enqueue(np.int32(1))
            missing = tf.maximum(self._workers - tokens.size(), 0)
            self._again = tokens.enqueue_many((tf.fill([missing], tf.identity(step)),))

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Tells by a mark on the parameter server whether the cluster has trained before."""
        del coord
        try:
            session.run(self._again if session.run(self._begun) else self._begin)
        except tf.errors.CancelledError:
            return  # A worker has ended the training: no token is missed.

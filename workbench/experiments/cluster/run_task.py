"""One task of a cluster: a parameter server that serves until the workers end, or a worker that
trains a program."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.core.optimizations import Optimizations
from workbench.experiments.cluster.own_machine import (
    is_own_machine,
    on_loopback,
    reached_by_others,
)
from workbench.experiments.cluster.task import PS, Task
from workbench.experiments.program.program import Program
from workbench.experiments.worker.steps.threads import ask_for_threads, set_threads
from workbench.freed_memory import keep_freed_memory

if TYPE_CHECKING:
    from workbench.experiments.cluster.worker_training import TaskResult


def run_task(
    program: Program,
    optimizations: Optimizations | None = None,
    *,
    task: Task,
    steps: int,
    sync: bool = False,
    checkpoint: str | None = None,
    checkpoint_s: float = 600.0,
    trace: str | None = None,
    packs: bool | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> TaskResult | None:
    """Runs this process's task of a cluster to its end.

    Variables are on the parameter servers, in turns, and everything else is on the worker. Workers
    train without waiting for one another, or in step with `sync`. A worker that is done stays until
    all are; then the parameter servers end, too.

    Args:
      program: what each worker trains.
      optimizations: toggles. Numbers of threads are those of this task's server. An executor policy
        is that of all tasks' parts of this worker's steps.
      task: as of `task_from_environment`.
      steps: that each worker runs.
      sync: whether the workers' gradients of a step are averaged and applied once. The first worker
        that is done, or whose data ends, then ends the training of all.
      checkpoint: a directory that all tasks see, where the chief saves, and from where a worker or
        parameter server that was started again goes on.
      checkpoint_s: seconds from one checkpoint to the next.
      trace: a directory where each worker saves a trace of some of its steps, which all take at
        the same time.
      packs: whether small tensors travel from task to task in few messages, as of
        `wb.cluster.pack_transfers`; None lets them where lookups are grouped or fused. It also does
        where an executor policy is on and all tasks have loaded the library.
      say: is told what is done.

    Returns:
      What a worker did; None of a parameter server.

    Raises:
      NativeError: a parameter server without the library runs an op of it.
      OptionError: synchronous training of a program that does not use `wb.cluster.synchronous`.
      RunError: this process runs ops on another number of threads already.
    """
    wishes = optimizations or Optimizations()
    import tensorflow as tf

    server = _server(task, wishes)
    if task.job == PS:
        from workbench.experiments.cluster.endings import serve_until_left

        say(f"{task.name} serves at {task.address}, process {os.getpid()}; {_reached(task)}")
        serve_until_left(tf, server, task)
        return None
    others = "parameter servers" if task.is_chief else "parameter servers and the chief"
    say(
        f"{task.name} starts, process {os.getpid()}, and waits for {others}; it serves at "
        f"{task.address}; {_reached(task)}"
    )
    from workbench.experiments.cluster.worker_training import Training, train

    training = Training(
        sync=sync,
        steps=steps,
        checkpoint=checkpoint,
        checkpoint_s=checkpoint_s,
        trace=trace,
        packs=packs,
        say=say,
    )
    try:
        return train(server, program, wishes, task, training)
    except tf.errors.NotFoundError as error:
        if "Op type not registered 'Workbench" in error.message:
            from workbench.core.session.server_library import check_servers

            check_servers(server.target)
        raise


def _server(task: Task, wishes: Optimizations) -> Any:
    """The task's server, with the library, on threads as wished for, its freed memory kept."""
    import tensorflow as tf

    from workbench import _native

    # A server's pass and kernels are the library's, also where no op of it is built.
    _native.library()
    keep_freed_memory()
    # Of a tf.data pipeline's functions, whose threads are not the server's.
    set_threads(wishes)
    # A session on a server runs on the server's threads, whatever its own config says.
    config = tf.compat.v1.ConfigProto()
    ask_for_threads(config, wishes)
    host = task.address.rpartition(":")[0]
    with on_loopback(host) if is_own_machine(task.addresses) else contextlib.nullcontext():
        return tf.distribute.Server(
            tf.train.ClusterSpec({job: list(each) for job, each in task.cluster.items()}),
            job_name=task.job,
            task_index=task.index,
            config=config,
        )


def _reached(task: Task) -> str:
    """Who can reach the task's server, in words: it has no password, and runs what it is sent."""
    port = int(task.address.rpartition(":")[2])
    if not reached_by_others(port):
        return "only this machine reaches it"
    return (
        f"any machine that reaches port {port} can run code in it and use its files: "
        "TensorFlow's servers have no password"
    )

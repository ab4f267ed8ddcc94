"""One task of a cluster: a parameter server that serves until the workers end, or a worker that
trains a program."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.core.options import Optimizations
from workbench.errors import UnsupportedError
from workbench.experiments.cluster.task import PS, WORKER, Task
from workbench.experiments.program.program import Program

if TYPE_CHECKING:
    from workbench.experiments.program.program import Built

# Steps before those that are timed: buffers fill, and grappler has done its work.
_WARM_STEPS = 10
_POLL_S = 0.2
# Variables of Workbench's own, which belong on a parameter server as others do.
_OWN_VARIABLES = ("WorkbenchEmbeddingVariable",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskResult:
    """What a worker did.

    Attributes:
      task: its name.
      steps: that it ran.
      steps_per_s: mean over all but the first ten.
      losses: of each step; empty for a program without a loss.
      ended: whether its data ended before the steps were done.
    """

    task: str
    steps: int
    steps_per_s: float
    losses: tuple[float, ...]
    ended: bool


def run_task(
    program: Program,
    optimizations: Optimizations | None = None,
    *,
    task: Task,
    steps: int,
    checkpoint: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> TaskResult | None:
    """Runs this process's task of a cluster to its end.

    Variables are on the parameter servers, in turns, and everything else is on the worker. Workers
    train without waiting for one another. A parameter server ends when every worker has.

    Args:
      program: what each worker trains.
      optimizations: toggles; executor policies have no effect on servers.
      task: as of `task_from_environment`.
      steps: that each worker runs.
      checkpoint: a directory that all tasks see, where the chief saves, and from where a worker or
        parameter server that was started again goes on.
      say: is told what is done.

    Returns:
      What a worker did; None of a parameter server.

    Raises:
      UnsupportedError: an executor policy, which sessions on servers do not obey.
    """
    wishes = optimizations or Optimizations()
    if wishes.executor is not None:
        raise UnsupportedError(
            f"executor={str(wishes.executor)!r}: sessions on TensorFlow's servers run on its own "
            "executor, whatever their config says; leave the executor out"
        )
    import tensorflow as tf

    from workbench import _native

    # A server's pass and kernels are the library's, also where no op of it is built.
    _native.library()
    server = tf.distribute.Server(
        tf.train.ClusterSpec({job: list(each) for job, each in task.cluster.items()}),
        job_name=task.job,
        task_index=task.index,
    )
    if task.job == PS:
        say(f"{task.name} serves at {task.cluster[PS][task.index]}")
        _serve(tf, server, task)
        return None
    return _train(tf, server, program, wishes, task, steps, checkpoint, say)


def _done(tf: Any, task: Task, ps: int) -> Any:
    """The queue on a parameter server into which each worker puts a token when it ends."""
    workers = len(task.cluster[WORKER])
    with tf.device(f"/job:{PS}/task:{ps}/device:CPU:0"):
        return tf.queue.FIFOQueue(
            workers, [tf.int32], shapes=[()], shared_name=f"workbench_done_{ps}"
        )


def _serve(tf: Any, server: Any, task: Task) -> None:
    with tf.Graph().as_default():
        token = _done(tf, task, task.index).dequeue()
        own = tf.compat.v1.ConfigProto(device_filters=[f"/job:{PS}/task:{task.index}"])
        with tf.compat.v1.Session(server.target, config=own) as session:
            for _ in task.cluster[WORKER]:
                session.run(token)


def _train(
    tf: Any,
    server: Any,
    program: Program,
    wishes: Optimizations,
    task: Task,
    steps: int,
    checkpoint: str | None,
    say: Callable[[str], None],
) -> TaskResult:
    from workbench.core.session.prefetch_hook import make_prefetch_hook

    with tf.Graph().as_default() as graph:
        with graph.device(_placed(tf, task)):
            built = _built(program, wishes)
            tf.compat.v1.train.get_or_create_global_step()
        config = _config(graph, built, wishes, say)
        config.device_filters.extend(_filters(task))
        if not task.is_chief:
            _wait_for_chief(tf, server, task)
        with tf.compat.v1.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=task.is_chief,
            checkpoint_dir=checkpoint,
            hooks=[*built.hooks, make_prefetch_hook()],
            config=config,
        ) as session:
            say(f"{task.name} trains {program.name}")
            found = _steps(task, session, built, steps)
    _tell(tf, server, task)
    return found


def _filters(task: Task) -> list[str]:
    """What a worker's session asks: a session that asked other workers would wait for dead ones."""
    return [f"/job:{PS}", f"/job:{WORKER}/task:{task.index}"]


def _wait_for_chief(tf: Any, server: Any, task: Task) -> None:
    """Waits until the chief has initialized the variables; TensorFlow looks every 30 s only."""
    missing = tf.compat.v1.report_uninitialized_variables()
    config = tf.compat.v1.ConfigProto(device_filters=_filters(task))
    with tf.compat.v1.Session(server.target, config=config) as session:
        while len(session.run(missing)):
            time.sleep(_POLL_S)


def _placed(tf: Any, task: Task) -> Any:
    from tensorflow.python.training.device_setter import STANDARD_PS_OPS

    return tf.compat.v1.train.replica_device_setter(
        cluster=tf.train.ClusterSpec({job: list(each) for job, each in task.cluster.items()}),
        worker_device=f"/job:{WORKER}/task:{task.index}",
        ps_ops=[*STANDARD_PS_OPS, *_OWN_VARIABLES],
    )


def _built(program: Program, wishes: Optimizations) -> Built:
    from workbench.experiments.worker.steps.graph_session import build_part

    return build_part(program, "build", wishes)


def _config(graph: Any, built: Built, wishes: Optimizations, say: Callable[[str], None]) -> Any:
    """The session's config, with the plans that are wished for."""
    from workbench.core.lookup_fusion.plan import plan_fusion
    from workbench.core.session.rewrite import apply
    from workbench.core.smart_stage import prepare_config
    from workbench.experiments.worker.steps.graph_session import stock_config

    config = stock_config(built)
    if wishes.fuses_graph:
        fusion = plan_fusion(graph)
        say(fusion.describe())
        apply(fusion, config)
    if wishes.smart_stage is not None:
        targets = [each for each in (built.train_op, built.loss) if each is not None]
        config, plan = prepare_config(graph, config, wishes.smart_stage, targets=targets)
        say(plan.describe())
    return config


def _steps(task: Task, session: Any, built: Built, steps: int) -> TaskResult:
    import tensorflow as tf

    fetches = [built.train_op, *([built.loss] if built.loss is not None else [])]
    ends, losses, ended = [time.perf_counter()], [], False
    try:
        for _ in range(steps):
            found = session.run(fetches)
            ends.append(time.perf_counter())
            losses += [float(np.mean(value)) for value in found[1:]]
    except tf.errors.OutOfRangeError:
        ended = True
    timed = ends[_WARM_STEPS:] if len(ends) > 2 * _WARM_STEPS else ends
    took = timed[-1] - timed[0]
    return TaskResult(
        task=task.name,
        steps=len(ends) - 1,
        steps_per_s=(len(timed) - 1) / took if took else 0.0,
        losses=tuple(losses),
        ended=ended,
    )


def _tell(tf: Any, server: Any, task: Task) -> None:
    """Tells every parameter server that this worker has ended."""
    with tf.Graph().as_default():
        tokens = [_done(tf, task, ps).enqueue(task.index) for ps in range(len(task.cluster[PS]))]
        config = tf.compat.v1.ConfigProto(device_filters=_filters(task))
        with tf.compat.v1.Session(server.target, config=config) as session:
            session.run(tokens)

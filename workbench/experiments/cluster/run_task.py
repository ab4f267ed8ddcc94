"""One task of a cluster: a parameter server that serves until the workers end, or a worker that
trains a program."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.core.options import Optimizations
from workbench.errors import UnsupportedError
from workbench.experiments.cluster.task import PS, WORKER, Task
from workbench.experiments.program.program import Program

if TYPE_CHECKING:
    from workbench.experiments.cluster.cluster_session import RawRuns
    from workbench.experiments.cluster.endings import Endings
    from workbench.experiments.program.program import Built

# Steps before those that are timed: buffers fill, and grappler has done its work.
_WARM_STEPS = 10
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
      optimizations: toggles; executor policies have no effect on servers.
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
        `wb.pack_transfers`; None lets them where lookups are grouped, or fused in the graph.
      say: is told what is done.

    Returns:
      What a worker did; None of a parameter server.

    Raises:
      UnsupportedError: an executor policy, which sessions on servers do not obey.
      NativeError: a parameter server without the library runs an op of it.
      OptionError: synchronous training of a program that does not use `wb.synchronous`.
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
        from workbench.experiments.cluster.endings import serve_until_left

        say(f"{task.name} serves at {task.cluster[PS][task.index]}, process {os.getpid()}")
        serve_until_left(tf, server, task)
        return None
    plan = _Training(
        sync=sync,
        steps=steps,
        checkpoint=checkpoint,
        checkpoint_s=checkpoint_s,
        trace=trace,
        packs=wishes.groups_lookups if packs is None else packs,
        say=say,
    )
    try:
        return _train(tf, server, program, wishes, task, plan)
    except tf.errors.NotFoundError as error:
        if "Op type not registered 'Workbench" in error.message:
            from workbench.core.session.server_library import check_servers

            check_servers(server.target)
        raise


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Training:
    """How a worker trains: the arguments of `run_task`."""

    sync: bool
    steps: int
    checkpoint: str | None
    checkpoint_s: float
    trace: str | None
    packs: bool
    say: Callable[[str], None]


def _train(
    tf: Any, server: Any, program: Program, wishes: Optimizations, task: Task, asked: _Training
) -> TaskResult:
    from workbench.core.session.prefetch_hook import make_prefetch_hook
    from workbench.experiments.cluster.cluster_session import RawRuns, cluster_session, filters
    from workbench.experiments.cluster.endings import Endings
    from workbench.experiments.cluster.synchronous import synchronizing

    tracing = _tracing(server, task, asked)
    with tf.Graph().as_default() as graph:
        synchronized = synchronizing(task) if asked.sync else contextlib.nullcontext()
        with synchronized as training, graph.device(_placed(tf, task)):
            built = _built(program, wishes)
            tf.compat.v1.train.get_or_create_global_step()
            hooks = [*built.hooks, *(training.hooks(program.name) if training else ())]
        config = _config(graph, built, wishes, asked)
        config.device_filters.extend(filters(task))
        scaffold = tf.compat.v1.train.Scaffold()
        raw, endings = RawRuns(), Endings(tf, task)
        end = training.add_end() if training else None
        with cluster_session(
            server.target,
            task,
            config,
            [*hooks, make_prefetch_hook(), *tracing, raw],
            scaffold=scaffold,
            checkpoint=asked.checkpoint,
            checkpoint_s=asked.checkpoint_s,
        ) as session:
            asked.say(f"{task.name} trains {program.name}, process {os.getpid()}")
            found = _steps(task, session, built, asked.steps)
            stopped = session.should_stop()
            if not stopped:
                _stay(task, session, raw, scaffold, endings, end, asked)
        if stopped:
            with tf.compat.v1.Session(server.target, config=config) as plain:
                endings.wait(plain.run, lambda: _end_for_all(plain.run, end))
        endings.leave(server.target, config)
    return found


def _tracing(server: Any, task: Task, asked: _Training) -> list[Any]:
    """The hook that traces some of the steps, where a trace is asked for."""
    from workbench.experiments.cluster.trace_files import trace_path
    from workbench.experiments.cluster.trace_hook import TraceHook, meeting

    if asked.trace is None:
        return []
    return [TraceHook(trace_path(Path(asked.trace), task), meeting(server, task), asked.say)]


def _stay(
    task: Task,
    session: Any,
    raw: RawRuns,
    scaffold: Any,
    endings: Endings,
    end: Any,
    asked: _Training,
) -> None:
    """Stays in the session until all workers are done, as its recovery is what others wait for."""
    from workbench.experiments.cluster.cluster_session import Checkpoints

    kept = Checkpoints(scaffold, asked.checkpoint, asked.checkpoint_s) if asked.checkpoint else None

    def run(*given: Any) -> Any:
        return raw.call(session, lambda now: now.run(*given))

    def look() -> None:
        _end_for_all(run, end)
        if kept is not None and task.is_chief and kept.due:
            raw.call(session, kept.save)

    endings.wait(run, look)


def _end_for_all(run: Callable[..., Any], end: tuple[Any, Any] | None) -> None:
    """Ends synchronous training, in which a worker that is done leaves the others nothing to do."""
    import tensorflow as tf

    if end is not None and not run(end[0]):
        with contextlib.suppress(tf.errors.CancelledError):  # Another worker was faster.
            run(end[1])


def _placed(tf: Any, task: Task) -> Any:
    from tensorflow.python.training.device_setter import STANDARD_PS_OPS

    return tf.compat.v1.train.replica_device_setter(
        cluster=tf.train.ClusterSpec({job: list(each) for job, each in task.cluster.items()}),
        worker_device=f"/job:{WORKER}/task:{task.index}",
        ps_ops=[*STANDARD_PS_OPS, *_OWN_VARIABLES],
    )


def _built(program: Program, wishes: Optimizations) -> Built:
    from workbench.experiments.worker.steps.built_part import build_part

    return build_part(program, "build", wishes)


def _config(graph: Any, built: Built, wishes: Optimizations, asked: _Training) -> Any:
    """The session's config, with the plans that are wished for."""
    from workbench.core.lookup_fusion.plan import plan_fusion
    from workbench.core.session.pack_transfers import pack_transfers
    from workbench.core.session.rewrite import apply
    from workbench.core.smart_stage import prepare_config
    from workbench.experiments.worker.steps.session_config import stock_config

    config = stock_config(built)
    if wishes.fuses_graph:
        fusion = plan_fusion(graph)
        asked.say(fusion.describe())
        apply(fusion, config)
    if wishes.smart_stage is not None:
        targets = [each for each in (built.train_op, built.loss) if each is not None]
        config, plan = prepare_config(graph, config, wishes.smart_stage, targets=targets)
        asked.say(plan.describe())
    if asked.packs:
        pack_transfers(config)
        asked.say("Small tensors travel from task to task in few messages")
    return config


def _steps(task: Task, session: Any, built: Built, steps: int) -> TaskResult:
    import tensorflow as tf

    fetches = [built.train_op, *([built.loss] if built.loss is not None else [])]
    ends, losses, ended = [time.perf_counter()], [], False
    try:
        for _ in range(steps):
            if session.should_stop():  # as a hook of the program may ask for
                break
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

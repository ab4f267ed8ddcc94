"""A worker of a cluster: trains a program from its session to its end."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.core.optimizations import Optimizations
from workbench.core.session.prefetch_hook import make_prefetch_hook
from workbench.experiments.cluster.cluster_session import (
    Checkpoints,
    RawRuns,
    SessionLines,
    cluster_session,
    filters,
)
from workbench.experiments.cluster.endings import Endings
from workbench.experiments.cluster.kept_checkpoints import restoring_saver
from workbench.experiments.cluster.synchronous import synchronizing
from workbench.experiments.cluster.task import WORKER, Task
from workbench.experiments.cluster.trace_files import trace_path
from workbench.experiments.cluster.trace_hook import TraceHook, meeting
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker.steps.built_part import build_part
from workbench.experiments.worker.steps.session_config import on_executor, stock_config

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """How a worker trains: the arguments of `run_task`."""

    sync: bool
    steps: int
    checkpoint: str | None
    checkpoint_s: float
    trace: str | None
    packs: bool | None
    say: Callable[[str], None]


def train(
    server: Any, program: Program, wishes: Optimizations, task: Task, training: Training
) -> TaskResult:
    """Trains in sessions of a worker's server, and stays until all workers are done.

    Args:
      server: the worker's tf.distribute.Server.
      program, wishes, task, training: as of `run_task`.
    """
    from workbench.core.session.pack_transfers import pack_transfers

    tracing = _tracing(server, task, training)
    with tf.Graph().as_default() as graph:
        synchronized = synchronizing(task) if training.sync else contextlib.nullcontext()
        with synchronized as sync_training, graph.device(_placed(task)):
            built = _built(program, wishes)
            tf.compat.v1.train.get_or_create_global_step()
            hooks = [*built.hooks, *(sync_training.hooks(program.name) if sync_training else ())]
        config = _config(graph, built, wishes, training)
        config.device_filters.extend(filters(task))
        if _packs(server, wishes, config, training):
            pack_transfers(config)
            training.say("Small tensors travel from task to task in few messages")
        restores = task.is_chief and training.checkpoint is not None
        saver = restoring_saver(training.say) if restores else None
        scaffold = tf.compat.v1.train.Scaffold(saver=saver)
        raw, endings = RawRuns(), Endings(tf, task)
        lines = SessionLines(task, program.name, training.say)
        end = sync_training.add_end() if sync_training else None
        with cluster_session(
            server.target,
            task,
            config,
            [lines, *hooks, make_prefetch_hook(), *tracing, raw],
            scaffold=scaffold,
            checkpoint=training.checkpoint,
            checkpoint_s=training.checkpoint_s,
        ) as session:
            if endings.done_before(_runs(session, raw)):
                training.say(f"{task.name} was done when it was killed, and does not train again")
                training = dataclasses.replace(training, steps=0)
            result = _steps(task, session, built, training.steps)
            stopped = session.should_stop()
            if not stopped:
                _stay(task, session, raw, scaffold, endings, end, training)
        if stopped:
            with tf.compat.v1.Session(server.target, config=config) as plain:
                stays = functools.partial(_say_stays, task, training)
                endings.wait(plain.run, lambda: _end_for_all(plain.run, end), stays)
        endings.leave(server.target, config)
    return result


def _tracing(server: Any, task: Task, training: Training) -> list[Any]:
    """The hook that traces some of the steps, where a trace is asked for."""
    if training.trace is None:
        return []
    return [TraceHook(trace_path(Path(training.trace), task), meeting(server, task), training.say)]


def _stay(
    task: Task,
    session: Any,
    raw: RawRuns,
    scaffold: Any,
    endings: Endings,
    end: Any,
    training: Training,
) -> None:
    """Stays in the session until all workers are done, as its recovery is what others wait for."""
    kept = (
        Checkpoints(scaffold, training.checkpoint, training.checkpoint_s)
        if training.checkpoint
        else None
    )
    run = _runs(session, raw)

    def look() -> None:
        _end_for_all(run, end)
        if kept is not None and task.is_chief and kept.due:
            raw.call(session, kept.save)

    endings.wait(run, look, lambda: _say_stays(task, training))


def _say_stays(task: Task, training: Training) -> None:
    training.say(f"{task.name} is done, and stays until all are")


def _runs(session: Any, raw: RawRuns) -> Callable[..., Any]:
    """`run` of a monitored session without its hooks."""

    def run(*given: Any) -> Any:
        return raw.call(session, lambda now: now.run(*given))

    return run


def _end_for_all(run: Callable[..., Any], end: tuple[Any, Any] | None) -> None:
    """Ends synchronous training, in which a worker that is done leaves the others nothing to do."""
    if end is not None and not run(end[0]):
        with contextlib.suppress(tf.errors.CancelledError):  # Another worker was faster.
            run(end[1])


def _placed(task: Task) -> Any:
    from tensorflow.python.training.device_setter import STANDARD_PS_OPS

    return tf.compat.v1.train.replica_device_setter(
        cluster=tf.train.ClusterSpec({job: list(each) for job, each in task.cluster.items()}),
        worker_device=f"/job:{WORKER}/task:{task.index}",
        ps_ops=[*STANDARD_PS_OPS, *_OWN_VARIABLES],
    )


def _built(program: Program, wishes: Optimizations) -> Built:
    return build_part(program, "build", wishes)


def _config(graph: Any, built: Built, wishes: Optimizations, training: Training) -> Any:
    """The session's config, with the plans that are wished for."""
    from workbench.core.fusion.plan import plan_fusion
    from workbench.core.session.rewrite import apply
    from workbench.core.smart_stage import prepare_config

    config = on_executor(stock_config(built), wishes.executor, recorded=False)
    if wishes.fuses_graph:
        fusion = plan_fusion(graph)
        training.say(fusion.describe())
        apply(fusion, config)
    if wishes.smart_stage is not None:
        targets = [each for each in (built.train_op, built.loss) if each is not None]
        config, plan = prepare_config(graph, config, wishes.smart_stage, targets=targets)
        training.say(plan.describe())
    return config


def _packs(server: Any, wishes: Optimizations, config: Any, training: Training) -> bool:
    """Whether small tensors travel together: as asked for, else where all tasks can unpack them."""
    from workbench.core.session.server_library import tasks_without_library

    if training.packs is not None:
        return training.packs
    if wishes.groups_lookups or wishes.executor is None:
        return wishes.groups_lookups
    try:
        return not tasks_without_library(server.target, config)
    except tf.errors.OpError:  # A task that cannot be asked may lack it.
        return False


def _steps(task: Task, session: Any, built: Built, steps: int) -> TaskResult:
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

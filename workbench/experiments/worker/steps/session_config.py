"""The config of a program's session: what the program asks for, and what optimizations wish."""

from __future__ import annotations

from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy, SmartStageOptions, ThreadPoolOptions
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.experiments.program.program import Built
from workbench.experiments.program.variant import LEARNING
from workbench.experiments.worker.steps.threads import ask_for_threads
from workbench.usable import usable_cores


def stock_config(built: Built) -> Any:
    """The config that its session gets, free to change; called in the graph of the part."""
    import tensorflow as tf

    asked = built.config
    if hasattr(asked, "to_stock"):
        asked = asked.to_stock()
    config = tf.compat.v1.ConfigProto()
    if asked is not None:
        config.CopyFrom(asked)
    return config


def wished_config(built: Built, optimizations: Optimizations, *, recorded: bool) -> Any:
    """That config with the threads, thread pools and executor of the optimizations.

    Args:
      built: the part, in whose graph this is called.
      optimizations: what it was built with.
      recorded: on an executor that records its ops, see `ProgramSession`.
    """
    config = stock_config(built)
    ask_for_threads(config, optimizations)
    for each in optimizations.switched:
        each.toggle.configure(each.value, config)
    _add_missing_pools(config, optimizations)
    return on_executor(config, optimizations.executor, recorded)


def _add_missing_pools(config: Any, optimizations: Optimizations) -> None:
    """Adds the thread pools that stages ask for, where the program brings none.

    A pool has as many threads that run ops as the session, and inside ops one for each core that
    the session's intra-op threads leave, at least one.
    """
    from workbench.core.session.running.thread_pool import add_stage_pools, stage_pools

    stages = [each for each in (optimizations.stage, optimizations.smart_stage) if each is not None]
    asked = [s.stage_subgraph_thread_pool_id for s in stages if s.use_stage_subgraph_thread_pool]
    if not asked or stage_pools(config):
        return
    cores = usable_cores()
    left = cores - (config.intra_op_parallelism_threads or cores)
    pool = ThreadPoolOptions(intra_op_threads_num=max(1, left), global_name="stage")
    add_stage_pools(config, [pool] * (max(asked) + 1))


def on_executor(config: Any, policy: ExecutorPolicy | str | None, recorded: bool) -> Any:
    """The session's config with an executor policy, where one is wanted or can record ops.

    Args:
      config: the session's own.
      policy: the wanted one; None wants none.
      recorded: whether a session without one gets an executor that records its ops.
    """
    from workbench import _native
    from workbench.core.executor.policy import executor_options
    from workbench.core.session.session_facts import records_ops

    if policy is None and recorded and not records_ops(config) and _native.has_executors():
        policy = ExecutorPolicy.NORMAL
    if policy is None:
        return config

    return executor_options(
        policy, config=config, start_step=LEARNING.start_step, stop_step=LEARNING.stop_step
    )


def with_plan(
    graph: Any,
    built: Built,
    config: Any,
    options: SmartStageOptions | None,
    *,
    sample: Trace | None,
    plan: str | None,
) -> tuple[Any, StagePlan | None]:
    """The session's config with a plan in it, where a smart stage is wanted, and the plan."""
    if options is None:
        return config, None
    if plan is not None:
        from workbench.core.session.rewrite import apply

        known = StagePlan.from_json(plan)
        return apply(known, config, graph=graph), known
    from workbench.core.smart_stage import prepare_config

    wanted = (built.train_op, built.loss, built.fingerprint, built.labels, built.scores)
    prepared: tuple[Any, StagePlan] = prepare_config(
        graph,
        config,
        options,
        targets=[target for target in wanted if target is not None],
        trace=sample,
    )
    return prepared

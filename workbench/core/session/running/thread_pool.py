"""Independent thread pools for staged sides: threads that run ops, and threads inside one op.

Stock TensorFlow lets a run choose among the session's inter-op pools. It has no intra-op pool per
run, but its executors take one where they are called: an executor type of ours passes it on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from workbench import _native
from workbench.core.options import StageOptions, ThreadPoolOptions
from workbench.core.session.running.intra_op_pool import IntraOpPool, pool_of
from workbench.core.session.session_facts import OWN_EXECUTORS, STOCK_EXECUTOR, server_of
from workbench.errors import OptionError
from workbench.ignored import warn_ignored

_LOG = logging.getLogger("workbench")
_warned: set[str] = set()
# Where the config keeps what stock TensorFlow has no field for; it has no optimizer of that name.
_NAME = "WorkbenchStagePools"
_THREADS, _NAMES = "intra_op_threads", "names"
_StockConfig = tf.compat.v1.ConfigProto
_STOCK_NAMES = ("", "DEFAULT")


def add_stage_pools(config: Any, pools: Sequence[ThreadPoolOptions]) -> None:
    """Adds thread pools to a session's config, in place, for stages to run on.

    A stage with `use_stage_subgraph_thread_pool=True` runs on the pool whose number is its
    `stage_subgraph_thread_pool_id`; further calls add pools with further numbers. The pools belong
    to the session: equal names never share threads. TensorFlow refuses such a config for a session
    on a server.

    Args:
      config: a `tf.compat.v1.ConfigProto`. Stage pool k becomes its session pool k + 1, where pool
        0 is the one that steps run on. Where a pool has intra-op threads, and the config names no
        executor, the config gets stock TensorFlow's by the name "WORKBENCH_STOCK". This executor
        gives the threads to the runs of the stage.
      pools: the pools, in the order of their numbers.

    Raises:
      OptionError: `config` is no such ConfigProto, or `pools` are no `ThreadPoolOptions`.
      NativeError: a pool has intra-op threads, and the native library is missing or was built for
        another TensorFlow.
    """
    _require_kinds(config, pools)
    if not pools:
        return
    if not config.session_inter_op_thread_pool:
        config.session_inter_op_thread_pool.add(
            num_threads=config.inter_op_parallelism_threads
            if config.inter_op_parallelism_threads > 0
            else 0
        )
    before = stage_pools(config)
    for pool in pools:
        config.session_inter_op_thread_pool.add(num_threads=pool.inter_op_threads_num)
    intra_op_threads = [pool.intra_op_threads_num for pool in pools if pool.intra_op_threads_num]
    if intra_op_threads and not _native.has_executors():
        warn_ignored(
            "intra_op_threads_num",
            intra_op_threads[0],
            "the native library has no executors for this TensorFlow, so that the session's own "
            "intra-op threads are used",
        )
    elif intra_op_threads:
        _keep(config, before, pools)
        if config.experimental.executor_type in _STOCK_NAMES:
            _native.library()
            config.experimental.executor_type = STOCK_EXECUTOR


def stage_pools(config: Any) -> int:
    """How many pools for stages a ConfigProto, or None, has."""
    return max(0, len(config.session_inter_op_thread_pool) - 1) if config is not None else 0


def inter_op_pool(session: Any, stage: str, options: StageOptions) -> int:
    """The session pool that a stage's runs take: 0, the session's own, unless it asks for another.

    A session on a server takes none: TensorFlow refuses configs with pools there.

    Raises:
      OptionError: the session has no such pool; the message names the valid range.
    """
    if not options.use_stage_subgraph_thread_pool:
        return 0
    server = server_of(session)
    if server:
        _warn_once(
            "remote",
            "stage %r: a session on a server (%s) runs on the server's own threads; "
            "its stage thread pool is not used",
            stage,
            server,
        )
        return 0
    count = stage_pools(getattr(session, "_config", None))
    pool = options.stage_subgraph_thread_pool_id
    if count == 0:
        raise OptionError(
            f"stage {stage!r} asks for thread pool {pool}, but the session has no stage thread "
            "pool; add one: wb.add_stage_pools(config, [wb.ThreadPoolOptions()]), or with "
            "workbench.compat.v1 config.session_stage_subgraph_thread_pool.add()"
        )
    if pool >= count:
        raise OptionError(
            f"stage {stage!r} asks for thread pool {pool}; the session has {count}, "
            f"so stage_subgraph_thread_pool_id must be in [0, {count - 1}]"
        )
    return pool + 1


def intra_op_pool(session: Any, stage: str, options: StageOptions) -> IntraOpPool | None:
    """The threads inside the ops of a stage's runs; None for the session's own.

    Args:
      session: a raw `tf.compat.v1.Session`.
      stage: name of the stage.
      options: of the stage, for which `inter_op_pool` has found a pool.
    """
    config = getattr(session, "_config", None)
    if not options.use_stage_subgraph_thread_pool or config is None or server_of(session):
        return None
    number = options.stage_subgraph_thread_pool_id
    kept = _kept(config)
    if number >= len(kept) or not kept[number][1]:
        return None
    name, threads = kept[number]
    executor = config.experimental.executor_type
    if not executor.startswith(OWN_EXECUTORS):
        _warn_once(
            "executor",
            "stage %r: thread pool %d has %d intra-op threads, but the session's executor %r gives "
            "stages none of their own, so the session's are used; leave "
            "ConfigProto.experimental.executor_type empty, or take an executor policy of "
            "wb.executor_options",
            stage,
            number,
            threads,
            executor,
        )
        return None
    return pool_of(session, number, f"{name or 'stage'}_{number}_intra", threads)


def _require_kinds(config: Any, pools: Sequence[ThreadPoolOptions]) -> None:
    if not isinstance(config, _StockConfig):
        raise OptionError(
            f"config is {config!r} of type {type(config).__name__}; expected a "
            "tf.compat.v1.ConfigProto (one of workbench.compat.v1 has the field "
            "session_stage_subgraph_thread_pool)"
        )
    if not isinstance(pools, Sequence) or not all(isinstance(p, ThreadPoolOptions) for p in pools):
        raise OptionError(
            f"pools are {pools!r}; expected a list of wb.ThreadPoolOptions, one for each pool"
        )


def _keep(config: Any, before: int, pools: Sequence[ThreadPoolOptions]) -> None:
    """Notes the pools' names and intra-op threads in a config that has `before` pools already."""
    optimizers = config.graph_options.rewrite_options.custom_optimizers
    entry = next((each for each in optimizers if each.name == _NAME), None)
    if entry is None:
        entry = optimizers.add(name=_NAME)
    parameters = entry.parameter_map
    threads, names = parameters[_THREADS].list.i, parameters[_NAMES].list.s
    missing = before - len(threads)
    threads.extend([0] * missing + [pool.intra_op_threads_num for pool in pools])
    names.extend([b""] * missing + [pool.global_name.encode() for pool in pools])


def _kept(config: Any) -> list[tuple[str, int]]:
    """Name and intra-op threads of each stage pool, as far as any has such threads."""
    for entry in config.graph_options.rewrite_options.custom_optimizers:
        if entry.name == _NAME:
            names = (name.decode() for name in entry.parameter_map[_NAMES].list.s)
            return list(zip(names, entry.parameter_map[_THREADS].list.i, strict=True))
    return []


def _warn_once(key: str, message: str, *values: Any) -> None:
    if key not in _warned:
        _warned.add(key)
        _LOG.warning(message, *values)

"""Independent inter-op pools for staged sides, through what stock TensorFlow's config offers.

DeepRec gives a stage its own inter-op and intra-op threads. Stock TensorFlow lets a run choose
among the session's inter-op pools, but has no intra-op pool per run: a wish for one only warns.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from workbench.core.options import StageOptions, ThreadPoolOptions
from workbench.core.session.session_facts import server_of
from workbench.errors import OptionError

_LOG = logging.getLogger("workbench")
_warned: set[str] = set()


def add_stage_pools(config: Any, pools: Sequence[ThreadPoolOptions]) -> None:
    """Adds independent pools to a stock ConfigProto, in place.

    Pool 0 of the session stays the one that steps run on; stage pool k becomes session pool k + 1.
    The pools belong to the session: equal names never share threads.

    Args:
      config: a stock `ConfigProto`.
      pools: the stage pools, in the order of their ids.
    """
    if not pools:
        return
    if not config.session_inter_op_thread_pool:
        config.session_inter_op_thread_pool.add(
            num_threads=config.inter_op_parallelism_threads
            if config.inter_op_parallelism_threads > 0
            else 0
        )
    for pool in pools:
        config.session_inter_op_thread_pool.add(num_threads=pool.inter_op_threads_num)
        if pool.intra_op_threads_num:
            _warn_once(
                "intra",
                "stage thread pool %r asks for %d intra-op threads: stock TensorFlow has no "
                "intra-op pool per run, so the session's own intra-op threads are used",
                pool.global_name,
                pool.intra_op_threads_num,
            )


def inter_op_pool(session: Any, stage: str, options: StageOptions) -> int:
    """The session pool that a stage's runs take: 0, the session's own, unless it asks for another.

    Raises:
      OptionError: the session has no such pool; the message names the valid range.
    """
    if not options.use_stage_subgraph_thread_pool:
        return 0
    config = getattr(session, "_config", None)
    count = max(0, len(config.session_inter_op_thread_pool) - 1) if config is not None else 0
    pool = options.stage_subgraph_thread_pool_id
    if count == 0:
        raise OptionError(
            f"stage {stage!r} asks for thread pool {pool}, but the session has no stage thread "
            "pool; add one with config.session_stage_subgraph_thread_pool.add()"
        )
    if pool >= count:
        raise OptionError(
            f"stage {stage!r} asks for thread pool {pool}; the session has {count}, "
            f"so stage_subgraph_thread_pool_id must be in [0, {count - 1}]"
        )
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
    return pool + 1


def _warn_once(key: str, message: str, *values: Any) -> None:
    if key not in _warned:
        _warned.add(key)
        _LOG.warning(message, *values)

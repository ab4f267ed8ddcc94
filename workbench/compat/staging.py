"""`tf.staged` and `tf.prefetch_join` with DeepRec's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.core.options import StageOptions
from workbench.core.session import staged as stages
from workbench.errors import OptionError


def staged(
    features: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    capacity: int = 1,
    num_threads: int = 1,
    num_clients: int | None = None,
    timeout_millis: int = 300_000,
    closed_exception_types: Sequence[Any] | None = None,
    ignored_exception_types: Sequence[Any] = (),
    use_stage_subgraph_thread_pool: bool = False,
    stage_subgraph_thread_pool_id: int = 0,
    stage_subgraph_stream_id: int = 0,
    name: str | None = None,
    *,
    num_client: int | None = None,
) -> Any:
    """Prefetches `features`: they are produced ahead of the step that consumes what is returned.

    Args:
      features: any nest of tensors, SparseTensor, RaggedTensor and None.
      feed_dict: maps placeholders upstream of `features` to tensors, evaluated before each put.
      capacity: most items held ahead.
      num_threads: threads that produce items; more than one makes their order vary.
      num_clients: consumers at a time; any number is served. `num_client` is the same.
      timeout_millis: how long one put waits for room before it warns; no batch is dropped.
      closed_exception_types: exception classes or integer codes that end the epoch cleanly:
        what was produced is consumed, then OUT_OF_RANGE. None means OUT_OF_RANGE.
      ignored_exception_types: exception classes or integer codes that skip one batch.
      use_stage_subgraph_thread_pool: run the stage on an independent pool of the session.
      stage_subgraph_thread_pool_id: which of `ConfigProto.session_stage_subgraph_thread_pool`.
      stage_subgraph_stream_id: GPU stream of the stage, a logical device; 0 is the main stream.
      name: name of the stage; None makes one.

    Returns:
      The nest of `features`, taken from the buffer. Needs `make_prefetch_hook()` in the session.

    Raises:
      OptionError: a value outside its range; UnsupportedError: not in a plain graph.
    """
    return stages.staged(
        features,
        StageOptions(
            capacity=capacity,
            num_threads=num_threads,
            num_clients=_clients(num_clients, num_client),
            timeout_millis=timeout_millis,
            closed_exception_types=exception_types(closed_exception_types),
            ignored_exception_types=exception_types(ignored_exception_types) or (),
            use_stage_subgraph_thread_pool=use_stage_subgraph_thread_pool,
            stage_subgraph_thread_pool_id=stage_subgraph_thread_pool_id,
            stage_subgraph_stream_id=stage_subgraph_stream_id,
        ),
        feed_dict=feed_dict,
        name=name,
    )


def prefetch_join(
    thread_to_features: Sequence[Any],
    feed_dict: Mapping[Any, Any] | None = None,
    capacity: int = 1,
    num_clients: int | None = None,
    timeout_millis: int = 300_000,
    closed_exception_types: Sequence[Any] | None = None,
    ignored_exception_types: Sequence[Any] = (),
    name: str | None = None,
    *,
    num_client: int | None = None,
) -> Any:
    """`staged` with different features, hence a different subgraph, for each thread.

    Args:
      thread_to_features: one nest per thread, alike in structure and dtypes.
      feed_dict, capacity, num_clients, timeout_millis, closed_exception_types,
        ignored_exception_types, name: as in `staged`.

    Returns:
      The nest of the first entry, taken from the one buffer that all threads fill.
    """
    return stages.prefetch_join(
        thread_to_features,
        StageOptions(
            capacity=capacity,
            num_clients=_clients(num_clients, num_client),
            timeout_millis=timeout_millis,
            closed_exception_types=exception_types(closed_exception_types),
            ignored_exception_types=exception_types(ignored_exception_types) or (),
        ),
        feed_dict=feed_dict,
        name=name,
    )


def _clients(num_clients: int | None, num_client: int | None) -> int:
    if num_clients is not None and num_client is not None and num_clients != num_client:
        raise OptionError(
            f"num_clients={num_clients} and num_client={num_client} are two spellings of one "
            "parameter; give one of them"
        )
    given = num_clients if num_clients is not None else num_client
    return 1 if given is None else given


def exception_types(types: Any) -> tuple[Any, ...] | None:
    """One exception type or a sequence of them; None stays None."""
    if types is None:
        return None
    return tuple(types) if isinstance(types, (tuple, list, set, frozenset)) else (types,)

"""What options a choice asks of a pipeline, and why it would change nothing there.

TensorFlow itself adds a prefetch and makes a map parallel, unless a program turns that off. So a
choice is refused where its work is done already. The conditions are those of TensorFlow's passes
over datasets.
"""

from __future__ import annotations

from typing import Any

from workbench.core.toggles.pipeline.transformations import Pipeline, Transformation
from workbench.errors import UnsupportedError
from workbench.usable import usable_cores

PREFETCH, PARALLEL_MAP = "prefetch", "parallel_map"
PRIVATE_THREADS, NOT_DETERMINISTIC = "private_threads", "not_deterministic"

# Behind these TensorFlow adds no prefetch.
_RUN_AHEAD = {"Prefetch", "ParallelMap", "MapAndBatch", "ParallelBatch", "ParallelInterleave"}
# What may deliver in another order.
_PARALLEL = {"ParallelMap", "ParallelInterleave", "ParallelBatch", "ParseExample"}
_MAPS = {"Map", "ParallelMap"}


def wanted_options(choice: str, pipeline: Pipeline) -> Any:
    """The options that bring a choice about, a `dataset_options_pb2.Options`.

    Args:
      choice: PREFETCH, PARALLEL_MAP, PRIVATE_THREADS or NOT_DETERMINISTIC.
      pipeline: as the program built it.

    Raises:
      UnsupportedError: it would change nothing; the message is a clause.
    """
    return _WANTED[choice](pipeline)


def _prefetch(pipeline: Pipeline) -> Any:
    last = pipeline.outermost
    if last.kind == "Prefetch":
        raise UnsupportedError("the program's dataset prefetches already")
    if last.kind in _RUN_AHEAD or _is_fused(last, pipeline.options):
        ends = "Batch, fused with the Map before it," if last.kind == "Batch" else last.kind
        raise UnsupportedError(f"the dataset ends with {ends} which runs ahead of the step itself")
    if _is_on(pipeline.options, "inject_prefetch"):
        raise UnsupportedError(
            "TensorFlow adds a prefetch to this dataset already, by its option inject_prefetch"
        )
    wanted = _autotuned(pipeline.options, "map_parallelization")
    wanted.optimization_options.inject_prefetch = True
    return wanted


def _parallel_map(pipeline: Pipeline) -> Any:
    maps = [map_ for map_ in pipeline.last.all() if map_.kind == "Map"]
    without = [map_ for map_ in maps if not map_.has_state]
    if not without:
        raise UnsupportedError(
            "its maps have state, so they stay as written"
            if maps
            else "the dataset has no map that runs one element at a time"
        )
    fused = [map_ for map_ in _fused_maps(pipeline) if map_ in without]
    if _is_on(pipeline.options, "map_parallelization") and not fused:
        raise UnsupportedError(
            "TensorFlow makes the maps of this dataset parallel already, by its option "
            "map_parallelization"
        )
    wanted = _autotuned(pipeline.options, "inject_prefetch")
    wanted.optimization_options.map_parallelization = True
    if fused:
        # Fused with the batch behind it, a map computes one element after the other.
        wanted.optimization_options.map_and_batch_fusion = False
    return wanted


def _private_threads(pipeline: Pipeline) -> Any:
    threads = pipeline.options.threading_options
    if threads.WhichOneof("optional_private_threadpool_size"):
        raise UnsupportedError(
            f"the dataset has private threads already: {threads.private_threadpool_size or 'all'}"
        )
    wanted = _no_options()
    wanted.threading_options.private_threadpool_size = usable_cores()
    return wanted


def _not_deterministic(pipeline: Pipeline) -> Any:
    options = pipeline.options
    if options.WhichOneof("optional_deterministic") and not options.deterministic:
        raise UnsupportedError("the dataset may deliver its elements in any order already")
    # A map that is fused with a batch keeps the order.
    fused = _fused_maps(pipeline)
    free = [each for each in pipeline.last.all() if each not in fused]
    made_parallel = _is_on(options, "map_parallelization") and any(
        each.kind == "Map" and not each.has_state for each in free
    )
    if not made_parallel and not any(each.kind in _PARALLEL for each in free):
        raise UnsupportedError(
            "nothing of the dataset runs in parallel, so its elements have one order"
        )
    wanted = _no_options()
    wanted.deterministic = False
    return wanted


_WANTED = {
    PREFETCH: _prefetch,
    PARALLEL_MAP: _parallel_map,
    PRIVATE_THREADS: _private_threads,
    NOT_DETERMINISTIC: _not_deterministic,
}


def _no_options() -> Any:
    from tensorflow.core.framework import dataset_options_pb2

    return dataset_options_pb2.Options()


def _autotuned(options: Any, other: str) -> Any:
    """Options with autotuning, on which an optimization depends; the other one stays off."""
    wanted = _no_options()
    if not _autotunes(options):
        wanted.autotune_options.enabled = True
        setattr(wanted.optimization_options, other, False)
    return wanted


def _autotunes(options: Any) -> bool:
    chosen = options.autotune_options
    return chosen.enabled if chosen.WhichOneof("optional_enabled") else True


def _is_on(options: Any, optimization: str) -> bool:
    """Whether TensorFlow runs an optimization that needs autotuning, with these options."""
    return _autotunes(options) and _is_chosen(options, optimization)


def _is_chosen(options: Any, optimization: str) -> bool:
    chosen = options.optimization_options
    if chosen.WhichOneof(f"optional_{optimization}"):
        return bool(getattr(chosen, optimization))
    # Each of them is a default.
    given = chosen.WhichOneof("optional_apply_default_optimizations")
    return chosen.apply_default_optimizations if given else True


def _is_fused(batch: Transformation, options: Any) -> bool:
    """Whether TensorFlow fuses a batch with the map before it."""
    reads_map = batch.kind == "Batch" and any(each.kind in _MAPS for each in batch.inputs)
    return reads_map and _is_chosen(options, "map_and_batch_fusion")


def _fused_maps(pipeline: Pipeline) -> list[Transformation]:
    batches = [each for each in pipeline.last.all() if _is_fused(each, pipeline.options)]
    return [each for batch in batches for each in batch.inputs]

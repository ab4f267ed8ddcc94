"""Changes the tf.data pipelines of a session's graph as a choice says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.core.toggles.pipeline.caching import cached
from workbench.core.toggles.pipeline.kept_bytes import require_graph_fits
from workbench.core.toggles.pipeline.session_graph import GraphPipeline, pipelines_of
from workbench.core.toggles.pipeline.wanted_options import wanted_options
from workbench.errors import UnsupportedError


def with_options_in_graph(graph: Any, choice: str) -> None:
    """Puts options between the iterators of a graph and their datasets.

    Args:
      graph: a `tf.Graph` from which no session was made yet.
      choice: as of `wanted_options`.

    Raises:
      UnsupportedError: they would change no pipeline; the message is a clause.
    """

    def change(here: GraphPipeline) -> None:
        serialized = wanted_options(choice, here.pipeline).SerializeToString()

        def make(dataset: Any, types: Sequence[Any], shapes: Sequence[Any]) -> Any:
            import tensorflow as tf

            return tf.raw_ops.OptionsDataset(
                input_dataset=dataset,
                serialized_options=serialized,
                output_types=types,
                output_shapes=shapes,
            )

        here.insert(make)

    _change_each(graph, change)


def cache_in_graph(graph: Any) -> None:
    """Puts a cache into the pipelines of a graph, where all readings of the data are alike.

    Raises:
      UnsupportedError: no pipeline can have one; the message is a clause.
    """

    def change(here: GraphPipeline) -> None:
        kept, reader = cached(here.pipeline)
        require_graph_fits(here, kept)
        here.insert(_cache, reader)

    _change_each(graph, change)


def _cache(dataset: Any, types: Sequence[Any], shapes: Sequence[Any]) -> Any:
    import tensorflow as tf

    return tf.raw_ops.CacheDataset(
        input_dataset=dataset, filename="", output_types=types, output_shapes=shapes
    )


def _change_each(graph: Any, change: Callable[[GraphPipeline], None]) -> None:
    reasons = []
    pipelines = pipelines_of(graph)
    for each in pipelines:
        try:
            change(each)
        except UnsupportedError as error:
            reasons.append(str(error))
    if not pipelines:
        raise UnsupportedError("its input is no tf.data pipeline that an iterator reads")
    if len(reasons) == len(pipelines):
        raise UnsupportedError("; ".join(dict.fromkeys(reasons)))

"""tf.data: options of the pipelines that a program reads, and a cache in them."""

from __future__ import annotations

from typing import Any

from workbench.core.toggles.pipeline import wanted_options as options
from workbench.core.toggles.toggle import Toggle, Training

_CACHE = "cache"


class _TfData(Toggle):
    @property
    def is_of_data(self) -> bool:
        return True

    def training_of(self, choice: Any) -> Training:
        return Training.ANOTHER if choice == options.NOT_DETERMINISTIC else Training.SAME

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        return 0.0, 0.1

    def rewrite(self, choice: Any, graph: Any) -> None:
        from workbench.core.toggles.pipeline.change_graph import (
            cache_in_graph,
            with_options_in_graph,
        )

        if choice == _CACHE:
            cache_in_graph(graph)
        else:
            with_options_in_graph(graph, choice)

    def arrange(self, choice: Any, step: Any, dataset: Any) -> tuple[Any, Any]:
        from workbench.core.toggles.pipeline.change_dataset import cached, with_options

        return step, cached(dataset) if choice == _CACHE else with_options(dataset, choice)

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        if choice == _CACHE:
            return ["# dataset = dataset.cache(), before it is shuffled and repeated"]
        with_options = "dataset = dataset.with_options(options)"
        return ["options = tf.data.Options()", *_LINES[choice], with_options]


_OPTIMIZATION = "options.experimental_optimization"
_LINES = {
    options.PREFETCH: [f"{_OPTIMIZATION}.inject_prefetch = True"],
    options.PARALLEL_MAP: [
        f"{_OPTIMIZATION}.map_parallelization = True",
        f"{_OPTIMIZATION}.map_and_batch_fusion = False",
    ],
    options.PRIVATE_THREADS: [
        "options.threading.private_threadpool_size = len(os.sched_getaffinity(0))"
    ],
    options.NOT_DETERMINISTIC: ["options.deterministic = False"],
}

TF_DATA = _TfData(
    name="tf_data",
    choices=("as_written", *_LINES, _CACHE),
    label="tf.data",
    help=(
        "The input pipeline: a prefetch, parallel maps, threads of its own, elements in any order, "
        "or a cache in memory. It says where TensorFlow does that already."
    ),
    training=Training.ANOTHER,
)

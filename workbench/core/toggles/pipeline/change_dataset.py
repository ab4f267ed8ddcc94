"""Changes an eager tf.data.Dataset as a choice says."""

from __future__ import annotations

from typing import Any

from workbench.core.toggles.pipeline.caching import cached as where_cached
from workbench.core.toggles.pipeline.kept_bytes import require_dataset_fits
from workbench.core.toggles.pipeline.transformations import (
    Pipeline,
    Transformation,
    from_dataset,
)
from workbench.core.toggles.pipeline.wanted_options import wanted_options
from workbench.errors import UnsupportedError


def with_options(dataset: Any, choice: str) -> Any:
    """A dataset with the options of a choice.

    Args:
      dataset: a tf.data.Dataset.
      choice: as of `wanted_options`.

    Raises:
      UnsupportedError: they would change nothing; the message is a clause.
    """
    import tensorflow as tf

    options = tf.data.Options()
    options._from_proto(wanted_options(choice, _pipeline(dataset)))
    return dataset.with_options(options)


def cached(dataset: Any) -> Any:
    """A dataset with a cache where all readings of the data are alike.

    Raises:
      UnsupportedError: it can have none; the message is a clause.
    """
    pipeline = _pipeline(dataset)
    kept, reader = where_cached(pipeline, read_again=True)
    behind = _behind(pipeline.last, reader)
    require_dataset_fits(kept.source)
    changed = kept.source.cache()
    for each in behind:
        changed = _REBUILT[each.kind](changed, each.source)
    return changed


def _pipeline(dataset: Any) -> Pipeline:
    return Pipeline(last=from_dataset(dataset), options=dataset.options()._to_proto())


def _behind(last: Transformation, reader: Transformation | None) -> list[Transformation]:
    """What stands behind a cache, the nearest first.

    Raises:
      UnsupportedError: it holds something that cannot be built again.
    """
    behind: list[Transformation] = []
    here = last
    while reader is not None:
        if here.kind not in _REBUILT:
            raise UnsupportedError(
                f"the cache has to stand before its {here.kind}; write .cache() there"
            )
        behind.insert(0, here)
        if here is reader:
            break
        here = here.inputs[0]
    return behind


def _with_same_options(dataset: Any, old: Any) -> Any:
    return dataset.with_options(old.options())


# Those whose arguments a dataset tells.
_REBUILT = {
    "Repeat": lambda dataset, old: dataset.repeat(int(old._count)),
    "Prefetch": lambda dataset, old: dataset.prefetch(int(old._buffer_size)),
    "Options": _with_same_options,
}

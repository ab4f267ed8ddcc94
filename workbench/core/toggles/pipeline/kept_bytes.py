"""How much memory a cache of a dataset takes, as far as a short look tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from workbench.core.toggles.pipeline.session_graph import GraphPipeline
from workbench.core.toggles.pipeline.transformations import Transformation
from workbench.errors import UnsupportedError
from workbench.number_words import size
from workbench.usable import free_bytes

# Of what is free: a process has several sessions at a time, each with a cache.
_SHARE = 0.2
# Elements whose size stands for those of all others, where their number is known.
_FEW = 16
# Data of unknown length is read once, so long at most.
_LONGEST_S = 20.0
# Of each text, beside its characters.
_TEXT_BYTES = 24


def require_fits(elements: Iterator[int], count: int) -> None:
    """Requires that a cache of a dataset fits into memory.

    Args:
      elements: bytes of each element, read one by one.
      count: how many there are; below 0 where that is not known, or without end.

    Raises:
      UnsupportedError: it does not fit, or that is not known in time; the message is a clause.
    """
    most, end = _SHARE * free_bytes(), time.monotonic() + _LONGEST_S
    read = largest = total = 0
    for each in elements:
        read, total, largest = read + 1, total + each, max(largest, each)
        if count >= 0 and read >= min(count, _FEW):
            total = largest * count
            break
        if total > most:
            break
        if time.monotonic() > end:
            raise UnsupportedError(
                f"after {_LONGEST_S:g} s of reading the data has not ended, so whether a cache "
                "fits is not known"
            )
    if total > most:
        raise UnsupportedError(
            f"a cache takes {size(total)} or more, and a fifth of the free memory is {size(most)}"
        )


def element_bytes(components: list[Any]) -> Any:
    """A tensor with the bytes of an element."""
    import tensorflow as tf

    sizes = [tf.constant(0, tf.int64)]
    for component in components:
        if component.dtype == tf.variant:
            raise UnsupportedError("its elements are ragged or sparse, so their size is not known")
        count = tf.size(component, tf.int64)
        if component.dtype == tf.string:
            length = tf.reduce_sum(tf.strings.length(component))
            sizes.append(count * _TEXT_BYTES + tf.cast(length, tf.int64))
        else:
            sizes.append(count * component.dtype.size)
    # The bytes may be known ahead of time; the end of the data is not.
    with tf.control_dependencies(components):
        return tf.identity(tf.add_n(sizes))


def require_graph_fits(graph_pipeline: GraphPipeline, kept: Transformation) -> None:
    """Requires that a cache of a dataset of a graph fits, which a session of its own reads.

    Raises:
      UnsupportedError: as of `require_fits`, or the dataset cannot be read without the program's
        variables and tables.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        dataset = graph_pipeline.alone(kept)
        iterator = v1.data.make_initializable_iterator(dataset)
        taken = element_bytes(tf.nest.flatten(iterator.get_next()))
        count = dataset.cardinality()
        with v1.Session() as session:
            try:
                session.run(iterator.initializer)
                require_fits(_run(lambda: session.run(taken)), session.run(count))
            except (tf.errors.FailedPreconditionError, tf.errors.NotFoundError) as error:
                raise UnsupportedError(
                    "its data is read with variables or tables of the program, so whether a cache "
                    f"fits is not known ({error.message.splitlines()[0]:.200})"
                ) from None


def require_dataset_fits(dataset: Any) -> None:
    """Requires that a cache of an eager dataset fits.

    Raises:
      UnsupportedError: as of `require_fits`.
    """
    import tensorflow as tf

    sizes = (
        int(element_bytes(tf.nest.flatten(element, expand_composites=True))) for element in dataset
    )
    require_fits(sizes, int(dataset.cardinality()))


def _run(read: Callable[[], int]) -> Iterator[int]:
    import tensorflow as tf

    while True:
        try:
            taken = read()
        except tf.errors.OutOfRangeError:
            return
        yield taken

"""Where a cache of a pipeline may stand: before it all readings of the data are alike."""

from __future__ import annotations

from workbench.core.toggles.pipeline.transformations import Pipeline, Transformation
from workbench.errors import UnsupportedError

# What costs nothing to read again: it lies in memory, or is counted.
_AT_HAND = {"Tensor", "TensorSlice", "SparseTensorSlice", "Range", "Empty", "Cache", "Options"}


def cached(
    pipeline: Pipeline, *, read_again: bool = False
) -> tuple[Transformation, Transformation | None]:
    """Which dataset a cache keeps, and which one then reads the cache.

    A cache stands below a repeat, and below all that differs from one reading to the next.

    Args:
      pipeline: as the program built it.
      read_again: whether a pipeline without a repeat is read again as well.

    Returns:
      The kept one, and its reader: None where that is the iterator.

    Raises:
      UnsupportedError: no cache would be read twice, or change what is read; the message is a
        clause.
    """
    repeat = _last_repeat(pipeline.last)
    if repeat is None and not read_again:
        raise UnsupportedError("the dataset has no repeat, so a cache would be read once")
    reader, kept = repeat, repeat.inputs[0] if repeat else pipeline.last
    while not kept.repeats:
        if len(kept.inputs) != 1:
            raise UnsupportedError(
                f"its {kept.kind} may deliver other elements each time, which a cache would end"
            )
        reader, kept = kept, kept.inputs[0]
    kinds = {each.kind for each in kept.all()}
    if "Cache" in kinds:
        raise UnsupportedError("the program's dataset has a cache already")
    if kinds <= _AT_HAND:
        raise UnsupportedError("what a cache could keep lies in memory already")
    if "Repeat" in kinds:
        raise UnsupportedError("a repeat below another one may be without an end")
    return kept, reader


def _last_repeat(last: Transformation) -> Transformation | None:
    """The repeat nearest to the iterator, behind transformations that read one dataset."""
    here = last
    while here.kind != "Repeat":
        if len(here.inputs) != 1:
            return None
        here = here.inputs[0]
    return here

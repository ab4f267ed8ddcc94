"""What travelled between tasks, as the timeline shows it: stretches of receipt, in words."""

from __future__ import annotations

import dataclasses

import pandas as pd

from workbench.core.trace import receipts as of_trace
from workbench.core.trace.trace import Trace
from workbench.viz.style import format


@dataclasses.dataclass(frozen=True, eq=False)
class Receipts:
    """The tensors that tasks received, those whose receipt overlaps joined.

    Attributes:
      stretches: start_ns, end_ns, receiver and client (tasks), step, and name (row of `names`).
      names: of the stretches: how many tensors and bytes.
    """

    stretches: pd.DataFrame
    names: tuple[str, ...]


def receipts(trace: Trace) -> Receipts:
    """The receipts of a trace; none in one of a single task."""
    found = of_trace.receipts(trace.tables()).stretches
    words = [
        f"receive {format.integer(count)} {'tensor' if count == 1 else 'tensors'}, "
        f"{format.size(size)}"
        for count, size in zip(found["tensors"].tolist(), found["bytes"].tolist(), strict=True)
    ]
    codes, names = pd.factorize(pd.Series(words, dtype=object))
    return Receipts(found.assign(name=codes), tuple(map(str, names)))

"""Limits of a trace, or of each variant of a comparison that has one, against this machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import overload

import pandas as pd

from workbench.core.analysis.limit.limit import (
    Limit,
    knows_shapes,
    limit_of,
    require_limited,
)
from workbench.core.trace.trace import Trace
from workbench.display import Displayed
from workbench.errors import DataError, OptionError, TraceError
from workbench.experiments.comparison.environment import machine
from workbench.experiments.comparison.machine_peaks import known_peaks, machine_peaks
from workbench.experiments.comparison.results import Comparison


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ComparedLimits(Displayed):
    """Limits of the variants of a comparison.

    Attributes:
      variants: label and limit of each variant whose trace knows its shapes, the baseline first.
    """

    variants: tuple[tuple[str, Limit], ...]

    def __repr__(self) -> str:
        return f"ComparedLimits({', '.join(label for label, _ in self.variants)})"

    def __getitem__(self, label: str) -> Limit:
        for each, limit in self.variants:
            if each == label:
                return limit
        known = ", ".join(repr(each) for each, _ in self.variants)
        raise KeyError(f"no variant {label!r} has a limit; expected one of {known}")

    @property
    def df(self) -> pd.DataFrame:
        """One row for each part of each variant's step: variant, part, ns, share."""
        tables = [limit.parts().assign(variant=label) for label, limit in self.variants]
        table = pd.concat(tables, ignore_index=True)
        return table[["variant", "part", "ns", "share"]]


@overload
def limit(
    of: Trace, *, again: bool = ..., progress: bool | Callable[[str], None] = ...
) -> Limit: ...
@overload
def limit(
    of: Comparison, *, again: bool = ..., progress: bool | Callable[[str], None] = ...
) -> ComparedLimits: ...
def limit(
    of: Trace | Comparison,
    *,
    again: bool = False,
    progress: bool | Callable[[str], None] = True,
) -> Limit | ComparedLimits:
    """How far steps are from what this machine can do, and where the rest of their time goes.

    What the machine can do is measured the first time, in about five seconds, and kept.

    Args:
      of: a trace that knows the shapes of its tensors, or a comparison with such traces. It was
        taken on this machine.
      again: measures the machine once more.
      progress: as of `compare`.

    Raises:
      OptionError: neither a trace nor a comparison.
      TraceError: the trace has no steps or no shapes, is of a cluster, or of steps on a GPU.
      DataError: no trace of the comparison knows its shapes.
      RunError: measuring the machine failed.
    """
    if isinstance(of, Trace):
        require_limited(of)
        return limit_of(of, machine_peaks(again=again, progress=progress))
    if not isinstance(of, Comparison):
        raise OptionError(
            f"limit got a {type(of).__name__}; expected a trace, or what wb.compare returned"
        )
    first = sorted(of.variants, key=lambda variant: variant.label != of.baseline)
    known = [(v.label, v.trace) for v in first if v.trace is not None and knows_shapes(v.trace)]
    if not known:
        raise DataError(
            "no variant of the comparison has a trace that knows the shapes of its tensors; "
            "compare sessions again with trace_steps"
        )
    peaks = machine_peaks(again=again, progress=progress)
    return ComparedLimits(variants=tuple((label, limit_of(trace, peaks)) for label, trace in known))


def known_limit(trace: Trace, comparison: Comparison | None = None) -> Limit | None:
    """The limit of a trace, for a line beside other results: nothing is measured for it.

    Args:
      trace: any trace.
      comparison: that it is of, which says on what machine it was taken.

    Returns:
      None where the machine's peaks were not measured yet, the trace is of another machine, or
      does not tell what its steps have to do.
    """
    peaks = known_peaks()
    if peaks is None or not knows_shapes(trace) or trace.meta.cores not in (None, peaks.cores):
        return None
    if comparison is not None and comparison.environment.get("cpu") != machine()["cpu"]:
        return None
    try:
        return limit_of(trace, peaks)
    except TraceError:
        return None

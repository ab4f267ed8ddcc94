"""Regressions: which ops take longer, where a gate finds a variant slower."""

from __future__ import annotations

import dataclasses

import pandas as pd

from workbench.core.analysis.alignment import CRITICAL_PATH, Alignment, align
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.regression.gate import Gate


@dataclasses.dataclass(frozen=True, kw_only=True)
class Regression:
    """The traces of a variant that is slower, and of what it is held against.

    Attributes:
      label: the variant.
      alignment: of the two, the earlier one or the baseline first.
    """

    label: str
    alignment: Alignment

    def longer(self, most: int) -> pd.DataFrame:
        """The nodes that take longer, the largest difference first; see `Alignment.df`."""
        on_path = self.alignment.basis == CRITICAL_PATH
        column = "path_difference_ns" if on_path else "difference_ns"
        table = self.alignment.df
        return table[table[column] > 0].nlargest(most, column)


def regressions(
    gate: Gate, comparison: Comparison, before: Comparison | None = None
) -> list[Regression]:
    """What the traces tell of each variant that is slower; those without a trace are left out.

    Args:
      gate: the verdict.
      comparison, before: what it is of; without `before` the baseline is what counts.
    """
    now, slower = _traces(comparison), []
    for checked in gate.checked:
        against, labels = now.get(comparison.baseline), (comparison.baseline, checked.label)
        if before is not None:
            against, labels = _traces(before).get(checked.label), ("before", "now")
        trace = now.get(checked.label)
        if checked.standing != "slower" or trace is None or against is None:
            continue
        try:
            aligned = align(against, trace, labels=labels)
        except TraceError:
            # A trace without a step says nothing of its ops.
            continue
        slower.append(Regression(label=checked.label, alignment=aligned))
    return slower


def _traces(comparison: Comparison) -> dict[str, Trace]:
    return {each.label: each.trace for each in comparison.variants if each.trace is not None}

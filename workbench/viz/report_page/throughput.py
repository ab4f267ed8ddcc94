"""The table of a report: every variant with its interval and verdict, the best first."""

from __future__ import annotations

import dataclasses

from workbench.experiments.comparison.results import Comparison
from workbench.viz.comparison.answer import ranked_labels
from workbench.viz.comparison.view import CompareView, Limit, Row


@dataclasses.dataclass(frozen=True, kw_only=True)
class Throughput:
    """The table.

    Attributes:
      rows: the variants.
      ticks: (fraction, text) of the axis.
      caption: what the intervals are.
      limits: rates to hold the variants against.
      notes: what a reader must know, a sentence each.
      predicts, weighs: whether a row has a prediction, and knows the memory of a step.
    """

    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    caption: str
    limits: tuple[Limit, ...]
    notes: tuple[str, ...]
    predicts: bool
    weighs: bool


def throughput_of(comparison: Comparison, view: CompareView) -> Throughput:
    """The table of a comparison."""
    labels = [variant.label for variant in comparison.variants]
    known = ranked_labels(comparison)
    ranked = [label for label in dict.fromkeys([*known, *labels]) if label in labels]
    by_label = dict(zip(labels, view.rows, strict=True))
    return Throughput(
        rows=tuple(by_label[label] for label in ranked),
        ticks=view.ticks,
        caption=view.caption,
        limits=view.limits,
        notes=view.notes,
        predicts=view.predicts,
        weighs=view.weighs,
    )

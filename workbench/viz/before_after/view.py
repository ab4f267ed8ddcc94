"""Two traced runs beside each other: their timelines and their alignment as one view."""

from __future__ import annotations

import dataclasses

from workbench.core.analysis.alignment import Alignment
from workbench.viz.alignment.view import AlignmentView, alignment_view
from workbench.viz.timeline.scale import on_one_scale
from workbench.viz.timeline.view import TimelineView

_HOW = "Both have one scale, one cursor and one selection. Drag over a stretch to sum it on both."


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class BeforeAfterView:
    """Two runs beside each other.

    Attributes:
      labels: of both runs.
      timelines: of both, on one scale.
      alignment: what the difference of their steps consists of.
      how: what a reader can do with them.
    """

    labels: tuple[str, str]
    timelines: tuple[TimelineView, TimelineView]
    alignment: AlignmentView
    how: str = _HOW

    def drawn_as(self, before: TimelineView, after: TimelineView) -> BeforeAfterView:
        """The same with other timelines, such as shorter ones."""
        first, second = on_one_scale([before, after])
        return dataclasses.replace(self, timelines=(first, second))


def before_after_view(
    alignment: Alignment, before: TimelineView, after: TimelineView
) -> BeforeAfterView:
    """The view of two runs.

    Args:
      alignment: of their traces.
      before, after: their timelines.
    """
    first, second = on_one_scale([before, after])
    return BeforeAfterView(
        labels=(alignment.a.label, alignment.b.label),
        timelines=(first, second),
        alignment=alignment_view(alignment),
    )

"""What a notebook shows for each result: HTML that holds all it needs, and text.

No bundle has a widget beside its HTML: viewers prefer the widget, also where it is dead.
"""

from __future__ import annotations

from typing import Any

from workbench.core.boundary.boundary import Boundary
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.errors import visible
from workbench.viz.boundary.widget import BoundaryWidget
from workbench.viz.outlets import html_of, text_of
from workbench.viz.timeline.widget import TimelineWidget

Bundle = tuple[dict[str, Any], dict[str, Any]]


def bundle(value: Any) -> Bundle:
    """Data and metadata by mime type for a result that can be shown.

    Raises:
      TypeError: any other type.
    """
    shown = {"text/plain": text_of(value), "text/html": html_of(value)}
    return {kind: visible(content) for kind, content in shown.items()}, {}


def text(value: Any) -> str:
    """A result that can be shown, as plain text.

    Raises:
      TypeError: any other type.
    """
    return visible(text_of(value))


def widget(
    value: Trace | StagePlan | Boundary, trace: Trace | None = None
) -> TimelineWidget | BoundaryWidget:
    """A timeline or a boundary as a widget, whose `selected` Python reads, sets and observes.

    The line of a boundary can be moved; `plan` is then the plan of the cut that is drawn.

    What a cell shows by itself needs no kernel; a widget does, and shows a trace of any length.

    Args:
      value: a trace, a plan or a boundary.
      trace: with a boundary, or with a plan that was made without one: what its times and
        predictions come from.

    Raises:
      TypeError: any other type.
    """
    if isinstance(value, Trace):
        return TimelineWidget(value)
    if isinstance(value, StagePlan | Boundary):
        return BoundaryWidget(value, trace)
    raise TypeError(
        f"no widget shows a {type(value).__name__}; expected a Trace, a StagePlan or a Boundary"
    )

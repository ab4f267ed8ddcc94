"""What a notebook shows for each result: HTML that holds all it needs, and text.

No bundle has a widget beside its HTML: viewers prefer the widget, also where it is dead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.core.boundary import Boundary
from workbench.core.metrics import StepMetrics
from workbench.core.plan import StagePlan
from workbench.core.trace import Trace
from workbench.experiments.results import Comparison
from workbench.viz.boundary import boundary_view
from workbench.viz.boundary_widget import BoundaryWidget
from workbench.viz.compare import compare_view
from workbench.viz.compare_tables import measures_table
from workbench.viz.notebook import DATA_BYTES, Picture, kept_view, pictures_html
from workbench.viz.report import summary_html, table_html
from workbench.viz.text import boundary_text, metrics_text, view_text
from workbench.viz.timeline_scale import ONE_SCALE, on_one_scale
from workbench.viz.widget import TimelineWidget

Bundle = tuple[dict[str, Any], dict[str, Any]]


def bundle(value: Any) -> Bundle:
    """Data and metadata by mime type for a result that can be shown.

    Raises:
      TypeError: any other type.
    """
    for kind, forms in _FORMS.items():
        if isinstance(value, kind):
            return forms(value)
    raise TypeError(
        f"nothing here shows a {type(value).__name__}; expected one of "
        f"{', '.join(kind.__name__ for kind in _FORMS)}"
    )


def _trace(trace: Trace) -> Bundle:
    view = kept_view(trace)
    return {"text/plain": view.describe(), "text/html": pictures_html([Picture(view)])}, {}


def _boundary(value: StagePlan | Boundary) -> Bundle:
    view = boundary_view(value)
    return {"text/plain": boundary_text(view), "text/html": pictures_html([Picture(view)])}, {}


def _metrics(metrics: StepMetrics) -> Bundle:
    table = measures_table([("Trace", metrics)])
    return {"text/plain": metrics_text(metrics), "text/html": table_html(table)}, {}


def _comparison(comparison: Comparison) -> Bundle:
    view = compare_view(comparison)
    room = DATA_BYTES // max(1, len(view.traces))
    timelines = on_one_scale([kept_view(trace, label, room) for label, trace in view.traces])
    pictures = [Picture(drawn, f"Timeline: {drawn.title}") for drawn in timelines]
    pictures += [Picture(boundary, f"Boundary: {label}") for label, boundary in view.boundaries]
    shown = summary_html(view)
    if len(timelines) > 1:
        shown += f"<p>{ONE_SCALE}</p>"
    if pictures:
        shown += pictures_html(pictures)
    return {"text/plain": view_text(view), "text/html": shown}, {}


_FORMS: dict[type, Callable[[Any], Bundle]] = {
    Trace: _trace,
    StepMetrics: _metrics,
    Comparison: _comparison,
    StagePlan: _boundary,
    Boundary: _boundary,
}


def widget(value: Trace | StagePlan | Boundary) -> TimelineWidget | BoundaryWidget:
    """A timeline or a boundary as a widget, whose `selected` Python reads, sets and observes.

    What a cell shows by itself needs no kernel; a widget does, and shows a trace of any length.

    Args:
      value: a trace, a plan or a boundary.

    Raises:
      TypeError: any other type.
    """
    if isinstance(value, Trace):
        return TimelineWidget(value)
    if isinstance(value, StagePlan | Boundary):
        return BoundaryWidget(value)
    raise TypeError(
        f"no widget shows a {type(value).__name__}; expected a Trace, a StagePlan or a Boundary"
    )

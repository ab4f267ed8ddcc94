"""What a notebook shows for each result: a widget, static HTML, and text."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

from workbench.core.boundary import Boundary
from workbench.core.metrics import StepMetrics
from workbench.core.plan import StagePlan
from workbench.core.trace import Trace
from workbench.experiments.results import Comparison
from workbench.viz.boundary_html import boundary_static_html
from workbench.viz.boundary_widget import BoundaryWidget
from workbench.viz.compare import compare_view
from workbench.viz.compare_tables import measures_table
from workbench.viz.report import summary_html, table_html
from workbench.viz.text import metrics_text, view_text
from workbench.viz.timeline import timeline_view
from workbench.viz.timeline_html import timeline_static_html
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
    view = timeline_view(trace)
    twins = {"text/plain": view.describe(), "text/html": timeline_static_html(view)}
    return _with_widget(TimelineWidget(view), twins)


def _boundary(value: StagePlan | Boundary) -> Bundle:
    made: Bundle = BoundaryWidget(value)._repr_mimebundle_()
    return made


def _metrics(metrics: StepMetrics) -> Bundle:
    table = measures_table([("Trace", metrics)])
    return {"text/plain": metrics_text(metrics), "text/html": table_html(table)}, {}


def _comparison(comparison: Comparison) -> Bundle:
    view = compare_view(comparison)
    summary = summary_html(view)
    parts: list[ipywidgets.Widget] = [ipywidgets.HTML(summary)]
    stills = [summary]
    for label, trace in view.traces:
        timeline = timeline_view(trace, title=label)
        heading = f"<h3>Timeline: {html.escape(label)}</h3>"
        parts += [ipywidgets.HTML(heading), TimelineWidget(timeline)]
        stills += [heading, timeline_static_html(timeline)]
    for label, boundary in view.boundaries:
        heading = f"<h3>Boundary: {html.escape(label)}</h3>"
        parts += [ipywidgets.HTML(heading), BoundaryWidget(boundary)]
        stills += [heading, boundary_static_html(boundary)]
    twins = {"text/plain": view_text(view), "text/html": "\n".join(stills)}
    return _with_widget(ipywidgets.VBox(parts), twins)


def _with_widget(widget: ipywidgets.Widget, twins: dict[str, Any]) -> Bundle:
    """The widget's own mime type beside the twins, for where no widget can be drawn."""
    for part in getattr(widget, "children", ()):
        if isinstance(part, TimelineWidget):
            part.send_soon()
    made = widget._repr_mimebundle_() or {}
    data, metadata = made if isinstance(made, tuple) else (made, {})
    return {**data, **twins}, metadata


_FORMS: dict[type, Callable[[Any], Bundle]] = {
    Trace: _trace,
    StepMetrics: _metrics,
    Comparison: _comparison,
    StagePlan: _boundary,
    Boundary: _boundary,
}

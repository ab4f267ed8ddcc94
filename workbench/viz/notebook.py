"""What a notebook shows for each result: HTML that holds all it needs, and text.

No bundle has a widget beside its HTML: viewers prefer the widget, also where it is dead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from workbench.core.analysis.alignment import Alignment
from workbench.core.analysis.cluster_report import ClusterReport
from workbench.core.analysis.critical_path import CriticalPath
from workbench.core.analysis.embedding_lens.lens import EmbeddingLens
from workbench.core.analysis.findings.finding import Findings
from workbench.core.analysis.memory.memory import Memory
from workbench.core.boundary.boundary import Boundary
from workbench.core.executor.learned_costs import LearnedCosts
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.metrics import StepMetrics
from workbench.core.trace.trace import Trace
from workbench.core.what_if.calibration import Calibration
from workbench.core.what_if.ceilings import Ceilings
from workbench.core.what_if.predictions import Predictions
from workbench.errors import visible
from workbench.experiments.comparison.findings import ComparedFindings
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.search.best import Best
from workbench.viz.alignment.html import alignment_html
from workbench.viz.alignment.text import alignment_text
from workbench.viz.alignment.view import alignment_view
from workbench.viz.boundary.text import boundary_text
from workbench.viz.boundary.view import boundary_view
from workbench.viz.boundary.widget import BoundaryWidget
from workbench.viz.cluster.html import cluster_html
from workbench.viz.cluster.text import cluster_text
from workbench.viz.comparison.html import summary_html
from workbench.viz.comparison.tables import measures_table
from workbench.viz.comparison.text import comparison_table, metrics_text
from workbench.viz.comparison.view import compare_view
from workbench.viz.critical_path.html import critical_path_html
from workbench.viz.critical_path.text import critical_path_text
from workbench.viz.embedding_lens.html import lens_html
from workbench.viz.embedding_lens.text import lens_text
from workbench.viz.executor.learned_costs import learned_costs_html, learned_costs_text
from workbench.viz.findings.html import compared_findings_html, findings_html
from workbench.viz.findings.text import compared_findings_text, findings_text
from workbench.viz.kept_picture import DATA_BYTES, Picture, kept_view, pictures_html
from workbench.viz.memory.html import memory_html
from workbench.viz.memory.text import memory_text
from workbench.viz.predictions.calibration_text import calibration_text
from workbench.viz.predictions.ceilings_text import ceilings_text
from workbench.viz.predictions.html import calibration_html, ceilings_html, predictions_html
from workbench.viz.predictions.text import predictions_text
from workbench.viz.search.html import search_html
from workbench.viz.search.text import search_text
from workbench.viz.style.table import table_html
from workbench.viz.timeline.scale import ONE_SCALE, on_one_scale
from workbench.viz.timeline.widget import TimelineWidget

Bundle = tuple[dict[str, Any], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class _Forms:
    """The outlets of one type: a value → its text, and its HTML."""

    text: Callable[[Any], str]
    html: Callable[[Any], str]


def bundle(value: Any) -> Bundle:
    """Data and metadata by mime type for a result that can be shown.

    Raises:
      TypeError: any other type.
    """
    forms = _forms(value)
    shown = {"text/plain": forms.text(value), "text/html": forms.html(value)}
    return {kind: visible(content) for kind, content in shown.items()}, {}


def text(value: Any) -> str:
    """A result that can be shown, as plain text.

    Raises:
      TypeError: any other type.
    """
    return visible(_forms(value).text(value))


def _forms(value: Any) -> _Forms:
    for kind, forms in _FORMS.items():
        if isinstance(value, kind):
            return forms
    raise TypeError(
        f"nothing here shows a {type(value).__name__}; expected one of "
        f"{', '.join(kind.__name__ for kind in _FORMS)}"
    )


def _comparison_html(comparison: Comparison) -> str:
    view = compare_view(comparison)
    room = DATA_BYTES // max(1, len(view.traces))
    timelines = on_one_scale([kept_view(trace, label, room) for label, trace in view.traces])
    pictures = [Picture(drawn, f"Timeline: {drawn.title}") for drawn in timelines]
    pictures += [Picture(boundary_view(plan), f"Boundary: {label}") for label, plan in view.plans]
    shown = summary_html(view)
    if len(timelines) > 1:
        shown += f"<p>{ONE_SCALE}</p>"
    if pictures:
        shown += pictures_html(pictures)
    return shown


_BOUNDARY = _Forms(
    text=lambda value: boundary_text(boundary_view(value)),
    html=lambda value: pictures_html([Picture(boundary_view(value))]),
)
_FORMS: dict[type, _Forms] = {
    Trace: _Forms(
        text=lambda trace: kept_view(trace).describe(),
        html=lambda trace: pictures_html([Picture(kept_view(trace))]),
    ),
    StepMetrics: _Forms(
        text=metrics_text,
        html=lambda metrics: table_html(measures_table([("Trace", metrics)])),
    ),
    Comparison: _Forms(text=comparison_table, html=_comparison_html),
    CriticalPath: _Forms(text=critical_path_text, html=critical_path_html),
    Alignment: _Forms(
        text=lambda alignment: alignment_text(alignment_view(alignment)),
        html=lambda alignment: alignment_html(alignment_view(alignment)),
    ),
    Findings: _Forms(text=findings_text, html=findings_html),
    ClusterReport: _Forms(text=cluster_text, html=cluster_html),
    EmbeddingLens: _Forms(text=lens_text, html=lens_html),
    Memory: _Forms(text=memory_text, html=memory_html),
    ComparedFindings: _Forms(text=compared_findings_text, html=compared_findings_html),
    Predictions: _Forms(text=predictions_text, html=predictions_html),
    Calibration: _Forms(text=calibration_text, html=calibration_html),
    Ceilings: _Forms(text=ceilings_text, html=ceilings_html),
    Best: _Forms(text=search_text, html=search_html),
    LearnedCosts: _Forms(text=learned_costs_text, html=learned_costs_html),
    StagePlan: _BOUNDARY,
    Boundary: _BOUNDARY,
}


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

"""How results are shown: one table from a type to its view, its text and its HTML."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Sequence
from typing import Any

from workbench.core.analysis.alignment import Alignment
from workbench.core.analysis.cluster_report import ClusterReport
from workbench.core.analysis.critical_path import CriticalPath
from workbench.core.analysis.embedding_lens.lens import EmbeddingLens
from workbench.core.analysis.findings.finding import Findings
from workbench.core.analysis.limit.limit import Limit
from workbench.core.analysis.memory.memory import Memory
from workbench.core.boundary.boundary import Boundary
from workbench.core.executor.learned_costs import LearnedCosts
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.metrics import StepMetrics
from workbench.core.trace.trace import Trace
from workbench.core.what_if.calibration import Calibration
from workbench.core.what_if.ceilings import Ceilings
from workbench.core.what_if.predictions import Predictions
from workbench.experiments.comparison.findings import ComparedFindings
from workbench.experiments.comparison.limit import ComparedLimits
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.search.best import Best
from workbench.experiments.serving.results import ServingComparison
from workbench.viz.alignment.view import AlignmentView, alignment_view
from workbench.viz.boundary.text import boundary_text
from workbench.viz.boundary.view import BoundaryView, boundary_view
from workbench.viz.cluster.view import ClusterView, cluster_view
from workbench.viz.comparison.tables import measures_table
from workbench.viz.comparison.text import comparison_text
from workbench.viz.comparison.view import CompareView, compare_view
from workbench.viz.critical_path.text import critical_path_text
from workbench.viz.critical_path.view import critical_path_view
from workbench.viz.embedding_lens.view import LensView, lens_view
from workbench.viz.executor.learned_costs import (
    learned_costs_html,
    learned_costs_tables,
    learned_costs_text,
)
from workbench.viz.findings.text import compared_findings_text, findings_text
from workbench.viz.findings.view import compared_views, findings_view
from workbench.viz.kept_picture import DATA_BYTES, Picture, kept_view, pictures_html
from workbench.viz.limit.view import LimitView, limit_view
from workbench.viz.memory.view import MemoryView, memory_view
from workbench.viz.predictions.calibration_text import calibration_text
from workbench.viz.predictions.calibration_view import calibration_view
from workbench.viz.predictions.ceilings_view import CeilingsView, ceilings_view
from workbench.viz.predictions.text import predictions_text
from workbench.viz.predictions.view import predictions_view
from workbench.viz.search.view import SearchView, search_view
from workbench.viz.serving.text import serving_text
from workbench.viz.serving.view import serving_view
from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment
from workbench.viz.style.table import Table, table_html, table_lines
from workbench.viz.timeline.scale import ONE_SCALE, on_one_scale
from workbench.viz.timeline.view import TimelineView


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outlets:
    """How results of some types are shown. HTML is what the template makes, then `more`.

    Attributes:
      kinds: the types.
      view: a result → its view. Arguments by name choose a part of the result.
      text: the view → plain text.
      template: in `static/`; "" where `more` makes all HTML.
      macro: of the template; it takes the view.
      frame: the class of the element around the markup.
      sheets: whose rules the markup needs, of `assets.VIEWS`.
      more: the view → HTML that no template makes, with its own style.
    """

    kinds: tuple[type, ...]
    view: Callable[..., Any]
    text: Callable[[Any], str]
    template: str = ""
    macro: str = ""
    frame: str = ""
    sheets: tuple[str, ...] = ()
    more: Callable[[Any], str] = lambda view: ""


def text_of(value: Any) -> str:
    """A result as plain text.

    Raises:
      TypeError: nothing shows this type.
    """
    outlets = _outlets(value)
    return outlets.text(outlets.view(value))


def html_of(value: Any, **part: Any) -> str:
    """A result as HTML that holds all it needs.

    Args:
      value: the result.
      **part: what its view takes beside it: `step` of a critical path is the number of the step
        that the waterfall shows, `label` of compared findings is the one variant that is shown.

    Raises:
      OptionError: the result has no such part.
      TypeError: nothing shows this type.
    """
    outlets = _outlets(value)
    view = outlets.view(value, **part)
    markup = alone(_fragment(outlets, view), *outlets.sheets) if outlets.template else ""
    return markup + outlets.more(view)


def fragment_of(value: Any, **part: Any) -> str:
    """The markup of a result without style, for a page that has `assets.views_style()`.

    Args:
      value: a result whose row has a template.
      **part: as of `html_of`.

    Raises:
      OptionError: the result has no such part.
      TypeError: nothing shows this type.
    """
    outlets = _outlets(value)
    return _fragment(outlets, outlets.view(value, **part))


def predictions_page(predictions: Predictions) -> str:
    """Predictions as a page of their own."""
    template = assets.templates().get_template("predictions/page.html.j2")
    return template.render(title=predictions.title, shown=html_of(predictions))


def _outlets(value: Any) -> Outlets:
    for outlets in _TABLE:
        if isinstance(value, outlets.kinds):
            return outlets
    names = ", ".join(kind.__name__ for outlets in _TABLE for kind in outlets.kinds)
    raise TypeError(f"nothing here shows a {type(value).__name__}; expected one of {names}")


def _fragment(outlets: Outlets, view: Any) -> str:
    module: Any = assets.templates().get_template(outlets.template).module
    return fragment(getattr(module, outlets.macro)(view), outlets.frame)


def _picture(view: TimelineView | BoundaryView) -> str:
    return pictures_html([Picture(view)])


def _pictures(view: CompareView) -> str:
    """The timelines and boundaries of a comparison, which no template makes."""
    room = DATA_BYTES // max(1, len(view.traces))
    timelines = on_one_scale([kept_view(trace, label, room) for label, trace in view.traces])
    pictures = [Picture(drawn, f"Timeline: {drawn.title}") for drawn in timelines]
    pictures += [Picture(boundary_view(plan), f"Boundary: {label}") for label, plan in view.plans]
    scale = f"<p>{ONE_SCALE}</p>" if len(timelines) > 1 else ""
    return scale + pictures_html(pictures) if pictures else ""


def _metrics(metrics: StepMetrics) -> Table:
    return measures_table([("Trace", metrics)])


def _metrics_text(table: Table) -> str:
    return "\n".join(table_lines(table))


def _cluster(view: ClusterView) -> str:
    sentences = "".join(f"<p>{html.escape(text)}</p>" for text in view.sentences)
    title = f"<p><strong>{html.escape(view.title)}</strong></p>"
    return title + "".join(map(table_html, view.tables)) + sentences


def _limits(limits: ComparedLimits) -> list[LimitView]:
    return [limit_view(limit, label) for label, limit in limits.variants]


def _limits_text(views: list[LimitView]) -> str:
    return "\n\n".join(view.describe() for view in views)


_TABLE: Sequence[Outlets] = (
    Outlets(kinds=(Trace,), view=kept_view, text=TimelineView.describe, more=_picture),
    Outlets(kinds=(StepMetrics,), view=_metrics, text=_metrics_text, more=table_html),
    Outlets(
        kinds=(Comparison,),
        view=compare_view,
        text=comparison_text,
        template="comparison/compare.html.j2",
        macro="summary",
        more=_pictures,
    ),
    Outlets(
        kinds=(CriticalPath,),
        view=critical_path_view,
        text=critical_path_text,
        template="critical_path/critical_path.html.j2",
        macro="critical_path",
        sheets=("critical_path",),
    ),
    Outlets(
        kinds=(Alignment,),
        view=alignment_view,
        text=AlignmentView.describe,
        template="alignment/alignment.html.j2",
        macro="alignment",
        sheets=("alignment",),
    ),
    Outlets(
        kinds=(Findings,),
        view=findings_view,
        text=findings_text,
        template="findings/findings.html.j2",
        macro="findings",
        frame="wbf",
        sheets=("findings",),
    ),
    Outlets(kinds=(ClusterReport,), view=cluster_view, text=ClusterView.describe, more=_cluster),
    Outlets(
        kinds=(EmbeddingLens,),
        view=lens_view,
        text=LensView.describe,
        template="embedding_lens/embedding_lens.html.j2",
        macro="lens",
        sheets=("critical_path", "embedding_lens"),
    ),
    Outlets(
        kinds=(Memory,),
        view=memory_view,
        text=MemoryView.describe,
        template="memory/memory.html.j2",
        macro="memory",
        sheets=("critical_path", "memory"),
    ),
    Outlets(
        kinds=(Limit,),
        view=limit_view,
        text=LimitView.describe,
        template="limit/limit.html.j2",
        macro="limit",
        sheets=("critical_path", "limit"),
    ),
    Outlets(
        kinds=(ComparedLimits,),
        view=_limits,
        text=_limits_text,
        template="limit/limit.html.j2",
        macro="compared",
        sheets=("critical_path", "limit"),
    ),
    Outlets(
        kinds=(ComparedFindings,),
        view=compared_views,
        text=compared_findings_text,
        template="findings/findings.html.j2",
        macro="compared",
        frame="wbf",
        sheets=("findings",),
    ),
    Outlets(
        kinds=(Predictions,),
        view=predictions_view,
        text=predictions_text,
        template="predictions/predictions.html.j2",
        macro="predictions",
        frame="wbq",
        sheets=("predictions",),
    ),
    Outlets(
        kinds=(Calibration,),
        view=calibration_view,
        text=calibration_text,
        template="predictions/calibration.html.j2",
        macro="calibration",
        frame="wbq",
        sheets=("predictions",),
    ),
    Outlets(
        kinds=(Ceilings,),
        view=ceilings_view,
        text=CeilingsView.describe,
        template="predictions/ceilings.html.j2",
        macro="ceilings",
        frame="wbq",
        sheets=("predictions",),
    ),
    Outlets(
        kinds=(Best,),
        view=search_view,
        text=SearchView.describe,
        template="search/search.html.j2",
        macro="search",
        frame="wbq wbs",
        sheets=("predictions", "search"),
    ),
    Outlets(
        kinds=(ServingComparison,),
        view=serving_view,
        text=serving_text,
        template="serving/serving.html.j2",
        macro="serving",
        frame="wbq wbs wbv",
        sheets=("predictions", "search", "serving"),
    ),
    Outlets(
        kinds=(LearnedCosts,),
        view=learned_costs_tables,
        text=learned_costs_text,
        more=learned_costs_html,
    ),
    Outlets(kinds=(StagePlan, Boundary), view=boundary_view, text=boundary_text, more=_picture),
)

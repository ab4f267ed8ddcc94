"""The report: comparisons as one HTML page that needs no kernel and no network."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
from collections.abc import Sequence
from pathlib import Path

from workbench.core.trace.trace import Trace
from workbench.errors import OptionError, visible
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.regression.earlier import ELEMENT_ID, report_document
from workbench.experiments.serving.results import ServingComparison
from workbench.experiments.session.session import Session
from workbench.files.atomic_file import replacing
from workbench.viz.boundary.html import boundary_html
from workbench.viz.boundary.view import boundary_view
from workbench.viz.comparison.answer import Answer, overall_answer
from workbench.viz.comparison.environment import differing
from workbench.viz.comparison.view import CompareView, compare_view
from workbench.viz.panel.report import session_report_html
from workbench.viz.panel.workbench import Workbench
from workbench.viz.serving.page import serving_page
from workbench.viz.style import assets
from workbench.viz.style.plain_values import plain_values
from workbench.viz.timeline.html import timeline_html
from workbench.viz.timeline.scale import ONE_SCALE, on_one_scale
from workbench.viz.timeline.view import TimelineView, timeline_view

# all timelines of a page together; the rest of it is small, and the whole stays under 3 MB
TIMELINE_BYTES = 2_400_000
# an op that starts and ends at a moment of its own takes more than this, packed
_LEAST_EVENT_BYTES = 3


@dataclasses.dataclass(frozen=True)
class _Figure:
    """A timeline or a boundary as HTML, with what it shows."""

    label: str
    html: str


@dataclasses.dataclass(frozen=True)
class _Section:
    """One comparison of the page; `reruns` where the page holds what measures it again."""

    heading: str
    view: CompareView
    reruns: bool
    timelines: tuple[_Figure, ...]
    boundaries: tuple[_Figure, ...]


def write_report(
    comparison: Comparison
    | ServingComparison
    | Sequence[Comparison | ServingComparison]
    | Session
    | Workbench,
    path: str | os.PathLike[str],
) -> Path:
    """Writes the report of comparisons below each other, of a session, or of served models.

    The file appears whole or not at all. Timelines that would make it larger than 3 MB show the
    last steps of their traces and say so.

    Args:
      comparison: what `workbench.compare` returned, or a list of them; or a session or the panel
        of one, whose report has every tab of the panel; or measurements of served models alone.
      path: the HTML file; its directory must exist.

    Returns:
      The path.

    Raises:
      OptionError: an empty list, something else than a comparison, or a session without a run.
      OutputError: the file cannot be written.
    """
    if isinstance(comparison, Workbench):
        return comparison.report(path)
    if isinstance(comparison, Session):
        page = session_report_html(comparison)
    elif served := _served(comparison):
        page = serving_page(served)
    else:
        # It refuses what is no comparison.
        page = report_html(comparison)  # type: ignore[arg-type]
    with replacing(path) as part:
        part.write_text(page, encoding="utf-8")
    return Path(path)


def _served(given: object) -> list[ServingComparison]:
    """The measurements of served models, where nothing else was given."""
    values = list(given) if isinstance(given, Sequence) else [given]
    served = [value for value in values if isinstance(value, ServingComparison)]
    return served if len(served) == len(values) else []


def report_html(comparison: Comparison | Sequence[Comparison]) -> str:
    """The page of `write_report` as text.

    Raises:
      OptionError: an empty list, or something else than a comparison.
    """
    comparisons = list(comparison) if isinstance(comparison, Sequence) else [comparison]
    if not comparisons:
        raise OptionError("there is no comparison to report; expected one or more")
    for value in comparisons:
        if not isinstance(value, Comparison):
            raise OptionError(
                f"a report was asked of a value of type {type(value).__name__}; expected what "
                "wb.compare returned, a list of such values, a session, a panel, or measurements "
                "of served models alone"
            )
    views = [compare_view(each) for each in comparisons]
    apart = differing([view.settings for view in views])
    reruns = ["configuration" in each.settings for each in comparisons]
    sections = _sections(views, apart, reruns)
    programs = list(dict.fromkeys(view.program for view in views))
    environment = dict(views[0].environment)
    cores = environment.get("Cores")
    machine = [f"{cores} cores" if cores else "", f"TensorFlow {environment.get('TensorFlow', '')}"]
    return visible(
        assets.templates()
        .get_template("report/report.html.j2")
        .render(
            title=f"Workbench: {', '.join(programs)}",
            subtitle=_subtitle(views[0]) if len(views) == 1 else ", ".join(programs),
            machine=", ".join(filter(None, machine)),
            overall=_overall(comparisons, apart) if len(comparisons) > 1 else None,
            sections=sections,
            configuration_id=ELEMENT_ID,
            configuration=assets.json_script(plain_values(report_document(comparisons))),
            one_scale=ONE_SCALE,
            style=assets.page_style(),
            script=assets.report_script(),
            version=importlib.metadata.version("recsys-workbench"),
        )
    )


def _overall(comparisons: Sequence[Comparison], apart: Sequence[str]) -> Answer:
    """The answer over all comparisons; each is named by its program, its settings, or both."""
    several = len({comparison.program for comparison in comparisons}) > 1
    names = []
    for comparison, settings in zip(comparisons, apart, strict=True):
        program = f"in {comparison.program}" if several else ""
        names.append(" ".join(filter(None, [program, f"with {settings}" if settings else ""])))
    return overall_answer(list(zip(names, comparisons, strict=True)))


def _sections(
    views: Sequence[CompareView], different: Sequence[str], reruns: Sequence[bool]
) -> list[_Section]:
    count = sum(len(view.traces) for view in views)
    sections = []
    each_one = zip(views, different, reruns, strict=True)
    for number, (view, apart, again) in enumerate(each_one, 1):
        fitting = [_fitting(trace, label, TIMELINE_BYTES // count) for label, trace in view.traces]
        timelines = tuple(
            _Figure(timeline.title, timeline_html(timeline, f"t{number}-{row}"))
            for row, timeline in enumerate(on_one_scale(fitting), 1)
        )
        boundaries = tuple(
            _Figure(label, boundary_html(boundary_view(plan), f"b{number}-{row}"))
            for row, (label, plan) in enumerate(view.plans, 1)
        )
        heading = f"{view.program}, {apart}" if apart else view.program
        sections.append(
            _Section(
                heading=heading,
                view=view,
                reruns=again,
                timelines=timelines,
                boundaries=boundaries,
            )
        )
    return sections


def _fitting(trace: Trace, title: str, most_bytes: int) -> TimelineView:
    """The timeline; of the last steps alone where all of them take too much room."""
    numbers = trace.steps()["number"].tolist()
    # No more steps than may fit are drawn and packed to see whether they do.
    fit = most_bytes // _LEAST_EVENT_BYTES
    kept = max(1, len(numbers) * fit // max(fit, len(trace.events)))
    steps = (numbers[-kept], numbers[-1]) if kept < len(numbers) else None
    view = timeline_view(trace, title=title, steps=steps)
    while (size := len(timeline_html(view, "t"))) > most_bytes and kept > 1:
        kept = max(1, min(kept - 1, kept * most_bytes // size))
        view = timeline_view(trace, title=title, steps=(numbers[-kept], numbers[-1]))
    return view


def _subtitle(view: CompareView) -> str:
    """Program and its first settings, in one line."""
    known = dict(view.settings)
    named = [known.get("Data", ""), f"batch {known['Batch size']}" if "Batch size" in known else ""]
    return ", ".join(filter(None, [view.program, *named]))

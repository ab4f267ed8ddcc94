"""The report: comparisons as one HTML page that needs no kernel and no network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from workbench.core.analysis.alignment import align
from workbench.errors import OptionError, WorkbenchError
from workbench.experiments.comparison.measured import MeasuredVariant
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.serving.results import ServingComparison
from workbench.experiments.session.session import Session
from workbench.files.atomic_file import replacing
from workbench.viz.before_after.html import before_after_html, nodes_html
from workbench.viz.before_after.view import BeforeAfterView, before_after_view
from workbench.viz.comparison.answer import (
    Answer,
    best_first,
    best_ratio,
    overall_answer,
    ranked_labels,
)
from workbench.viz.comparison.chart import shown_label
from workbench.viz.comparison.environment import differing
from workbench.viz.comparison.view import CompareView, compare_view
from workbench.viz.outlets import fragment_of
from workbench.viz.panel.report import session_report_html
from workbench.viz.panel.workbench import Workbench
from workbench.viz.report_page.facts import facts_of
from workbench.viz.report_page.findings import finding_lines, found_in
from workbench.viz.report_page.folds import (
    Fold,
    Measured,
    boundary_fold,
    command_fold,
    measured_fold,
    provenance_fold,
    tables_fold,
    trace_folds,
)
from workbench.viz.report_page.next_cell import next_cell
from workbench.viz.report_page.page import Chapter, ReportPage, page_html
from workbench.viz.report_page.throughput import throughput_of
from workbench.viz.report_page.timelines import fitting_timeline
from workbench.viz.serving.page import serving_page
from workbench.viz.timeline.html import timeline_html

# Markup of all timelines of a page; the rest of it is small, and the whole stays under 2 MB.
TIMELINE_BYTES = 1_200_000
# The two timelines that stand first have this part of it, where there are others.
_FIRST_SHARE = 0.4
_UNTRACED = "This was measured without a trace. Trace some steps with trace_steps=30."
_ONE_TRACE = "Only {label} was traced, so there is nothing to hold it against."


def write_report(
    comparison: Comparison
    | ServingComparison
    | Sequence[Comparison | ServingComparison]
    | Session
    | Workbench,
    path: str | os.PathLike[str],
) -> Path:
    """Writes the report of comparisons below each other, of a session, or of served models.

    The file appears whole or not at all. Timelines that would make it larger than 2 MB show the
    last steps of their traces and say so.

    Args:
      comparison: what `workbench.compare` returned, or a list of them; or a session or the panel
        of one; or measurements of served models alone.
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
    programs = list(dict.fromkeys(view.program for view in views))
    room = TIMELINE_BYTES // len(comparisons)
    order = best_first(comparisons)
    chapters = tuple(
        _chapter(comparisons[place], views[place], apart[place], place + 1, room) for place in order
    )
    return page_html(
        ReportPage(
            title=f"Workbench: {', '.join(programs)}",
            subtitle=_subtitle(views[0]) if len(views) == 1 else ", ".join(programs),
            facts=facts_of(comparisons[order[0]].environment),
            overall=_overall(comparisons, apart) if len(comparisons) > 1 else None,
            chapters=chapters,
            comparisons=comparisons,
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


def _chapter(
    comparison: Comparison, view: CompareView, apart: str, number: int, room: int
) -> Chapter:
    traces = {variant.label: variant.trace for variant in comparison.variants}
    best = best_ratio(comparison)
    label = best.label if best and best.label in traces else comparison.baseline
    after = _first_traced(comparison)
    pair, why_not = _pair(comparison, after, room)
    drawn = {comparison.baseline, after} if pair else set()
    others = [v for v in comparison.variants if v.trace is not None and v.label not in drawn]
    left = room - int(room * _FIRST_SHARE if others else room) * bool(pair)
    cell, about = next_cell(comparison)
    compared = found_in(comparison, label)
    folds = [
        measured_fold(
            Measured(
                receipt=view.receipt, limits=view.limits, series=view.series, blocks=view.blocks
            )
        ),
        *([Fold(title="Nodes that changed most", html=nodes_html(pair))] if pair else []),
        *_timeline_folds(others, number, left),
        *_boundary_folds(view, number),
        *tables_fold(view),
    ]
    if compared is not None:
        title = f"Findings: {shown_label(label)}"
        folds.append(Fold(title=title, html=fragment_of(compared, label=label)))
    trace = traces.get(label)
    folds += trace_folds(shown_label(label), trace) if trace is not None else ()
    folds.append(provenance_fold(view.settings, view.environment))
    folds.append(command_fold(view.command, reruns="configuration" in comparison.settings))
    return Chapter(
        number=number,
        heading=f"{view.program}, {apart}" if apart else view.program,
        answer=Answer(sentence=view.sentence, next_step=view.next_step),
        cell=cell,
        cell_about=about,
        table=throughput_of(comparison, view),
        why=before_after_html(pair, f"why-{number}") if pair else "",
        why_not=why_not,
        findings=finding_lines(compared, label),
        folds=tuple(folds),
    )


def _first_traced(comparison: Comparison) -> str:
    """The best variant that has a trace and is not the baseline; "" without one."""
    traced = {variant.label for variant in comparison.variants if variant.trace is not None}
    ranked = (label for label in ranked_labels(comparison) if label in traced)
    return next((label for label in ranked if label != comparison.baseline), "")


def _pair(comparison: Comparison, label: str, room: int) -> tuple[BeforeAfterView | None, str]:
    """A variant beside the baseline, or why they cannot stand beside each other."""
    traced = {v.label: v for v in comparison.variants if v.trace is not None}
    if not traced:
        return None, _UNTRACED
    before, after = traced.get(comparison.baseline), traced.get(label)
    if before is None or after is None:
        return None, _ONE_TRACE.format(label=shown_label(next(iter(traced))))
    names = (shown_label(comparison.baseline), shown_label(label))
    assert before.trace is not None and after.trace is not None
    try:
        aligned = align(before.trace, after.trace, labels=names)
    except WorkbenchError as error:
        return None, f"The two runs cannot be held against each other: {error}."
    share = int(room * (_FIRST_SHARE if len(traced) > 2 else 1)) // 2
    timelines = (
        fitting_timeline(variant, name, share)
        for variant, name in zip((before, after), names, strict=True)
    )
    return before_after_view(aligned, *timelines), ""


def _timeline_folds(variants: Sequence[MeasuredVariant], number: int, room: int) -> Iterator[Fold]:
    """The timelines of the variants that do not stand first."""
    for row, variant in enumerate(variants, 1):
        name = shown_label(variant.label)
        timeline = fitting_timeline(variant, name, room // len(variants))
        yield Fold(title=f"Timeline: {name}", html=timeline_html(timeline, f"t{number}-{row}"))


def _boundary_folds(view: CompareView, number: int) -> Iterator[Fold]:
    for row, (label, plan) in enumerate(view.plans, 1):
        yield boundary_fold(label, plan, f"b{number}-{row}")


def _subtitle(view: CompareView) -> str:
    """Program and its first settings, in one line."""
    known = dict(view.settings)
    named = [known.get("Data", ""), f"batch {known['Batch size']}" if "Batch size" in known else ""]
    return ", ".join(filter(None, [view.program, *named]))

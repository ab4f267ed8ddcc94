"""The report of a session: its best run beside the baseline, and what reproduces and proves it."""

from __future__ import annotations

import base64
import dataclasses
import html
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath

import pandas as pd

from workbench.core.trace.trace import Trace
from workbench.core.what_if.predictions import Predicted
from workbench.errors import OptionError
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.program.as_code import compare_code, model_code, program_code
from workbench.experiments.session.run import Run, comparisons_of
from workbench.experiments.session.session import Session
from workbench.viz.before_after.html import before_after_html, nodes_html
from workbench.viz.before_after.view import BeforeAfterView
from workbench.viz.boundary.html import boundary_html
from workbench.viz.comparison.answer import Answer, Result, next_step
from workbench.viz.comparison.environment import environment_pairs, setting_pairs
from workbench.viz.panel.tabs.contents import (
    BOUNDARY,
    LENS,
    MEMORY,
    PATH,
    TABS,
    TWO_RUNS,
    WHAT_IF,
    Contents,
)
from workbench.viz.panel.tabs.ratio_rows import run_name
from workbench.viz.panel.tabs.runs import RunRow, RunsView, runs_view
from workbench.viz.report_page.facts import date_words, facts_of
from workbench.viz.report_page.findings import finding_lines, found_in
from workbench.viz.report_page.folds import (
    Fold,
    Measured,
    command_fold,
    measured_fold,
    provenance_fold,
)
from workbench.viz.report_page.next_cell import AGAIN
from workbench.viz.report_page.page import Chapter, ReportPage, page_html
from workbench.viz.report_page.throughput import Throughput
from workbench.viz.report_page.timelines import fitting_timeline
from workbench.viz.style import format
from workbench.viz.timeline.html import timeline_html

# The whole stays below 2 MB: what timelines may have as markup, and files to take away as bytes.
_TIMELINES, _FILES = 800_000, 450_000
_FIRST_SHARE = 0.5
_PARQUET = "application/vnd.apache.parquet"
# Runs whose timelines the page has beside the two that stand first.
_MOST_OTHERS = 3
_ALONE = "Only the baseline has run, so there is nothing to hold it against."
_UNTRACED = "There is no trace of both runs to hold against each other."


def session_report_html(session: Session, contents: Contents | None = None) -> str:
    """A session as one page that needs no kernel and no network.

    Args:
      session: its runs.
      contents: what their tabs show, as far as it is known.

    Raises:
      OptionError: nothing has run.
    """
    if not session.runs:
        raise OptionError("nothing has run, so there is nothing to report; run a setting first")
    contents = contents or Contents(session)
    base = session.run_of(session.baseline) or session.runs[0]
    results = _results(session, base)
    shown = results[0][0] if results else base
    environment = shown.comparison.environment
    facts = facts_of(environment)
    if not environment.get("measured"):
        facts = (date_words(shown.started), *facts)
    data = PurePath(str(shown.comparison.settings.get("data") or "")).name
    return page_html(
        ReportPage(
            title=f"Workbench: {session.name}",
            subtitle=", ".join(filter(None, [session.name, data])),
            facts=tuple(filter(None, facts)),
            overall=None,
            chapters=(_chapter(session, contents, shown, base, results),),
            comparisons=comparisons_of(session.runs),
        )
    )


def _results(session: Session, base: Run) -> list[tuple[Run, Result]]:
    """The runs that stand against the baseline, the best first."""
    ratios = [(run, session.ratio(run, base)) for run in session.runs]
    results = [
        (run, Result(comparison=run.comparison, ratio=_named(ratio, run), checks=run.checks))
        for run, ratio in ratios
        if ratio is not None
    ]
    return sorted(results, key=lambda found: found[1].rank)


def _named(ratio: Ratio, run: Run) -> Ratio:
    """A ratio with the label that the run's comparison has for it."""
    return dataclasses.replace(ratio, label=run.variant)


def _chapter(
    session: Session,
    contents: Contents,
    shown: Run,
    base: Run,
    results: Sequence[tuple[Run, Result]],
) -> Chapter:
    view = runs_view(session, shown, base)
    pair = contents.of(shown, base, TWO_RUNS).pair
    pair = _fitted(pair, base, shown) if pair else None
    compared = found_in(shown.comparison, shown.variant)
    cell = _cell(session, shown)
    return Chapter(
        number=1,
        heading=session.name,
        answer=Answer(
            sentence=view.sentence, next_step=next_step([result for _, result in results])
        ),
        cell=cell,
        cell_about=AGAIN * bool(cell),
        program_lines=_program_lines(session, shown, base),
        untried=_untried(session, shown, base),
        table=_table(view, results),
        why=before_after_html(pair, "why") if pair else "",
        why_not=_ALONE if shown.number == base.number else _UNTRACED,
        findings=finding_lines(compared, shown.variant),
        folds=tuple(_folds(session, contents, shown, base, view, pair)),
    )


def _fitted(pair: BeforeAfterView, base: Run, shown: Run) -> BeforeAfterView:
    """The pair with as many of the last steps as the page has room for."""
    room = int(_TIMELINES * _FIRST_SHARE) // 2
    timelines = [fitting_timeline(run.measured, run_name(run), room) for run in (base, shown)]
    return pair.drawn_as(*timelines)


def _program_lines(session: Session, shown: Run, base: Run) -> str:
    """What to write in a program of one's own; "" where nothing is to be switched on."""
    if session.program is None or shown.number == base.number:
        return ""
    return program_code(shown.optimizations, session.program)


def _cell(session: Session, run: Run) -> str:
    """What measures a run again; "" where only the user's notebook knows the program."""
    origin = session.program.origin if session.program else None
    program = model_code(origin) if origin else ""
    if not program:
        return ""
    is_base = run.optimizations == session.baseline
    return compare_code(
        [] if is_base else [run.optimizations],
        session.baseline,
        program,
        budget_s=session.budget_s,
        trace_steps=session.trace_steps,
    )


def _untried(session: Session, shown: Run, base: Run) -> str:
    """The best setting that was predicted and not run, where it is ahead of what was run."""
    predictions = session.predictions
    ratio = session.ratio(shown, base)
    least = ratio.ratio if ratio else 1.0
    untried: list[Predicted] = [
        each
        for each in (predictions.predicted if predictions else ())
        if each.low > least and session.run_of(each.scenario.optimizations) is None
    ]
    if not untried:
        return ""
    best = max(untried, key=lambda each: each.ratio)
    interval = format.ratio_range(best.low, best.high)
    return f"Not run yet: {best.label}, predicted {format.ratio(best.ratio)} ({interval})."


def _table(view: RunsView, results: Sequence[tuple[Run, Result]]) -> Throughput:
    """The table of the runs, the best first; the baseline stands behind what is faster."""
    faster = [run.number for run, result in results if result.is_faster]
    others = [run.number for run, result in results if not result.is_faster]
    rows = {row.number: row.row for row in view.rows}
    base = [row.number for row in view.rows if row.baseline]
    ranked = dict.fromkeys([*faster, *base, *others, *rows])
    return Throughput(
        rows=tuple(rows[number] for number in ranked),
        ticks=view.ticks,
        caption=view.caption,
        limits=(),
        notes=(*view.notes, *(_words_of(each) for each in view.rows if each.note or each.group)),
        predicts=view.predicts,
        weighs=view.weighs,
    )


def _words_of(each: RunRow) -> str:
    """What the user wrote about a run."""
    group = f" ({each.group})" if each.group else ""
    return f"{each.row.label}{group}: {each.note}" if each.note else f"{each.row.label}{group}"


def _folds(
    session: Session,
    contents: Contents,
    shown: Run,
    base: Run,
    view: RunsView,
    pair: BeforeAfterView | None,
) -> Iterator[Fold]:
    yield measured_fold(
        Measured(receipt=view.receipt, limits=(), series=view.series, blocks=view.blocks)
    )
    if pair is not None:
        yield Fold(title="Nodes that changed most", html=nodes_html(pair))
    yield from _timelines(session, shown, base, whole=pair is None)
    name = run_name(shown)
    boundary = contents.of(shown, base, BOUNDARY).boundary
    if boundary is not None:
        yield Fold(title=f"{TABS[BOUNDARY]}: {name}", html=boundary_html(boundary, "boundary"))
    if shown.measured.trace is not None:
        for tab in (PATH, LENS, MEMORY):
            yield Fold(title=f"{TABS[tab]}: {name}", html=contents.of(shown, base, tab).html)
    yield Fold(title=TABS[WHAT_IF], html=contents.of(shown, base, WHAT_IF).html)
    comparison = shown.comparison
    yield provenance_fold(
        setting_pairs(comparison.settings), environment_pairs(comparison.environment)
    )
    yield command_fold(comparison.command, reruns="configuration" in comparison.settings)
    yield Fold(title="Files to take away", html=_links(session, [shown, base]))


def _timelines(session: Session, shown: Run, base: Run, *, whole: bool) -> Iterator[Fold]:
    """The timelines of the newest other runs; of all where no pair stands first."""
    first = [] if whole else [shown.number, base.number]
    others = [run for run in reversed(session.runs) if run.number not in first]
    traced = [run for run in others if run.measured.trace is not None][:_MOST_OTHERS]
    for run in traced:
        room = int(_TIMELINES * (1 if whole else 1 - _FIRST_SHARE)) // len(traced)
        timeline = fitting_timeline(run.measured, run_name(run), room)
        title = f"Timeline: {run.number}. {run_name(run)}"
        yield Fold(title=title, html=timeline_html(timeline, f"t-{run.number}"))


def _links(session: Session, runs: Sequence[Run]) -> str:
    """Links that save the results and the traces."""
    links = (
        f'<a download="{html.escape(name)}" href="{address}">{html.escape(name)}</a>'
        for name, address in _files(session, runs)
    )
    return f"<p>{', '.join(links)}</p>"


def report_name(session: Session) -> str:
    """What a session's report is called where nobody says: "workbench-" and the program's name."""
    name = re.sub(r"[^\w.-]+", "-", session.name).strip("-.") or "program"
    return f"workbench-{name}.html"


def _files(session: Session, runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """Files to take away, as far as the page has room: the results, then the traces."""
    room = _FILES
    for name, content in _contents(session, runs):
        if len(content) > room:
            continue
        room -= len(content)
        data = base64.b64encode(content).decode("ascii")
        yield name, f"data:{_PARQUET};base64,{data}"


def _contents(session: Session, runs: Iterable[Run]) -> Iterator[tuple[str, bytes]]:
    yield "results.parquet", results_table(session).to_parquet()
    for run in dict.fromkeys(runs):
        if run.measured.trace is not None:
            yield f"trace-{run.number}.parquet", _trace_bytes(run.measured.trace)


def results_table(session: Session) -> pd.DataFrame:
    """One row for each run, as `Comparison.to_pandas` has them, with its number and when it ran."""
    rows = [
        {
            "run": run.number,
            "setting": run_name(run),
            "started": run.started,
            **run.comparison.to_pandas().loc[run.variant].to_dict(),
        }
        for run in session.runs
    ]
    return pd.DataFrame(rows).astype({"same_training": "boolean"})


def _trace_bytes(trace: Trace) -> bytes:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "trace.parquet"
        trace.save(path)
        return path.read_bytes()

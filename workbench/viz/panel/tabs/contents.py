"""What each tab of the panel shows of a run: drawn by the browser from columns, or as HTML."""

from __future__ import annotations

import dataclasses
import html
import threading
from collections.abc import Callable
from typing import Any

from workbench.core.analysis.alignment import align
from workbench.core.analysis.critical_path import critical_path
from workbench.core.analysis.limit.limit import require_limited
from workbench.core.analysis.memory.memory import memory
from workbench.core.boundary.boundary import Boundary
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.errors import WorkbenchError
from workbench.experiments.comparison.findings import findings
from workbench.experiments.comparison.limit import limit
from workbench.experiments.comparison.machine_peaks import known_peaks
from workbench.experiments.program.toggles import own_choices
from workbench.experiments.search.best import Best
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.before_after.view import BeforeAfterView, before_after_view
from workbench.viz.boundary.drawing.known_cuts import CutTeller
from workbench.viz.boundary.view import BoundaryView, boundary_view_and_teller
from workbench.viz.outlets import fragment_of
from workbench.viz.panel.tabs.ratio_rows import run_name
from workbench.viz.panel.tabs.runs import runs_view
from workbench.viz.panel.tabs.step_facts import StepFacts, step_facts
from workbench.viz.panel.trials import trials_of
from workbench.viz.panel.words import sentence
from workbench.viz.style import assets
from workbench.viz.timeline.view import TimelineView, timeline_view

THROUGHPUT, TIMELINE, BOUNDARY, PATH, FINDINGS = (
    *("throughput", "timeline", "boundary", "path", "findings"),
)
TWO_RUNS, LENS, MEMORY, LIMIT, WHAT_IF = "two_runs", "lens", "memory", "limit", "what_if"
TABS = {
    TWO_RUNS: "Before and after",
    THROUGHPUT: "Throughput",
    TIMELINE: "Timeline",
    BOUNDARY: "Boundary",
    PATH: "Critical path",
    FINDINGS: "Findings",
    LENS: "Embedding lens",
    MEMORY: "Memory",
    LIMIT: "Limit",
    WHAT_IF: "What if",
}
# What is of no run alone, what changes with every run, and what stands against the baseline of
# the table.
_OF_NO_RUN = (THROUGHPUT, WHAT_IF)
OF_ALL_RUNS = (THROUGHPUT, FINDINGS, WHAT_IF)
AGAINST_BASE = (THROUGHPUT, TWO_RUNS)
# What has the names of runs in it.
_NAMING = (*OF_ALL_RUNS, TIMELINE, TWO_RUNS)
# What changes once the program's graphs are built, its ids read and other settings predicted, or
# once the peaks of the machine are measured.
OF_GRAPHS = (THROUGHPUT, BOUNDARY, FINDINGS, LENS, LIMIT, WHAT_IF)
# What a click on the words about a missing trace captures.
CAPTURED_STEPS = 30
_NO_GRAPH = "What may run ahead is known once the program's graph was built; run it once."
_OTHER_GRAPH = (
    "What may run ahead is known of the baseline's graph; with another choice of yours the program "
    "may build another. Run it with SmartStage, which plans its graph."
)
_NO_PEAKS = (
    "How far these steps are from what the machine can do is known once its peaks were measured."
)
_NO_PREDICTION = "Predictions need one run with a trace first."
_SAME_RUN = "Two runs are compared here: choose another run, or another baseline in Throughput."


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Content:
    """One tab of one run: one of the four.

    Attributes:
      html: what is shown as it is.
      pair: two runs beside each other; the browser draws their timelines.
      timeline: drawn by the browser.
      boundary: drawn by the browser. `source` is what it was made from, and `teller` says what
        other cuts would give, where it can.
    """

    html: str = ""
    pair: BeforeAfterView | None = None
    timeline: TimelineView | None = None
    boundary: BoundaryView | None = None
    source: StagePlan | Boundary | None = None
    teller: CutTeller | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Shown:
    """A run of a session, the run that it is compared with, the newest search, and other tabs."""

    session: Session
    run: Run
    base: Run
    facts: StepFacts
    search: Best | None
    contents: Contents

    def timeline_of(self, run: Run) -> TimelineView:
        """The timeline of a run that has a trace, as its tab shows it."""
        timeline = self.contents.of(run, self.base, TIMELINE).timeline
        assert timeline is not None
        return timeline

    def traced(self, make: Callable[[Trace], Content]) -> Content:
        """What is made of its trace; without one, what to do."""
        trace = self.run.measured.trace
        return _untraced("This run", self.run) if trace is None else make(trace)


def against_base(run: Run) -> tuple[str, ...]:
    """The tabs of a run that stand against the baseline of the table.

    The times of a boundary are the baseline's where the run has none of its own.
    """
    return AGAINST_BASE if run.measured.trace is not None else (*AGAINST_BASE, BOUNDARY)


class Contents:
    """What the tabs of a session's runs show; what was worked out is kept.

    Attributes:
      search: the newest search for the best setting; None without one.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.search: Best | None = None
        self._known: dict[tuple[int, int, str, tuple[int, ...]], Content] = {}
        self._facts: dict[int, StepFacts] = {}
        self._making = threading.RLock()

    def of(self, run: Run, base: Run, tab: str) -> Content:
        """What a tab shows of a run, against the baseline of the table.

        What cannot be shown is said in its place.
        """
        all_runs = self._session.runs if tab in OF_ALL_RUNS else ()
        runs = tuple(each.number for each in all_runs)
        beside = base.number if tab in against_base(run) else 0
        key = (0 if tab == WHAT_IF else run.number, beside, tab, runs)
        # One at a time: what draws the kept picture and what a click asks for is the same.
        with self._making:
            if key not in self._known:
                self._known[key] = self._build(run, base, tab)
            return self._known[key]

    def forget(self) -> None:
        """What names, notes, groups and deleted runs are part of is drawn anew."""
        with self._making:
            self._known = {key: each for key, each in self._known.items() if key[2] not in _NAMING}

    def facts(self, run: Run) -> StepFacts:
        """What a step of a run takes, worked out once."""
        with self._making:
            if run.number not in self._facts:
                self._facts[run.number] = step_facts(run)
            return self._facts[run.number]

    def lead(self, run: Run, tab: str) -> str:
        """What a step of the run takes, to stand above a tab; "" of tabs of all runs."""
        return "" if tab in _OF_NO_RUN else self.facts(run).words

    def learned(self) -> None:
        """The program's graphs are known by now, and so are predictions; or the machine's peaks."""
        with self._making:
            kept = {key: made for key, made in self._known.items() if key[2] not in OF_GRAPHS}
            self._known = kept

    def _build(self, run: Run, base: Run, tab: str) -> Content:
        try:
            shown = _Shown(
                session=self._session,
                run=run,
                base=base,
                facts=self.facts(run),
                search=self.search,
                contents=self,
            )
            return _MAKERS[tab](shown)
        except WorkbenchError as error:
            return Content(html=said(sentence(str(error))))


def said(words: str) -> str:
    """A sentence in place of a view."""
    return f'<p class="wb-sentence">{html.escape(words)}</p>'


def _untraced(which: str, run: Run) -> Content:
    """What to do; a panel with a kernel makes a button of the last words."""
    todo = f'<span data-capture="{run.number}">Capture {CAPTURED_STEPS} steps.</span>'
    return Content(html=f'<p class="wb-sentence">{which} was measured without a trace. {todo}</p>')


def _throughput(shown: _Shown) -> Content:
    module: Any = assets.templates().get_template("panel/throughput.html.j2").module
    return Content(html=str(module.runs(runs_view(shown.session, shown.run, shown.base))))


def _timeline(shown: _Shown) -> Content:
    title = run_name(shown.run)
    measured_ns = round(shown.facts.median_ns)
    return shown.traced(
        lambda trace: Content(timeline=timeline_view(trace, title=title, measured_ns=measured_ns))
    )


def _boundary(shown: _Shown) -> Content:
    run = shown.run
    source = run.measured.plan or shown.session.boundary_of(run.optimizations)
    if source is None:
        alike = own_choices(run.optimizations) == own_choices(shown.session.baseline)
        return Content(html=said(_NO_GRAPH if alike else _OTHER_GRAPH))
    trace = run.measured.trace or shown.base.measured.trace
    view, teller = boundary_view_and_teller(source, trace)
    return Content(boundary=view, source=source, teller=teller)


def _path(shown: _Shown) -> Content:
    return shown.traced(lambda trace: Content(html=fragment_of(critical_path(trace))))


def _findings(shown: _Shown) -> Content:
    comparison, run = shown.run.comparison, shown.run
    labels = (comparison.baseline, run.variant)
    kept = tuple(each for each in comparison.variants if each.label in labels)
    compared = findings(dataclasses.replace(comparison, variants=kept))
    toggles = [each.toggle for _, found in compared.variants for each in found if each.toggle]
    trials = trials_of(shown.session, run, toggles)
    return Content(html=fragment_of(compared, label=run.variant, trials=trials))


def _two_runs(shown: _Shown) -> Content:
    run, base = shown.run, shown.base
    if run.number == base.number:
        return Content(html=said(_SAME_RUN))
    before, after = base.measured.trace, run.measured.trace
    if after is None:
        return _untraced("This run", run)
    if before is None:
        return _untraced("The baseline", base)
    aligned = align(before, after, labels=(run_name(base), run_name(run)))
    timelines = (shown.timeline_of(each) for each in (base, run))
    return Content(pair=before_after_view(aligned, *timelines))


def _lens(shown: _Shown) -> Content:
    lens = shown.session.embedding_lens
    return shown.traced(lambda trace: Content(html=fragment_of(lens(trace))))


def _memory(shown: _Shown) -> Content:
    return shown.traced(lambda trace: Content(html=fragment_of(memory(trace))))


def _limit(shown: _Shown) -> Content:
    return shown.traced(_limit_of)


def _limit_of(trace: Trace) -> Content:
    """The limit of a trace; nothing is measured for it unasked."""
    require_limited(trace)
    if known_peaks() is not None:
        return Content(html=fragment_of(limit(trace, progress=False)))
    # A panel with a kernel makes a button of the last words.
    todo = '<span data-peaks="">Measure this machine’s peaks, about 5 s.</span>'
    return Content(html=f'<p class="wb-sentence">{_NO_PEAKS} {todo}</p>')


def _what_if(shown: _Shown) -> Content:
    toggles, ceilings = shown.session.predictions, shown.session.ceilings
    named = [("Search", shown.search), ("Toggles", toggles), ("Ceilings", ceilings)]
    if toggles and ceilings and not (toggles.predicted or ceilings.predicted):
        # One reason holds for both, and is said once.
        named = named[:2]
    parts = [f"<h3>{title}</h3>{fragment_of(each)}" for title, each in named if each]
    return Content(html="".join(parts) or said(_NO_PREDICTION))


_MAKERS: dict[str, Callable[[_Shown], Content]] = {
    THROUGHPUT: _throughput,
    TIMELINE: _timeline,
    BOUNDARY: _boundary,
    PATH: _path,
    FINDINGS: _findings,
    TWO_RUNS: _two_runs,
    LENS: _lens,
    MEMORY: _memory,
    LIMIT: _limit,
    WHAT_IF: _what_if,
}

"""The panel as a page holds it: its last state, every tab, and what was predicted; no kernel."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.before_after.html import before_after_pane
from workbench.viz.boundary.html import boundary_static_html
from workbench.viz.boundary.html import packed as packed_boundary
from workbench.viz.kept_picture import DATA_BYTES, kept_view
from workbench.viz.panel.tabs.contents import (
    AGAINST_BASE,
    BOUNDARY,
    TABS,
    THROUGHPUT,
    TIMELINE,
    WHAT_IF,
    Content,
    Contents,
    said,
)
from workbench.viz.panel.tabs.ratio_rows import run_name
from workbench.viz.style import assets
from workbench.viz.timeline.html import timeline_static_html
from workbench.viz.timeline.view import TimelineView

# Views that a page holds no more of, where it must stay small.
_MISSING = (
    "This view is not stored in the page; show it with this run and baseline, and save again."
)
# With few runs a page has their throughput against each of them.
_MOST_BASELINES = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class PanelPage:
    """What a page needs to show a panel.

    Attributes:
      view: header, toggles and tabs.
      state: of the toggles, and what is shown.
      settings: what is known of settings, as `SettingView` makes it.
      contents: by "run/tab", by "run/tab/baseline" where that counts, by "*/tab" where no run does.
    """

    view: Mapping[str, Any]
    state: Mapping[str, Any]
    settings: tuple[Mapping[str, Any], ...]
    contents: Mapping[str, Mapping[str, Any]]

    def packed(self) -> str:
        """The same as deflated JSON in base64."""
        content = {**dataclasses.asdict(self), "missing": said(_MISSING)}
        return _base64(assets.deflated_json(content))


def panel_page(
    session: Session,
    contents: Contents,
    view: Mapping[str, Any],
    state: Mapping[str, Any],
    settings: Iterable[Mapping[str, Any]],
    runs: Iterable[Run],
    base: Run,
    timeline_bytes: int,
) -> PanelPage:
    """The page of a session.

    Args:
      session: its runs.
      contents: what their tabs show.
      view, state, settings: as of `PanelPage`.
      runs: those whose tabs the page holds; of others it has the throughput alone.
      base: the baseline of the table.
      timeline_bytes: packed columns of all timelines together; long ones keep their last steps.
    """
    kept = {run.number for run in runs}
    timelines = _timelines(
        contents,
        [run for run in session.runs if run.number in {*kept, base.number}],
        timeline_bytes,
    )
    stored: dict[str, dict[str, Any]] = {}
    for run in session.runs:
        for tab in TABS if run.number in kept else (THROUGHPUT,):
            for other in _bases(session, base, tab):
                key = _key(run, tab, other)
                if key not in stored:
                    content = _stored(
                        contents.of(run, other, tab), (other.number, run.number), timelines
                    )
                    stored[key] = content | {"lead": contents.lead(run, tab)}
    # a pair names the timelines that it draws
    if base.number in timelines:
        whole = Content(timeline=timelines[base.number])
        content = _stored(whole, (base.number, base.number), timelines)
        lead = contents.lead(base, TIMELINE)
        stored.setdefault(f"{base.number}/{TIMELINE}", content | {"lead": lead})
    return PanelPage(view=view, state=state, settings=tuple(settings), contents=stored)


def panel_html(page: PanelPage, element_id: str) -> str:
    """A panel that the page's script brings to life.

    Args:
      page: what it shows.
      element_id: unique in the page; letters, digits, "-" and "_".
    """
    assets.require_id(element_id)
    return (
        f'<div id="{element_id}" class="wb" data-wb-panel="{element_id}"></div>\n'
        f'<script type="text/plain" id="{element_id}-data">{page.packed()}</script>\n'
    )


def still_html(contents: Contents, run: Run, base: Run) -> str:
    """The run that is shown as a still picture: throughput, timeline and boundary."""
    parts = {THROUGHPUT: contents.of(run, base, THROUGHPUT).html}
    if run.measured.trace is not None:
        parts[TIMELINE] = timeline_static_html(_kept_timeline(contents, run, DATA_BYTES))
    boundary = contents.of(run, base, BOUNDARY).boundary
    if boundary is not None:
        parts[BOUNDARY] = boundary_static_html(boundary)
    return "".join(f'<div data-still="{tab}">{part}</div>' for tab, part in parts.items())


def _bases(session: Session, base: Run, tab: str) -> Iterable[Run]:
    """The baselines that a page has a tab against."""
    if tab == THROUGHPUT and len(session.runs) <= _MOST_BASELINES:
        return session.runs
    return (base,)


def _key(run: Run, tab: str, base: Run) -> str:
    if tab == WHAT_IF:
        return f"*/{tab}"
    return f"{run.number}/{tab}" + (f"/{base.number}" if tab in AGAINST_BASE else "")


def _timelines(contents: Contents, runs: Sequence[Run], most_bytes: int) -> dict[int, TimelineView]:
    """The timelines of those that have a trace, by number; long ones keep their last steps."""
    traced = [run for run in runs if run.measured.trace is not None]
    room = most_bytes // max(1, len(traced))
    return {run.number: _kept_timeline(contents, run, room) for run in traced}


def _kept_timeline(contents: Contents, run: Run, room: int) -> TimelineView:
    trace = run.measured.trace
    assert trace is not None
    measured_ns = round(contents.facts(run).median_ns)
    return kept_view(trace, run_name(run), room, measured_ns=measured_ns)


def _stored(
    content: Content, numbers: tuple[int, int], timelines: Mapping[int, TimelineView]
) -> dict[str, Any]:
    """What a page keeps of a tab: of the runs with these numbers, before and after."""
    if content.pair is not None:
        pair = content.pair.drawn_as(*(timelines[number] for number in numbers))
        return {
            "pair": [each.to_json_header() for each in pair.timelines],
            "of": [f"{number}/{TIMELINE}" for number in numbers],
            "html": before_after_pane(pair),
        }
    if content.timeline is not None:
        timeline = timelines[numbers[1]]
        data = _base64(timeline.columns.packed)
        return {"timeline": timeline.to_json_header(), "data": data}
    if content.boundary is not None:
        return {"boundary": True, "data": _base64(packed_boundary(content.boundary))}
    return {"html": content.html}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")

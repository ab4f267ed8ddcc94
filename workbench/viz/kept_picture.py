"""Pictures as a notebook keeps them: alive in a frame of its own, and a still for elsewhere.

The output is HTML alone. It holds all it needs, so it is alive with a kernel, without one, and in
a page that nbconvert made; inside the frame no key and no style of the notebook is in the way.
Where scripts or frames are taken out (an untrusted notebook, GitHub), the still picture stays.
"""

from __future__ import annotations

import base64
import dataclasses
import html
import zlib
from collections.abc import Callable, Sequence

from workbench.core.trace.trace import Trace
from workbench.errors import visible
from workbench.viz.boundary.html import boundary_html, boundary_static_html
from workbench.viz.boundary.view import BoundaryView
from workbench.viz.style import assets, format
from workbench.viz.timeline.html import timeline_html, timeline_static_html
from workbench.viz.timeline.view import TimelineView, timeline_view

# Packed columns of all timelines of one output: with its script, twice encoded, and its still
# picture an output stays below 300 kB.
DATA_BYTES = 140_000
# More events than this never fit, whatever they are.
_MOST_EVENTS = 100_000
_CSP = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


@dataclasses.dataclass(frozen=True)
class Picture:
    """One timeline or boundary of an output; `heading` is "" where it stands alone."""

    view: TimelineView | BoundaryView
    heading: str = ""


def pictures_html(pictures: Sequence[Picture]) -> str:
    """Pictures below each other: a still of each, and one frame in which all of them are alive.

    The frame has no height until its script has drawn every picture; then it hides the stills.
    """
    stills = "".join(_heading(each) + _still(each.view) for each in pictures)
    parts = (_heading(each) + _alive(each.view, f"wb-{i}") for i, each in enumerate(pictures))
    page = frame_page("".join(parts), assets.boundary_style(), assets.frame_script())
    return framed_html(stills, page, ", ".join(map(_title, pictures)))


def framed_html(still: str, page: str, title: str) -> str:
    """A still picture, and a frame that takes its place once its script has drawn the page."""
    return (
        f"<div><div>{still}</div>\n"
        f'<iframe title="{html.escape(title)}" srcdoc="{html.escape(page)}" '
        'scrolling="no" style="display:block;width:100%;height:0;border:0"></iframe></div>'
    )


def kept_view(
    trace: Trace,
    title: str | None = None,
    most_bytes: int = DATA_BYTES,
    *,
    measured_ns: int | None = None,
) -> TimelineView:
    """The timeline of a trace as a saved notebook can keep it: the last steps of a long one."""
    view, kept = last_steps(
        trace,
        title,
        most_bytes,
        size=lambda view: len(view.columns.packed),
        most_events=_MOST_EVENTS,
        measured_ns=measured_ns,
    )
    count = len(trace.steps())
    if kept >= count:
        return view
    shown = "step" if kept == 1 else f"{format.integer(kept)} steps"
    notice = (
        f"The last {shown} of {format.integer(count)}, so that the notebook stays small; "
        "wb.widget(trace) shows all of them."
    )
    return dataclasses.replace(view, notice=notice)


def last_steps(
    trace: Trace,
    title: str | None,
    most_bytes: int,
    *,
    size: Callable[[TimelineView], int],
    most_events: int,
    measured_ns: int | None,
) -> tuple[TimelineView, int]:
    """The timeline of a trace, of the last steps alone where all of them take too much room.

    Args:
      trace, title, measured_ns: as of `timeline_view`.
      most_bytes: that it may take; it has one step at least.
      size: how many bytes a timeline takes.
      most_events: events that may fit, whatever they are: no more are drawn to see whether they do.

    Returns:
      The timeline, and how many steps it has.
    """
    numbers = trace.steps()["number"].tolist()
    kept = max(1, len(numbers) * most_events // max(most_events, len(trace.events)))
    while True:
        steps = (numbers[-kept], numbers[-1]) if kept < len(numbers) else None
        view = timeline_view(trace, title=title, steps=steps, measured_ns=measured_ns)
        taken = size(view)
        if taken <= most_bytes or kept <= 1:
            return view, kept
        kept = max(1, min(kept - 1, kept * most_bytes // taken))


def frame_page(body: str, style: str, script: str) -> str:
    """The page of a frame. Its content is packed: script and style repeat in every output."""
    content = f'<style>{style}</style>{body}<script type="module">{script}</script>'
    packed = base64.b64encode(zlib.compress(visible(content).encode("utf-8"), 9)).decode("ascii")
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}"></head>'
        '<body class="wb" style="margin:0;padding:0 4px 4px">'
        f'<script type="text/plain" id="packed">{packed}</script>'
        f'<script type="module">{assets.opening_script()}</script></body></html>'
    )


def _still(view: TimelineView | BoundaryView) -> str:
    if isinstance(view, TimelineView):
        return timeline_static_html(view)
    return boundary_static_html(view)


def _alive(view: TimelineView | BoundaryView, element_id: str) -> str:
    if isinstance(view, TimelineView):
        return timeline_html(view, element_id)
    return boundary_html(view, element_id)


def _title(picture: Picture) -> str:
    if isinstance(picture.view, TimelineView):
        return picture.heading or f"Timeline of {picture.view.title}".removesuffix(" of ")
    return picture.heading or "Boundary"


def _heading(picture: Picture) -> str:
    return f"<h3>{html.escape(picture.heading)}</h3>" if picture.heading else ""

"""Timelines of a report, each within its share of the page."""

from __future__ import annotations

from workbench.experiments.comparison.measured import MeasuredVariant
from workbench.viz.timeline.html import timeline_html
from workbench.viz.timeline.view import TimelineView, timeline_view

# An op that starts and ends at a moment of its own takes more than this, packed.
_LEAST_EVENT_BYTES = 3


def fitting_timeline(measured: MeasuredVariant, title: str, most_bytes: int) -> TimelineView:
    """The timeline; of the last steps alone where all of them take too much room.

    Args:
      measured: what is drawn, with a trace; its step is what the blocks took.
      title: what the timeline is called.
      most_bytes: of its markup with data and still picture.
    """
    trace = measured.trace
    assert trace is not None
    measured_ns = round(measured.step_ms_median * 1e6)
    numbers = trace.steps()["number"].tolist()
    # No more steps than may fit are drawn and packed to see whether they do.
    fit = most_bytes // _LEAST_EVENT_BYTES
    kept = max(1, len(numbers) * fit // max(fit, len(trace.events)))
    steps = (numbers[-kept], numbers[-1]) if kept < len(numbers) else None
    view = timeline_view(trace, title=title, steps=steps, measured_ns=measured_ns)
    while (size := len(timeline_html(view, "t"))) > most_bytes and kept > 1:
        kept = max(1, min(kept - 1, kept * most_bytes // size))
        steps = (numbers[-kept], numbers[-1])
        view = timeline_view(trace, title=title, steps=steps, measured_ns=measured_ns)
    return view

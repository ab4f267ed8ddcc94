"""Timelines of a report, each within its share of the page."""

from __future__ import annotations

from workbench.experiments.comparison.measured import MeasuredVariant
from workbench.viz.kept_picture import last_steps
from workbench.viz.timeline.html import timeline_html
from workbench.viz.timeline.view import TimelineView

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
    view, _ = last_steps(
        trace,
        title,
        most_bytes,
        size=lambda view: len(timeline_html(view, "t")),
        most_events=most_bytes // _LEAST_EVENT_BYTES,
        measured_ns=round(measured.step_ms_median * 1e6),
    )
    return view

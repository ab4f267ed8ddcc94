"""One scale for several timelines: the same width is the same time, so lengths compare by eye."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.viz.timeline.view import Scale, TimelineView

ONE_SCALE = "All timelines open at one scale: the same width is the same time."
# Timelines open on the middle step and one on each side; with fewer than this many, on all of it.
_FEWEST_STEPS = 4


def on_one_scale(views: Sequence[TimelineView]) -> tuple[TimelineView, ...]:
    """The views at the scale of the longest of them; a single one as it is."""
    if len(views) < 2:
        return tuple(views)
    scale = Scale(
        shown_ns=max(map(_opened_ns, views)), whole_ns=max(view.duration_ns for view in views)
    )
    return tuple(dataclasses.replace(view, scale=scale) for view in views)


def _opened_ns(view: TimelineView) -> int:
    starts, times = view.steps["start_ns"].to_numpy(), view.steps["dur_ns"].to_numpy()
    if len(starts) < _FEWEST_STEPS:
        return view.duration_ns
    after = len(starts) // 2 + 1
    return int(starts[after] + times[after] - starts[after - 2])

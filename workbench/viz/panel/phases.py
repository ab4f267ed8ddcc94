"""The phases of a run by its lines of progress, where nothing has planned them."""

from __future__ import annotations

import dataclasses

from workbench.viz.panel.job_view import JobView, PhaseView

# In their order, and how the lines of progress of each begin. Graphs are built before the blocks,
# and once more for predictions.
PHASES = {
    "Start": ("Starting",),
    "Build": ("Building the graphs", "Planning", "Verifying"),
    "Check": ("Checking",),
    "Warm up": ("Warming up",),
    "Measure": ("Block",),
    "Trace": ("Tracing",),
    "Predict": ("Building the graphs", "Fetching", "Reading", "Predicting"),
}
_TITLES = tuple(PHASES)
# It traces steps before it plans.
_PLANNING = "for the smart stage to be planned on"


def first_phases() -> tuple[PhaseView, ...]:
    """The phases of a run that begins, as of `JobView`."""
    return _phases(0)


def with_phases(view: JobView, before: JobView) -> JobView:
    """A view of progress with its phases; one that has them, or is of a search, stays as it is.

    Args:
      view: of a line of progress.
      before: of the line before it, whose phases go on; none of them begins again.
    """
    if view.phases or not before.phases:
        return view
    return dataclasses.replace(view, phases=_phases(_place(view.words, before)))


def _phases(place: int) -> tuple[PhaseView, ...]:
    """All phases, the one of this number going on."""
    states = ["over"] * place + ["now"] + ["next"] * (len(_TITLES) - place - 1)
    return tuple(
        PhaseView(title=title, state=state) for title, state in zip(_TITLES, states, strict=True)
    )


def _place(words: str, before: JobView) -> int:
    """The number of the phase that a line of progress is of; the one before where no other is."""
    now = next(place for place, each in enumerate(before.phases) if each.state == "now")
    if words.endswith(_PLANNING):
        return max(now, _TITLES.index("Build"))
    later = range(now, len(_TITLES))
    return next((i for i in later if words.startswith(PHASES[_TITLES[i]])), now)

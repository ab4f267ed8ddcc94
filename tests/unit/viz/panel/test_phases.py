"""Every line of progress is of a phase, and no phase begins again."""

from __future__ import annotations

import dataclasses

from workbench.viz.panel.job_view import NOTHING, PhaseView, running
from workbench.viz.panel.phases import PHASES, first_phases, with_phases

# The lines of a first run, and the phase of each.
LINES = (
    ("About 40 s: 30 s of measuring", "Start"),
    ("Starting 2 child processes", "Start"),
    ("Building the graphs", "Build"),
    ("Tracing 30 steps for the smart stage to be planned on", "Build"),
    ("Planning the smart stage", "Build"),
    ("Checking that training stays the same", "Check"),
    ("Warming up", "Warm up"),
    ("Block 1 of 24, 25 s left", "Measure"),
    ("Tracing 30 steps", "Trace"),
    ("Building the graphs", "Predict"),
    ("Fetching the ids of 10 batches", "Predict"),
    ("Predicting the other settings", "Predict"),
)


def test_every_line_of_a_run_is_of_a_phase_and_none_begins_again():
    view = dataclasses.replace(running("Starting a child process"), phases=first_phases())
    for words, title in LINES:
        view = with_phases(running(words), view)
        assert [each.title for each in view.phases] == [*PHASES]
        assert [each.title for each in view.phases if each.state == "now"] == [title]
        states = [each.state for each in view.phases]
        assert states == sorted(states, key=["over", "now", "next"].index)


def test_a_search_names_no_phases_and_what_was_planned_stays():
    assert with_phases(running("Warming up"), NOTHING).phases == ()
    planned = dataclasses.replace(
        running("Warming up"), phases=(PhaseView(title="Measure", state="now"),)
    )
    before = dataclasses.replace(NOTHING, phases=first_phases())
    assert with_phases(planned, before).phases == (PhaseView(title="Measure", state="now"),)

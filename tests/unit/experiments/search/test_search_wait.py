"""What a search will take, and what of its end a budget has room for."""

from __future__ import annotations

import dataclasses

import pytest

from workbench.experiments.measurement.machine_load import MachineLoad
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.program import Program
from workbench.experiments.search.search_wait import planned_search, untraced_notes

QUIET = MachineLoad(busy_cores=0.0, cores=2)
PROGRAM = Program(name="searched", build=lambda optimizations: None)


def planned(budget_s, *, trace_steps=20, settings=None, load=QUIET):
    program = dataclasses.replace(PROGRAM, settings=settings or {"of": budget_s})
    return planned_search(program, load, budget_s=budget_s, trace_steps=trace_steps)


def test_a_long_budget_has_room_for_checks_and_traces():
    ending = planned(120.0).ending(open_s=3.0, step_s=0.02)
    assert ending.trace_steps == 20
    assert ending.seconds == pytest.approx(2 * 3.0 + 200 * 0.02 + 3.0 + 100 * 0.02)
    assert ending.trace_s == pytest.approx(5.0)


def test_a_short_one_is_checked_and_not_traced():
    ending = planned(40.0).ending(open_s=4.0, step_s=0.02)
    assert (ending.trace_steps, ending.trace_s) == (0, 0.0)
    assert ending.seconds == pytest.approx(12.0)
    # the race has half of the time in any case
    assert planned(10.0).ending(open_s=8.0, step_s=0.1).seconds == 5.0


def test_without_traces_nothing_is_kept_for_them():
    assert planned(120.0, trace_steps=0).ending(open_s=3.0, step_s=0.02).seconds == 10.0


def test_what_a_budget_cannot_hold_is_said_first():
    words = planned(120.0).words().replace("\u00a0", " ")
    assert words == (
        "About 120 s in all: about 39 s to start and predict, 11 s to check and trace the best, "
        "the rest to race"
    )
    assert planned(10.0).words().startswith("More than the budget of 10\u00a0s: about 12\u00a0s to")


def test_what_a_search_took_is_what_the_next_one_expects():
    first = planned(60.0, settings={"of": "learning"})
    progress = Progress(False)
    schedule = progress.plan(first.phases, budget_s=60.0)
    schedule.begin("check")
    first.learn(progress)
    again = {each.name: each.seconds for each in planned(60.0, settings={"of": "learning"}).phases}
    assert again["check"] < 1.0 and again["start"] == 9.0
    # what a quiet machine takes says nothing of a busy one
    busy = MachineLoad(busy_cores=2.0, cores=2)
    other = planned(60.0, settings={"of": "learning"}, load=busy).phases
    assert {each.name: each.seconds for each in other}["check"] == 6.0


def test_that_nothing_is_traced_is_a_note():
    assert untraced_notes(20, {}) and "the budget has no room" in untraced_notes(20, {})[0]
    assert untraced_notes(0, {}) == []

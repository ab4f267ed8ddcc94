"""How much of a wait is left: by what phases should take, and by what those took that are over."""

from __future__ import annotations

import pytest

from workbench.experiments.measurement.schedule import (
    BLOCKS,
    BUILD,
    GRAPHS,
    PREDICT,
    START,
    TRACE,
    Expected,
    Schedule,
)


@pytest.fixture
def clock():
    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    return Clock()


def phases(*, later: float = 0.0) -> list[Expected]:
    return [
        Expected(name=START, seconds=2.0),
        Expected(name=BUILD, seconds=4.0),
        Expected(name=BLOCKS, seconds=1.0, fills=True),
        Expected(name=TRACE, seconds=5.0),
        *([Expected(name=GRAPHS, seconds=later, later=True)] if later else []),
    ]


def test_blocks_fill_the_budget(clock):
    schedule = Schedule(phases(), budget_s=30.0, clock=clock)
    assert schedule.left_s() == pytest.approx(30.0)
    assert schedule.share() == 0.0
    schedule.begin(START)
    clock.now += 2.0
    schedule.begin(BUILD)
    assert schedule.left_s() == pytest.approx(28.0)
    assert schedule.share() == pytest.approx(2 / 30)


def test_what_comes_after_the_budget_is_part_of_the_wait(clock):
    schedule = Schedule(phases(later=20.0), budget_s=30.0, clock=clock)
    assert schedule.later_s() == 20.0
    assert schedule.left_s() == pytest.approx(50.0)


def test_a_budget_that_is_too_short_is_exceeded_by_the_shortest_form(clock):
    schedule = Schedule(phases(), budget_s=5.0, clock=clock)
    assert schedule.left_s() == pytest.approx(12.0)


def test_phases_that_took_longer_lengthen_those_that_come(clock):
    schedule = Schedule(phases(), budget_s=5.0, clock=clock)
    schedule.begin(START)
    clock.now += 6.0
    # TensorFlow had to be imported, which says nothing of the graphs
    schedule.begin(BUILD)
    assert schedule.left_s() == pytest.approx(4.0 + 5.0 + 1.0)
    clock.now += 10.0
    schedule.begin(BLOCKS)
    schedule.expect(BLOCKS, 1.0)
    # (10 + 2) / (4 + 2): twice as long as expected
    assert schedule.left_s() == pytest.approx(1.0 + 2 * 5.0)


def test_a_phase_that_runs_over_needs_some_of_its_time_again(clock):
    schedule = Schedule([Expected(name=BUILD, seconds=4.0)], clock=clock)
    schedule.begin(BUILD)
    clock.now += 20.0
    assert schedule.left_s() == pytest.approx(0.15 * 20.0)


def test_what_is_skipped_takes_no_time_and_what_was_not_planned_is_there(clock):
    schedule = Schedule(phases(), budget_s=30.0, clock=clock)
    schedule.begin(START)
    schedule.begin(TRACE)
    clock.now += 3.0
    schedule.begin(PREDICT)
    clock.now += 1.0
    schedule.end()
    assert schedule.durations() == {START: 0.0, TRACE: 3.0, PREDICT: 1.0}
    assert schedule.left_s() == 0.0


def test_each_phase_has_a_state(clock):
    schedule = Schedule(phases(), budget_s=30.0, clock=clock)
    schedule.begin(START)
    clock.now += 3.0
    schedule.begin(BUILD)
    assert [(each.title, each.state) for each in schedule.phases()] == [
        ("Start", "over"),
        ("Build graphs", "now"),
        ("Measure", "next"),
        ("Trace", "next"),
    ]
    assert schedule.phases()[0].seconds == 3.0
    assert schedule.now == "Build graphs"


def test_what_is_left_of_the_blocks_is_what_they_say(clock):
    schedule = Schedule(phases(), budget_s=30.0, clock=clock)
    schedule.begin(BLOCKS)
    clock.now += 4.0
    schedule.expect(BLOCKS, 6.0)
    schedule.expect(TRACE, 3.0)
    assert schedule.left_s() == pytest.approx(9.0)

"""Traced steps between untraced ones."""

from __future__ import annotations

import pytest

from tests.builders.traces import unstaged_trace
from workbench.core.capture.cpu_time import StepClock
from workbench.core.options import StageOptions
from workbench.core.trace.meta import UntracedSteps
from workbench.experiments.worker.steps import first_steps, traced_steps
from workbench.experiments.worker.steps.first_steps import Rest
from workbench.experiments.worker.steps.traced_steps import settling_steps, traced_between


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_steps, "settle", lambda: None)


def ran(steps: int) -> tuple[list[str], UntracedSteps | None]:
    """What ran in its order, and the untraced time that the trace notes."""
    done: list[str] = []

    def measure(clock: StepClock, count: int) -> None:
        done.append(f"{count} untraced")
        for _ in range(count):
            clock.begin()
            clock.end()

    def trace():  # type: ignore[no-untyped-def]
        done.append("traced")
        return unstaged_trace(steps)

    return done, traced_between(measure, trace, steps).meta.untraced


@pytest.mark.parametrize(("steps", "half"), [(1, 6), (12, 6), (31, 16), (500, 30)])
def test_as_many_untraced_steps_as_traced_ones_half_before_and_half_after(
    steps: int, half: int
) -> None:
    done, _ = ran(steps)
    assert done == [f"{half} untraced", "traced", f"{half} untraced"]


def test_the_trace_notes_the_time_of_both_halves_and_not_the_time_between() -> None:
    done, untraced = ran(1)
    assert len(done) == 3
    # of six steps five are followed by another one; a pause of this machine may cost some
    assert untraced is not None and 0 < untraced.steps <= 10
    assert None not in (untraced.step_ns, untraced.cpu_ns, untraced.run_ns)


def test_what_stages_hold_ready_is_used_up_before_steps_count() -> None:
    assert settling_steps([]) == 3
    assert settling_steps([StageOptions(capacity=4, num_threads=2), StageOptions()]) == 3 + 6 + 2


class Clock:
    """Steps that take their time on a clock of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
        self.now_s, self.runs = 100.0, 0
        self._step_s = step_s
        monkeypatch.setattr(first_steps.time, "monotonic", lambda: self.now_s)

    def run(self, steps: int) -> None:
        self.now_s += steps * self._step_s
        self.runs += steps


@pytest.mark.parametrize(("step_s", "ran"), [(0.01, 8), (0.5, 3), (0.0, 403)])
def test_short_steps_run_until_the_caches_are_warm(
    monkeypatch: pytest.MonkeyPatch, step_s: float, ran: int
) -> None:
    clock = Clock(monkeypatch, step_s)
    Rest(settling=3, reads_ahead=False).run_until_over(clock.run)
    assert clock.runs == pytest.approx(ran, abs=1)


@pytest.mark.parametrize(("rest_s", "ran_s"), [(0.5, 0.5), (0.01, 0.08), (60.0, 2.0)])
def test_what_was_read_ahead_in_a_rest_is_used_up(
    monkeypatch: pytest.MonkeyPatch, rest_s: float, ran_s: float
) -> None:
    clock = Clock(monkeypatch, 0.01)
    rest = Rest(settling=3, reads_ahead=True)
    clock.now_s += 30.0
    rest.begin()
    clock.now_s += rest_s
    rest.run_until_over(clock.run)
    assert clock.runs == pytest.approx(ran_s / 0.01, abs=1)

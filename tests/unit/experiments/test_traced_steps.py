"""Traced steps between untraced ones."""

from __future__ import annotations

import pytest

from tests.builders.traces import unstaged_trace
from workbench.core.capture.cpu_time import StepClock
from workbench.core.options import StageOptions
from workbench.core.trace.meta import UntracedSteps
from workbench.experiments.worker.steps import first_steps, traced_steps
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


@pytest.mark.parametrize(("step_s", "ran"), [(0.02, 3 + 3), (0.5, 3), (0.0, 3 + 200)])
def test_short_steps_are_run_until_the_caches_are_warm(
    monkeypatch: pytest.MonkeyPatch, step_s: float, ran: int
) -> None:
    now_s, runs = 0.0, 0

    def run(steps: int) -> None:
        nonlocal now_s, runs
        now_s += steps * step_s
        runs += steps

    monkeypatch.setattr(first_steps.time, "monotonic", lambda: now_s)
    monkeypatch.setattr(first_steps, "_WARM_S", 0.11)
    first_steps.run_until_warm(run, 3)
    assert runs == ran

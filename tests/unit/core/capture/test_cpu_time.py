"""CPU time of steps and of inputs, by a clock that the test holds."""

from __future__ import annotations

import threading
import types

import numpy as np
import pytest

from tests.builders.traces import MS, START_NS, make_trace, timed_trace
from workbench.core.capture import cpu_time
from workbench.core.capture.cpu_time import CpuSampler, StepClock, cores_while_waiting
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.op_columns import OpColumns
from workbench.core.trace.trace import Trace

UNSTAGED = [("next", "IteratorGetNext", 10.0), ("dense", "MatMul", 5.0)]


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.cpu, self.faults = 0, 0, 0
        monkeypatch.setattr(cpu_time.time, "perf_counter_ns", lambda: self.wall)
        usage = lambda _: types.SimpleNamespace(ru_minflt=self.faults)  # noqa: E731
        monkeypatch.setattr(cpu_time.resource, "getrusage", usage)
        monkeypatch.setattr(cpu_time.time, "process_time_ns", lambda: self.cpu)

    def steps(self, clock: StepClock, count: int, wall: int = 100, cpu: int = 150) -> None:
        for _ in range(count):
            clock.begin()
            self.wall += wall
            self.cpu += cpu
            self.faults += 7


def test_the_time_of_untraced_steps(monkeypatch: pytest.MonkeyPatch):
    time, clock = Clock(monkeypatch), StepClock()
    time.steps(clock, 11)
    assert clock.untraced() == UntracedSteps(steps=10, step_ns=100, cpu_ns=150, page_faults=7)


def test_pauses_and_traced_steps_do_not_count(monkeypatch: pytest.MonkeyPatch):
    time, clock = Clock(monkeypatch), StepClock()
    time.steps(clock, 6)
    time.wall += 500  # an evaluation
    time.steps(clock, 6)
    clock.interrupt()
    clock.interrupt()
    time.wall += 130  # traced, and slower
    time.steps(clock, 2)
    assert clock.untraced() == UntracedSteps(steps=11, step_ns=100, cpu_ns=150, page_faults=7)


def test_only_the_latest_steps_count(monkeypatch: pytest.MonkeyPatch):
    time, clock = Clock(monkeypatch), StepClock()
    time.steps(clock, 50, wall=140)
    time.steps(clock, 70, wall=100)
    assert clock.untraced() == UntracedSteps(steps=63, step_ns=100, cpu_ns=150, page_faults=7)


def test_the_time_of_a_step_is_the_median_from_its_begin_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
):
    time, clock = Clock(monkeypatch), StepClock()
    clock.end()  # of a step that nobody noted
    for lasts in [70] * 9 + [900, 80, 80]:
        clock.begin()
        time.wall += lasts
        clock.end()
        time.wall += 30
    clock.interrupt()
    clock.end()  # of a traced step
    untraced = clock.untraced()
    assert untraced is not None
    assert (untraced.run_ns, untraced.steps) == (70, 10)


def test_too_few_steps_or_several_clients_tell_no_time(monkeypatch: pytest.MonkeyPatch):
    time, clock = Clock(monkeypatch), StepClock()
    assert clock.untraced() is None
    time.steps(clock, 8)
    assert clock.untraced() is None
    time.steps(clock, 8)
    assert clock.untraced() is not None
    other = threading.Thread(target=time.steps, args=(clock, 3))
    other.start()
    other.join()
    assert clock.untraced() is None


def test_the_sampler_follows_both_clocks():
    sampler = CpuSampler()
    used, ticks = 0, threading.Event()
    while used < 100_000:
        used += 1
    ticks.wait(0.05)
    samples = sampler.stop()
    assert samples.shape[1] == 2 and len(samples) > 5
    assert (np.diff(samples, axis=0) >= 0).all()
    assert len(sampler.stop()) == len(samples)


def ops_of(trace: Trace) -> OpColumns:
    """The ops as a tracer hands them over, with the runs of the main steps first."""
    events = trace.events
    main = (trace.tracks["kind"] == "inter_op").to_numpy(bool)[events["track"].to_numpy()]
    start = events["start_ns"].to_numpy(np.int64)
    number = events["step"].to_numpy(np.int64) - 1
    return OpColumns(
        run=np.where(main, number, number + number.max(initial=0) + 1),
        node=events["node"].to_numpy(np.int64),
        thread=np.zeros(len(events), np.int64),
        scheduled_ns=start,
        start_ns=start,
        end_ns=start + events["dur_ns"].to_numpy(np.int64),
        nodes=trace.nodes,
    )


def sampled(cores_at) -> np.ndarray:
    """A sample every 0.5 ms; `cores_at` says how many cores are in use at a time in ms."""
    at = np.arange(0, 12 * 15.1, 0.5)
    used = np.cumsum([cores_at(ms) * 0.5 for ms in at])
    return np.stack([START_NS + at * MS, used * MS], axis=1).astype(np.int64)


@pytest.mark.parametrize("used", [0.0, 0.4, 1.0, 2.0])
def test_cores_in_use_while_an_unstaged_step_waits(used: float):
    ops = ops_of(timed_trace(UNSTAGED))  # 0.1 of the client, 10 of waiting, 5 of computing
    samples = sampled(lambda ms: used if 0.1 <= ms % 15.1 < 10.1 else 1.7)
    assert cores_while_waiting(ops, 12, samples) == pytest.approx(used, abs=0.05)


def test_other_ops_and_the_time_between_steps_do_not_count():
    trace = timed_trace([("dense", "MatMul", 5.0)], {"input": [("next", "IteratorGetNext", 15.1)]})
    # the step's op runs for 5 of 5.1 ms, the input all the time
    assert cores_while_waiting(ops_of(trace), 12, sampled(lambda ms: 1.7)) is None


def test_a_step_that_waits_for_its_stage_shows_the_input_alone():
    events = []
    for step in range(12):
        at = START_NS + step * 15 * MS
        events += [(at, MS, 0, 1, 2, step + 1), (at + 11 * MS, 4 * MS, 0, 1, 2, step + 1)]
        events.append((at, 15 * MS, 0, 0, 1, step + 1))
    trace = make_trace(events, nodes=[("next", "IteratorGetNext"), ("dense", "MatMul")])
    samples = sampled(lambda ms: 0.3 if 1 <= ms % 15 < 11 else 1.5)
    assert cores_while_waiting(ops_of(trace), 12, samples) == pytest.approx(0.3, abs=0.05)


def test_waiting_for_the_buffer_is_no_op_of_the_step():
    take = ("take", "WorkbenchBufferTake", 10.0)
    step = [("first", "MatMul", 1.0), take, ("last", "MatMul", 4.0)]
    trace = timed_trace(step, {"input": [("next", "IteratorGetNext", 15.1)]})
    samples = sampled(lambda ms: 0.3 if 1.1 <= ms % 15.1 < 11.1 else 1.5)
    assert cores_while_waiting(ops_of(trace), 12, samples) == pytest.approx(0.3, abs=0.05)


def test_too_few_samples_tell_nothing():
    ops = ops_of(timed_trace(UNSTAGED, steps=1))
    assert cores_while_waiting(ops, 1, sampled(lambda ms: 1.0)[::4]) is None
    assert cores_while_waiting(ops, 1, np.empty((0, 2), np.int64)) is None
    assert cores_while_waiting(ops_of(make_trace()), 0, sampled(lambda ms: 1.0)) is None

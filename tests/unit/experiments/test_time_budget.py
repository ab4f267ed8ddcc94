"""A comparison in its budget of time, on workers whose seconds are counted and not waited for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.builders.opened import OPENED
from tests.builders.traces import unstaged_trace
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.comparison.running import interleaved_run
from workbench.experiments.comparison.wait import planned_wait
from workbench.experiments.measurement import blocks
from workbench.experiments.measurement.machine_load import MachineLoad
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.progress_line import state_of
from workbench.experiments.measurement.time_budget import (
    TimeBudget,
    expected_words,
    steps_within,
    warm_step_s,
)
from workbench.experiments.program.program import Program
from workbench.experiments.program.variant import variants_of
from workbench.experiments.worker.wire.messages import (
    Close,
    Open,
    RunBlock,
    RunSteps,
    Steps,
    TraceSteps,
)

NBSP = "\u00a0"
START_S, OPEN_S, REST_S = 5.0, 1.5, 0.04
SETTLING = 6
PROGRAM = Program(name="fake", build=lambda optimizations: None)


class Machine:
    """One core: a clock, and what was run on it, in steps and seconds by command."""

    def __init__(self, step_s: float, epoch: int) -> None:
        self.now, self.step_s, self.epoch = 0.0, step_s, epoch
        self.steps: dict[str, int] = {}

    def run(self, count: int, what: str, sharing: int = 1) -> Steps:
        """Steps of one of `sharing` processes that run at the same time."""
        self.steps[what] = self.steps.get(what, 0) + count
        ends = self.now + self.step_s * sharing * np.arange(count + 1)
        self.now += self.step_s * count
        return Steps(ends_ns=(ends * 1e9).astype(np.int64), values=np.zeros(count), ended=False)


class FakeWorker:
    """Takes the time of a machine for what it is told, one command after the other."""

    failure = None

    def __init__(self, machine: Machine, processes: int) -> None:
        self.machine, self._processes = machine, processes
        self._asked, self._read = [], {}

    def send(self, command):
        self._asked.append(command)

    def receive(self, expected_s=0.0):
        command = self._asked.pop(0)
        match command:
            case Open():
                self.machine.now += OPEN_S
                self._read[command.session] = 0
                return OPENED
            case RunSteps():
                return self._run(command)
            case RunBlock():
                ran = self.machine.run(command.steps, "block")
                self.machine.now += REST_S
                return ran
            case TraceSteps():
                return self._trace(command)
        assert isinstance(command, Close)
        return None

    def pause(self):
        pass

    def call(self, command, expected_s=0.0):
        self.send(command)
        return self.receive()

    def _run(self, command):
        if command.fetch != "fingerprint":
            return self.machine.run(command.steps, command.fetch, self._processes)
        first = self._read[command.session]
        count = min(command.steps, self.machine.epoch - first)
        self._read[command.session] += count
        ran = self.machine.run(count, command.fetch, self._processes)
        values = np.arange(first, first + count)
        return dataclasses.replace(ran, values=values, ended=count < command.steps)

    def _trace(self, command):
        assert command.session in self._read
        assert (command.beside, command.step_stats) == ("main", False)
        # as of traced_between: untraced ones on both sides, and traced ones that are not kept
        steps = command.steps
        self.machine.run(2 * max(6, steps // 2) + steps + 3 * SETTLING, "beside")
        self.machine.run(steps, "trace")
        self.machine.now += REST_S
        return unstaged_trace()


@pytest.fixture
def measured(monkeypatch):
    """Measures toggles on a machine of `step_s` a step; gives the machine and the result."""

    def measure(
        toggles,
        *,
        step_s,
        budget_s,
        epoch=10**6,
        program=PROGRAM,
        said=False,
        compared=200,
        phases=(),
        start_s=START_S,
        **more,
    ):
        machine = Machine(step_s, epoch)

        class Started:
            def __init__(self, programs, environments, tolerance):
                machine.now += start_s * len(programs)
                self.workers = [FakeWorker(machine, len(programs)) for _ in programs]

            def __enter__(self):
                return self.workers

            def __exit__(self, *error):
                return None

        monkeypatch.setattr(interleaved_run, "started_workers", Started)
        clock = lambda: machine.now  # noqa: E731
        monkeypatch.setattr(blocks.time, "monotonic", clock)
        monkeypatch.setattr(
            interleaved_run, "TimeBudget", lambda seconds: TimeBudget(seconds, clock)
        )
        progress = Progress(said)
        if phases:
            progress.plan(phases, budget_s=budget_s)
        found = interleaved_run.run_interleaved(
            program,
            variants_of(toggles, StageOptions(num_threads=2), SmartStageOptions()),
            budget_s=budget_s,
            trace_steps=more.pop("trace_steps", 30),
            step_stats=False,
            equivalence_steps=compared,
            progress=progress,
            **more,
        )
        return machine, found

    return measure


@pytest.mark.parametrize(
    ("step_s", "budget_s"),
    [(0.0005, 45.0), (0.02, 52.0), (0.0005, 60.0), (0.02, 60.0), (0.1, 100.0), (0.1, 120.0)],
)
def test_a_comparison_takes_its_budget_and_no_more(measured, step_s, budget_s):
    machine, found = measured(("stage", "inline_executor"), step_s=step_s, budget_s=budget_s)
    assert machine.now <= 1.05 * budget_s
    # steps of no time leave the rest of a long budget
    assert machine.now >= 0.6 * budget_s or step_s < 0.01
    assert found.plan.rounds >= 6
    assert len(found.measured["stage"].rates) == found.plan.rounds
    assert [check.passed for check in found.checks] == [True] * 4


def watch():
    """Collects (when, what was said) of a run."""
    said = []

    def listen(text):
        said.append((blocks.time.monotonic(), state_of(text)))

    return said, listen


def test_the_wait_is_known_after_the_first_phase_and_the_first_number_comes_by_half_of_it(measured):
    program = dataclasses.replace(PROGRAM, settings={"of": "a wait"})
    load = MachineLoad(busy_cores=0.0, cores=2)
    off = []
    for _ in range(3):
        variants = variants_of(("stage",), StageOptions(num_threads=2), SmartStageOptions())
        wait = planned_wait(
            program,
            variants,
            budget_s=30.0,
            trace_steps=30,
            equivalence_steps=200,
            samples=False,
            tries=False,
            load=load,
        )
        said, listen = watch()
        machine, _ = measured(
            ("stage",), step_s=0.02, budget_s=30.0, said=listen, phases=wait.phases, start_s=0.5
        )
        assert machine.now <= 31.5
        second = next(
            (when, state) for when, state in said if state.phase and state.phase != "Start"
        )
        off.append(abs((second[0] + second[1].left_s) / machine.now - 1))
        first_number = next(when for when, state in said if state.evidence)
        assert first_number <= machine.now / 2
    assert max(off) < 1 / 3
    print(f"\nestimates off by {', '.join(f'{each:.0%}' for each in off)}")


def test_blocks_end_when_clear_and_the_interval_holds_at_every_look(measured):
    """All settings are as fast as each other on this machine, to the last digit."""
    _, found = measured(
        ("stage",), step_s=0.02, budget_s=120.0, trace_steps=0, stop_when_clear=True
    )
    assert found.stop_when_clear and found.plan.rounds < 20
    _, whole = measured(("stage",), step_s=0.02, budget_s=120.0)
    assert whole.plan.rounds > found.plan.rounds
    assert found.plan.rounds % 2 == 0
    assert len(found.measured["stage"].rates) == found.plan.rounds


def test_a_budget_below_the_start_is_exceeded_by_little_more_than_the_start(measured):
    toggles = ("stage", "inline_executor")
    machine, found = measured(toggles, step_s=0.02, budget_s=8.0)
    # three processes; each opens one session, one more for its batches, the stage one for losses
    start_s = 3 * START_S + 7 * OPEN_S
    assert machine.now - start_s < 20.0
    assert found.plan.rounds == 4
    assert min(check.steps for check in found.checks) >= 10


def test_slow_steps_shorten_every_part(measured):
    fast, _ = measured(("stage",), step_s=0.001, budget_s=40.0)
    slow, found = measured(("stage",), step_s=0.3, budget_s=40.0)
    assert fast.steps["loss"] == 2 * 200
    assert slow.steps["loss"] < 40
    assert fast.steps["trace"] == 2 * 30
    assert 2 * 5 <= slow.steps["trace"] < 2 * 30
    assert found.checks[0].steps == slow.steps["loss"] / 2


def test_an_epoch_that_is_too_long_is_compared_as_far_as_there_is_time(measured):
    program = dataclasses.replace(PROGRAM, build_epoch=PROGRAM.build)
    _, whole = measured(("stage",), step_s=0.001, budget_s=60.0, epoch=390, program=program)
    assert "over a whole epoch" in whole.checks[1].detail
    assert whole.checks[1].steps == 390
    machine, part = measured(("stage",), step_s=0.02, budget_s=60.0, epoch=10**5, program=program)
    assert machine.now <= 63.0
    assert part.checks[1].passed
    assert 50 < part.checks[1].steps < 1000
    assert f"over the first {part.checks[1].steps} steps" in part.checks[1].detail


@pytest.mark.parametrize("compared", [1, 8, 40])
def test_as_many_batches_as_were_asked_for_are_compared_however_few(measured, compared):
    toggles = ("stage", "inline_executor")
    _, found = measured(toggles, step_s=0.001, budget_s=60.0, compared=compared)
    assert [(check.passed, check.steps) for check in found.checks] == [(True, compared)] * 4
    for check in found.checks[2:]:
        assert check.detail.startswith(f"each exactly once over the first {compared} step")


def test_progress_counts_the_traces_that_follow_the_blocks(measured):
    said: list[str] = []
    measured(("stage",), step_s=0.02, budget_s=45.0, said=said.append)
    last = [text for text in said if text.startswith("Block ")][-1]
    assert int(last.split(", ")[1].split(NBSP)[0]) > 1
    assert said[-1].startswith("Tracing ")


def test_the_whole_time_is_said_first():
    words = expected_words(30.0, processes=3, graphs=6, cores=2)
    assert words.replace(NBSP, " ") == (
        "About 30 s in all: about 12 s to start 3 child processes and build 6 graphs, the rest to "
        "check, warm up, measure and trace"
    )
    words = expected_words(8.0, processes=3, graphs=6, cores=2)
    assert words.replace(NBSP, " ") == (
        "More than the budget of 8 s: about 12 s to start 3 child processes and build 6 graphs on "
        "2 cores, then the shortest checks, blocks and traces that say something"
    )
    assert "budget of 0.5" in expected_words(0.5, processes=1, graphs=1, cores=8)


def test_a_budget_counts_down_and_never_below_nothing():
    now = [10.0]
    budget = TimeBudget(8.0, lambda: now[0])
    assert (budget.left_s(), budget.share_s(0.25, 1.0)) == (8.0, 2.0)
    now[0] = 17.0
    assert (budget.left_s(), budget.spent_s(), budget.share_s(0.25, 1.0)) == (1.0, 7.0, 1.0)
    now[0] = 30.0
    assert (budget.left_s(), budget.share_s(0.25, 1.0)) == (0.0, 1.0)


def test_steps_that_fit():
    assert steps_within(2.0, 0.1, least=5, most=30) == 20
    assert steps_within(0.1, 0.1, least=5, most=30) == 5
    assert steps_within(60.0, 0.1, least=5, most=30) == 30
    assert steps_within(float("inf"), 0.1, least=5, most=30) == 30
    assert steps_within(1.0, 0.0, least=5, most=30) == 30


def test_the_first_steps_do_not_say_what_a_step_takes():
    ends = np.array([0, 9, 18, 19, 20, 21]) * 10**9
    ran = Steps(ends_ns=ends, values=np.zeros(0), ended=False)
    assert warm_step_s(ran) == 1.0
    assert warm_step_s(dataclasses.replace(ran, ends_ns=ends[:1])) == 0.0

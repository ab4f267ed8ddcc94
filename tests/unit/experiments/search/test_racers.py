"""What racers open, trace and refuse; no process is started."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.stock import GRAPPLER
from workbench.core.toggles.toggle import Toggle
from workbench.errors import OptionError, PlanError, RunError
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Built, Program
from workbench.experiments.search.racing import session_opener as opener_module
from workbench.experiments.search.racing.racers import Racers
from workbench.experiments.worker.wire.messages import Close, GetPlan, Open, RunBlock, Steps

OFF = Optimizations()
STAGE = Optimizations(stage=StageOptions())
SMART = Optimizations(smart_stage=SmartStageOptions())
SMART_INLINE = Optimizations(smart_stage=SmartStageOptions(), executor="inline")
FUSED = Optimizations(fused_embeddings="v2")
FUSED_INLINE = Optimizations(fused_embeddings="v2", executor="inline")
GRAPH = Program(name="mine", build=lambda optimizations: Built(train_op=None))
STEP_NS = 20_000_000


class Planned:
    """A plan of one stage, or of none."""

    def __init__(self, stages=1):
        options = StageOptions(capacity=2)
        self.stages = [SimpleNamespace(options=options, widens=False)] * stages
        self.edits = [SimpleNamespace(name="table", reason="everything depends on it")]

    def to_plan(self):
        return self

    def to_json(self):
        return "plan"


class FakeWorker:
    """Answers as a child would, and keeps what it was asked."""

    failure = None

    def __init__(self, field):
        self.field, self.asked, self.answers = field, [], []
        self.deadline_s, self.deadlines = math.inf, []

    def send(self, command):
        self.asked.append(command)
        self.deadlines.append(self.deadline_s - time.monotonic())
        self.answers.append(self.field.answer(command))

    def receive(self, expected_s=0.0):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pause(self):
        pass

    def call(self, command, expected_s=0.0):
        self.send(command)
        return self.receive()


class Field:
    """Racers on fake children; `opens` says what a setting's graph has."""

    def __init__(self, monkeypatch, program=GRAPH, clock=None):
        self.workers, self.given_back, self.traced = [], [], []
        self.opens = lambda wish: SimpleNamespace(
            stages=int(bool(wish.stage)), fused_ops=int(bool(wish.fused_embeddings))
        )
        self.block = lambda: None
        self.plan = Planned()
        self.over_limit = False
        self.step_ns = STEP_NS
        children = SimpleNamespace(
            lend=self.lend,
            give_back=lambda worker, setting: self.given_back.append(worker),
            to_start=lambda count: count,
            look=lambda: 0,
            room=lambda: 3,
            bytes_of=lambda worker: 7,
            over_limit=False,
            is_at_home=lambda setting: True,
            unready=lambda setting, seconds: f"not in {seconds:g} s",
        )
        monkeypatch.setattr(opener_module, "sample_trace", self.sample)
        self.said = []
        self.children = children
        self.racers = Racers(
            program,
            children,
            cores=2,
            progress=Progress(self.said.append),
            clock=clock,
        )

    def lend(self, wishes):
        lent = [FakeWorker(self) for _ in wishes]
        self.workers += lent
        return lent

    def sample(self, worker, setting, steps, seconds):
        self.traced.append((self.workers.index(worker), setting))
        return f"trace of {setting.label()}"

    def answer(self, command):
        match command:
            case Open():
                try:
                    return self.opens(command.optimizations)
                except (OptionError, PlanError, RunError) as error:
                    return error
            case GetPlan():
                return self.plan
            case RunBlock():
                failure = self.block()
                ends = np.arange(command.steps + 1) * self.step_ns
                return failure or Steps(ends_ns=ends, values=np.empty(0), ended=False)
            case Close():
                return None
        raise AssertionError(command)

    def enter(self, *settings):
        labels = [each.label(in_full=True) for each in settings]
        return self.racers.enter(labels, dict(zip(labels, settings, strict=True)))


@pytest.fixture
def field(monkeypatch):
    return Field(monkeypatch)


def opened(field, number):
    return next(each for each in field.workers[number].asked if isinstance(each, Open))


def test_settings_run_a_block_each_in_a_round(field):
    assert field.racers.enter_baseline("off", OFF).step_ns == STEP_NS
    assert field.enter(STAGE) == []
    rates, failed = field.racers.run_round(0, ["off", "stage"])
    assert rates == pytest.approx({"off": 50.0, "stage": 50.0}) and failed == []
    # six steps count, after those that make the caches warm and use up a buffer
    off, stage = (field.racers.racer(label) for label in ("off", "stage"))
    assert (off.steps, off.dropped) == (10, 4)
    assert (stage.steps, stage.dropped) == (12, 6)
    assert len(stage.step_times) == 1 and len(stage.step_times[0]) == 6
    assert field.said == ["Starting off", "Starting stage"]
    field.racers.leave(["stage"])
    assert field.racers.memory == {"stage": 7} and field.given_back == [field.workers[1]]
    assert not field.racers.runs("stage") and "stage" in field.racers.ever


def test_a_plan_is_made_once_for_all_executors_on_one_trace_of_the_baselines_process(field):
    field.racers.enter_baseline("off", OFF)
    assert field.enter(SMART) == []
    assert field.traced == [(0, OFF)]
    assert opened(field, 1).sample == "trace of off" and opened(field, 1).plan is None
    assert field.enter(SMART_INLINE) == []
    assert opened(field, 2).plan == "plan" and opened(field, 2).sample is None
    assert not any(isinstance(each, GetPlan) for each in field.workers[2].asked)
    assert field.racers.racer("smart stage + inline executor").variant.ahead == 3
    assert len(field.traced) == 1


def test_a_trace_that_is_there_is_used(field):
    field.racers.enter_baseline("off", OFF)
    field.racers.keep_sample(OFF, "the seed's")
    field.enter(SMART)
    assert field.traced == [] and opened(field, 1).sample == "the seed's"


def test_a_function_is_planned_without_a_trace(monkeypatch):
    field = Field(monkeypatch, FunctionProgram(name="mine", make=lambda: None))
    field.racers.enter_baseline("off", OFF)
    assert field.enter(SMART) == [] and field.traced == []
    (refused,) = field.enter(STAGE)
    assert "is a FunctionProgram" in refused.reason


def test_a_toggle_without_effect_is_refused_for_all_that_have_it(field):
    field.opens = lambda wish: SimpleNamespace(stages=0, fused_ops=0)
    field.racers.enter_baseline("off", OFF)
    stage, fused = field.enter(STAGE, FUSED)
    assert stage.reason == "the program builds no stage when optimizations.stage is set"
    assert stage.holds_for(STAGE) and not stage.holds_for(FUSED)
    assert fused.reason == "the program builds no embedding lookup through Workbench"
    assert fused.holds_for(FUSED_INLINE) and not fused.holds_for(SMART)
    assert len(field.given_back) == 2 and not field.racers.runs("stage")


def test_a_refusal_holds_for_the_same_graph_and_a_failure_for_itself(field):
    def opens(wish):
        raise PlanError("found two inputs") if wish.smart_stage else RunError("line 41")

    field.racers.enter_baseline("off", OFF)
    field.opens = opens
    smart, fused = field.enter(SMART, FUSED)
    assert (smart.reason, fused.reason) == ("found two inputs", "line 41")
    assert smart.holds_for(SMART_INLINE) and not smart.holds_for(FUSED)
    assert not fused.holds_for(FUSED_INLINE)


def test_a_plan_that_moves_nothing_is_no_setting_of_its_own(field):
    field.plan = Planned(stages=0)
    field.racers.enter_baseline("off", OFF)
    (refused,) = field.enter(SMART)
    assert refused.reason == (
        "its plan moves nothing ahead of the step (everything depends on it), so it runs what it "
        "runs without it"
    )
    assert refused.holds_for(SMART_INLINE)


def test_the_baseline_has_to_run(field):
    with pytest.raises(OptionError, match="the baseline 'smart stage' has no effect: its plan"):
        field.plan = Planned(stages=0)
        field.racers.enter_baseline("smart stage", SMART)

    def opens(wish):
        raise RunError("line 41")

    field.opens = opens
    with pytest.raises(RunError, match="line 41"):
        field.racers.enter_baseline("off", OFF)


def test_a_block_that_fails_puts_a_setting_out_and_the_baseline_ends_it_all(field):
    field.racers.enter_baseline("off", OFF)
    field.enter(FUSED)
    failures = [None, RunError("no memory")]
    field.block = lambda: failures.pop(0)
    rates, failed = field.racers.run_round(0, ["off", "fused V2"])
    assert set(rates) == {"off"} and failed[0].reason == "it failed: no memory"
    failures[:] = [RunError("the machine is gone")]
    with pytest.raises(RunError, match="the machine is gone"):
        field.racers.run_round(0, ["off", "fused V2"])


def test_places_are_those_of_the_memory_and_two_at_least(field):
    field.racers.enter_baseline("off", OFF)
    assert field.racers.places() == 3
    field.children.room = lambda: 100
    assert field.racers.places() == 6
    field.children.room = lambda: 0
    assert field.racers.places() == 2
    field.enter(STAGE, FUSED)
    assert field.racers.places() == 0


def test_what_starting_took_says_what_it_will_take(field):
    racers = field.racers
    assert racers.start_s(1) == pytest.approx(0.1 + 3.0 + 1.5)
    # processes and graphs on both cores, warming up one after the other
    assert racers.start_s(4) == pytest.approx((4 * 0.1 + 4 * 3.0) / 2 + 4 * 1.5)
    racers.enter_baseline("off", OFF)
    assert racers.start_s(1) < 5.0 and racers.graphs_s(3) < 5.0


def test_too_much_memory_has_words(field):
    assert field.racers.over_memory() == ""
    field.children.over_limit = True
    assert "took more memory than they may" in field.racers.over_memory()


DIM = Toggle("dim", [16, 32])
WIDE = Optimizations(chosen=(DIM.at(32),))
WIDE_SMART = Optimizations(chosen=(DIM.at(32),), smart_stage=SmartStageOptions())
NO_GRAPPLER = Optimizations(chosen=(GRAPPLER.at("off"),), smart_stage=SmartStageOptions())


def test_a_choice_has_a_part_of_the_time_that_is_left_and_the_baseline_has_the_usual_limit(
    monkeypatch,
):
    seconds = [0.0]
    field = Field(monkeypatch, clock=TimeBudget(80.0, lambda: seconds[0]))
    field.racers.enter_baseline("off", OFF)
    assert set(field.workers[0].deadlines) == {math.inf}
    field.enter(WIDE)
    assert all(8 < each <= 10.0 for each in field.workers[1].deadlines)
    # Planning a graph takes a while.
    field.enter(STAGE)
    assert all(70 < each <= 80.0 for each in field.workers[2].deadlines)
    # Where little is left it has about what the baseline took, at least.
    seconds[0] = 79.9
    field.enter(NO_GRAPPLER)
    assert all(each <= 0.5 for each in field.workers[3].deadlines)
    seconds[0] = 0.0
    field.racers.run_round(0, ["off", "dim 32"])
    assert field.workers[0].deadlines[-1] == math.inf
    # ten times a block of 0.2 s, and five seconds
    assert 6.5 < field.workers[1].deadlines[-1] <= 7.0
    assert {each.deadline_s for each in field.workers} == {math.inf}


def test_one_whose_first_steps_are_far_too_slow_does_not_race(field):
    field.racers.enter_baseline("off", OFF)
    field.step_ns = 40 * STEP_NS
    (refused,) = field.enter(WIDE)
    assert refused.reason == (
        "its first steps ran 0.025× as fast as those of off, so it did not race"
    )
    assert refused.holds_for(WIDE_SMART) and not refused.holds_for(SMART)
    assert not field.racers.runs("dim 32") and field.workers[1] in field.given_back


def test_a_failure_holds_for_those_that_have_its_choices(field):
    def opens(wish):
        raise RunError("line 41")

    field.racers.enter_baseline("off", OFF)
    field.opens = opens
    (wide,) = field.enter(WIDE)
    assert wide.holds_for(WIDE_SMART) and not wide.holds_for(SMART)


def test_a_plan_is_made_for_an_authors_choice_on_a_trace_of_it_in_its_own_process(field):
    field.racers.enter_baseline("off", OFF)
    field.racers.keep_sample(OFF, "the seed's")
    field.enter(WIDE_SMART)
    assert field.traced == [(1, WIDE)]
    # TensorFlow's own leave the graph alone.
    field.enter(NO_GRAPPLER)
    assert len(field.traced) == 1 and opened(field, 2).sample == "the seed's"
    assert field.racers.unready(WIDE, 3.0) == "not in 3 s"

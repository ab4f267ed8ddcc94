"""How many child processes there may be; no process is started."""

from __future__ import annotations

import contextlib
import math
import os
from typing import ClassVar

import pytest

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.errors import RunError
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Built, Program
from workbench.experiments.search.racing import children as children_module
from workbench.experiments.search.racing.children import Children, children_of
from workbench.experiments.worker.memory_use import resident_bytes
from workbench.experiments.worker.process import CANCELLED
from workbench.experiments.worker.wire.messages import Close

MB = 10**6
OFF, THREADS = Optimizations(), Optimizations(inter_op_threads=2)
GRAPH = Program(name="mine", build=lambda optimizations: Built(train_op=None))
FUNCTION = FunctionProgram(name="mine", make=lambda: None)
WARM = object()


class FakeWorker:
    """A process that takes 100 MB until it has a session, then 400."""

    alive: ClassVar[list[FakeWorker]] = []

    def __init__(self, label, program, warm):
        assert warm is WARM or isinstance(warm, FakeWarm)
        self.warm, self.deadline_s = warm, math.inf
        self.label, self.received, self.closes = label, 0, True
        self.alive.append(self)

    @property
    def pid(self):
        return self

    def receive(self):
        self.received += 1

    def call(self, command):
        assert self.deadline_s < math.inf
        assert command == Close(session="main")
        if not self.closes:
            raise RunError("it is gone")

    def ask_to_stop(self):
        pass

    def stop(self):
        self.kill()

    def kill(self):
        if self in self.alive:
            self.alive.remove(self)


class FakeWarm:
    """A process that imports TensorFlow in an environment, 300 MB."""

    alive: ClassVar[list[FakeWarm]] = []

    def __init__(self, environment):
        self.environment, self.received = environment, 0
        self.alive.append(self)

    @property
    def pid(self):
        return self

    def close(self):
        self.alive.remove(self)


@pytest.fixture(autouse=True)
def workers(monkeypatch):
    monkeypatch.setattr(FakeWorker, "alive", [])
    monkeypatch.setattr(children_module, "Worker", FakeWorker)
    monkeypatch.setattr(children_module, "warm_python", lambda: contextlib.nullcontext(WARM))
    monkeypatch.setattr(FakeWarm, "alive", [])
    monkeypatch.setattr(children_module, "WarmPython", FakeWarm)

    def resident(process):
        takes = 300 if isinstance(process, FakeWarm) else 400 if process.received else 100
        return takes * MB if process in process.alive else 0

    monkeypatch.setattr(children_module, "resident_bytes", resident)


def test_room_is_what_the_limit_leaves_for_processes_of_that_size():
    children = Children(GRAPH, WARM, 2_000 * MB)
    # before anything is known, one takes half a GB
    assert children.room() == 4
    children.lend([("off", OFF)])
    assert children.each_bytes == 500 * MB
    assert children.room() == 4
    assert children.each_bytes == 400 * MB and children.peak_bytes == 400 * MB
    children.lend([("a", OFF), ("b", OFF)])
    assert children.room() == 2
    children.lend([("c", OFF), ("d", OFF)])
    assert children.room() == 0 and not children.over_limit
    assert children.peak_bytes == 2_000 * MB


def test_those_that_are_started_ahead_count_with_what_they_will_take():
    children = Children(GRAPH, WARM, 2_000 * MB)
    children.lend([("off", OFF)])
    children.start_ahead(2)
    # two are there, and two more fit: not seven of what they take now
    assert children.room() == 4
    assert children.to_start(3) == 1
    first, second, third = children.lend([("a", OFF), ("b", OFF), ("c", OFF)])
    assert [each.received for each in (first, second, third)] == [1, 1, 1]
    assert len(FakeWorker.alive) == 4


def test_one_that_is_given_back_serves_the_next_setting():
    children = Children(GRAPH, WARM, math.inf)
    (worker,) = children.lend([("a", OFF)])
    children.give_back(worker, OFF)
    assert children.to_start(1) == 0
    assert children.lend([("b", OFF)]) == [worker]
    assert (worker.label, worker.received) == ("b", 1)
    assert children.room() == math.inf


NO_GRAPPLER = Optimizations(chosen=(wb.toggles.GRAPPLER.at("off"),))


@pytest.mark.parametrize(
    ("program", "setting"), [(GRAPH, THREADS), (GRAPH, NO_GRAPPLER), (FUNCTION, OFF)]
)
def test_threads_choices_and_functions_have_a_process_of_their_own(program, setting):
    children = Children(program, WARM, math.inf)
    (worker,) = children.lend([("a", setting)])
    children.give_back(worker, setting)
    assert FakeWorker.alive == []


def test_settings_with_threads_take_no_used_process():
    children = Children(GRAPH, WARM, math.inf)
    (used,) = children.lend([("a", OFF)])
    children.give_back(used, OFF)
    threads, off = children.lend([("threads", THREADS), ("off", OFF)])
    assert off is used and threads is not used


NO_ONEDNN = Optimizations(chosen=(wb.toggles.ONEDNN.at("off"),))
NUMBERS = wb.toggles.EnvironmentToggle("A", list("012345"))


def test_an_environment_has_a_process_of_its_own_that_is_used_again():
    children = Children(GRAPH, WARM, math.inf)
    children.start_ahead(1)
    off, other = children.lend([("off", OFF), ("no oneDNN", NO_ONEDNN)])
    assert off.warm is WARM and other.warm.environment == {"TF_ENABLE_ONEDNN_OPTS": "0"}
    children.give_back(other, NO_ONEDNN)
    (again,) = children.lend([("no oneDNN", NO_ONEDNN)])
    assert again is not other and again.warm is other.warm
    assert children.look() == (2 * 400 + 300) * MB
    children.kill()
    assert FakeWarm.alive == [] and FakeWorker.alive == []


def test_the_baselines_environment_is_that_of_all_others():
    usual, second = (Optimizations(chosen=(NUMBERS.at(each),)) for each in "01")
    with children_of(GRAPH, math.inf, {"A": "0"}) as children:
        (base,) = children.lend([("off", usual)])
        assert base.warm.environment == {"A": "0"}
        assert children.is_at_home(usual) and not children.is_at_home(second)
    assert FakeWarm.alive == []


def test_environments_are_few_and_need_time_and_memory():
    children = Children(GRAPH, WARM, math.inf)
    settings = [Optimizations(chosen=(NUMBERS.at(each),)) for each in "01234"]
    assert children.unready(OFF, 0.0) == children.unready(settings[0], 60.0) == ""
    assert "too little time was left" in children.unready(settings[0], 1.0)
    children.lend([("a number", each) for each in settings[:4]])
    assert "there are 4 already" in children.unready(settings[4], 60.0)
    assert children.unready(settings[0], 1.0) == ""
    small = Children(GRAPH, WARM, 800 * MB)
    assert "about 0.4 GB, for which there is no memory" in small.unready(settings[0], 60.0)


def test_one_that_cannot_be_closed_ends():
    children = Children(GRAPH, WARM, math.inf)
    (worker,) = children.lend([("a", OFF)])
    worker.closes = False
    children.give_back(worker, OFF)
    assert FakeWorker.alive == []


def test_too_much_memory_is_noticed():
    children = Children(GRAPH, WARM, 700 * MB)
    children.lend([("off", OFF), ("a", OFF)])
    assert children.over_limit and children.room() == 0


def test_none_is_left_after_the_block_and_ctrl_c_says_so():
    with children_of(GRAPH, math.inf) as children:
        children.lend([("a", OFF)])
        children.start_ahead(2)
        children.end_idle()
        assert len(FakeWorker.alive) == 1
    assert FakeWorker.alive == []
    with (
        pytest.raises(KeyboardInterrupt) as caught,
        children_of(GRAPH, math.inf) as children,
    ):
        children.lend([("a", OFF)])
        raise KeyboardInterrupt
    assert str(caught.value) == CANCELLED and FakeWorker.alive == []


def test_memory_is_that_of_the_process():
    assert resident_bytes(os.getpid()) > MB
    assert resident_bytes(2**31 - 1) == 0

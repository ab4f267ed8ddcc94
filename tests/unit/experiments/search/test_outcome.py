"""Which setting wins once the race is over; no process is started."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from tests.builders.opened import OPENED
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import RunError
from workbench.experiments.comparison import summary as summary_module
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.program import Built, Program
from workbench.experiments.program.variant import Variant
from workbench.experiments.search import outcome
from workbench.experiments.search.contenders import Contender
from workbench.experiments.search.outcome import best_of, chosen_winner
from workbench.experiments.search.racing.refused import Refused
from workbench.experiments.search.search import Search

OFF = Optimizations()
STAGE = Optimizations(stage=StageOptions())
SMART = Optimizations(smart_stage=SmartStageOptions())
FUSED = Optimizations(fused_embeddings="v2")
PROGRAM = Program(name="mine", build=lambda optimizations: Built(train_op=None))
RATES = {"off": 100.0, "stage": 120.0, "smart stage": 150.0, "fused V2": 90.0}


class FakeRacers:
    """Racers whose sessions are open by name."""

    def __init__(self, running, refuses=()):
        self.ever = {label: self.made(label) for label in RATES}
        self.running, self.refuses, self.entered = set(running), refuses, []
        self.memory = dict.fromkeys(RATES, 500)

    @staticmethod
    def made(label):
        setting = {"off": OFF, "stage": STAGE, "smart stage": SMART, "fused V2": FUSED}[label]
        return SimpleNamespace(
            variant=Variant(label=label, optimizations=setting),
            step_ns=1e7,
            steps=20,
            dropped=3,
            step_times=[np.full(5, 1e7)],
            opened=OPENED,
        )

    def runs(self, label):
        return label in self.running

    def racer(self, label):
        assert label in self.running
        return self.ever[label]

    def enter(self, labels, settings):
        self.entered += labels
        refused = [
            Refused(label=each, reason="found two inputs", holds_for=lambda other: False)
            for each in labels
            if each in self.refuses
        ]
        self.running |= set(labels) - set(self.refuses)
        return refused

    def keep_only(self, labels):
        self.running = set(labels)


@pytest.fixture
def raced():
    """A search in which all ran six rounds; a smart stage was the fastest."""
    search = Search(OFF, [Contender(optimizations=each) for each in (STAGE, SMART, FUSED)])
    search.next_in(3)
    for number in range(6):
        at = 1 + 0.01 * (-1) ** number
        search.dropped_s |= dict.fromkeys(
            (each.label for each in search.feed({n: RATES[n] * at for n in search.race.racing})),
            number * 10.0,
        )
    search.end()
    assert search.race.racing == ("off", "smart stage")
    return search


def check(label, passed):
    return Equivalence(
        label=label, kind="equal losses", passed=passed, steps=9, detail="differ from step 3 on"
    )


@pytest.fixture
def won(raced, monkeypatch):
    monkeypatch.setattr(outcome, "traced_pair", lambda *_: {})
    monkeypatch.setattr(summary_module, "environment", lambda opened: {})

    def choose(same, refuses=()):
        racers = FakeRacers({"off", "smart stage"}, refuses)

        def checked(program, base, racer, seconds, progress):
            label = racer.variant.label
            if isinstance(same.get(label), Exception):
                raise same[label]
            if isinstance(same.get(label), Equivalence):
                return [same[label]]
            return [check(label, same[label])] if label in same else []

        monkeypatch.setattr(outcome, "checked", checked)
        winner = chosen_winner(
            PROGRAM, raced, racers, TimeBudget(60.0), trace_steps=0, progress=Progress(False)
        )
        found = best_of(
            PROGRAM, raced, racers, winner, notes=["Predicted."], seed=0, command=None,
            budget_s=60.0, took_s=50.0, memory_limit_bytes=None, memory_bytes=1500,
        )  # fmt: skip
        return found, racers

    return choose


def test_the_fastest_that_trains_the_same_wins(won):
    found, racers = won({"smart stage": True})
    assert found.label == "smart stage" and found.ratio == pytest.approx(1.5)
    assert [each.label for each in found.runners_up] == ["stage", "fused V2"]
    assert racers.entered == [] and found.notes == ("Predicted.",)
    assert [v.label for v in found.comparison.variants] == [
        "off", "smart stage", "stage", "fused V2",
    ]  # fmt: skip
    assert [c.label for c in found.comparison.equivalence] == ["smart stage"]
    assert found.comparison.command == found.comparison.command.strip()
    assert found.comparison.command.startswith("import workbench as wb")
    assert found.runners_up[0].reason.startswith("slower: 0.80× of smart stage")
    assert found.runners_up[0].dropped_s is not None and found.best.dropped_s is None


def test_one_that_trains_otherwise_is_not_chosen_and_the_next_one_is_checked(won):
    found, racers = won({"smart stage": False, "stage": True})
    assert found.label == "stage" and racers.entered == ["stage"]
    assert found.runners_up[0].label == "smart stage"
    assert found.runners_up[0].reason == (
        "it does not train the same: equal losses: differ from step 3 on"
    )
    assert found.notes[1] == (
        "Smart stage was not chosen: it does not train the same: equal losses: differ from step 3 "
        "on."
    )


def test_where_none_trains_the_same_the_baseline_stays(won):
    found, _ = won({"smart stage": RunError("no memory")}, refuses=("stage",))
    assert found.optimizations == OFF and found.ratio == 1.0
    assert [note.partition(" was not chosen: ")[2] for note in found.notes[1:]] == [
        "it could not be checked: no memory.",
        "found two inputs.",
    ]
    assert [v.label for v in found.comparison.variants] == [
        "off", "smart stage", "stage", "fused V2",
    ]  # fmt: skip


def test_what_could_not_be_compared_is_said(won):
    found, _ = won({})
    assert found.label == "smart stage"
    assert found.notes[-1].startswith(
        "Whether it trains the same could not be checked: the program"
    )


def test_what_never_ran_is_not_measured(raced, won):
    raced.left_out["inline executor"] = "the time was up before it was its turn"
    raced.add([Contender(optimizations=Optimizations(executor="inline"))])
    found, _ = won({"smart stage": True})
    assert [(each.label, each.reason) for each in found.not_measured] == [
        ("inline executor", "the time was up before it was its turn")
    ]
    assert found.rounds == 6 and found.took_s == 50.0


def asked_check(label, losses, baseline=(3.0, 2.0)):
    return dataclasses.replace(
        check(label, False), toggles="dim 32 beside dim 16", losses=losses, baseline_losses=baseline
    )


def test_another_training_that_was_asked_for_wins(won):
    found, _ = won({"smart stage": asked_check("smart stage", (5.0, 1.0))})
    assert found.label == "smart stage" and found.notes == ("Predicted.",)


def test_one_whose_loss_is_no_number_is_not_chosen(won):
    lost = asked_check("smart stage", (5.0, float("nan")))
    found, _ = won({"smart stage": lost, "stage": True})
    assert found.label == "stage"
    assert found.notes[1] == "Smart stage was not chosen: its loss is nan from step 2 on."
    # Nor is the baseline's: then it says nothing of the setting.
    both = asked_check("smart stage", (5.0, float("nan")), (5.0, float("inf")))
    assert won({"smart stage": both})[0].label == "smart stage"

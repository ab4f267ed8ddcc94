"""What a search tries: choices one by one on the best setting, and none that is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.builders.examples import few
from tests.builders.predictions import predicted
from tests.unit.experiments.search.simulated import SimulatedField, searched
from tests.unit.experiments.search.test_search import EFFECTS, true_rates, with_predictions
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import OptionError
from workbench.experiments.program.refusals import refusal_of
from workbench.experiments.program.variant import other_training
from workbench.experiments.search.contenders import Contender
from workbench.experiments.search.racing.refused import Refused, has_choices_of
from workbench.experiments.search.search import Search
from workbench.experiments.search.space import search_space

OFF, OPTIONS = Optimizations(), (StageOptions(), SmartStageOptions())
GRAPH = wb.Program(name="mine", build=lambda optimizations: None)
FUNCTION = wb.FunctionProgram(name="mine", make=lambda **named: None)
DIM = wb.Toggle("dim", [16, 32, 64], training="same")
WIDTH = wb.Toggle("width", [1, 2])
XLA, GRAPPLER = wb.toggles.XLA, wb.toggles.GRAPPLER
CLUSTERS, NO_GRAPPLER = XLA.at("clusters"), GRAPPLER.at("off")


def space_of(*toggles, baseline=OFF, allowed=False):
    return search_space(toggles or None, *OPTIONS, baseline, allow_another_training=allowed)


def tried(space):
    """The toggles whose choices are tried, in their order."""
    return [*dict.fromkeys(choice.toggle for choice in space.choices)]


def labels(contenders):
    """Of those that the program can have."""
    return [each.label for each in contenders if not each.refusal]


@pytest.fixture(autouse=True)
def with_executors(monkeypatch):
    monkeypatch.setattr("workbench._native.require_executors", lambda what: None)


class TestWhatIsSearched:
    def test_without_toggles_it_is_workbenchs_and_tensorflows_that_keep_the_training(self):
        space = space_of()
        assert len(space.settings) == 44 and space.baseline == OFF
        assert {*space.choices} == {
            choice
            for toggle in wb.toggles.STOCK
            for choice in map(toggle.at, toggle.choices)
            if choice.is_usual or choice.training != wb.toggles.Training.ANOTHER
        }
        assert [note.partition(",")[0] for note in space.notes] == [
            "Not tried: tf.data not deterministic",
            "Not tried: precision bfloat16",
        ]
        assert all("allow_another_training=True lets it be tried." in note for note in space.notes)
        allowed = space_of(allowed=True)
        assert wb.toggles.PRECISION.at("bfloat16") in allowed.choices and allowed.notes == ()

    def test_an_authors_toggles_alone_come_beside_all_these(self):
        space = space_of(DIM)
        assert tried(space) == [DIM, *tried(space_of())]
        assert space.baseline["dim"] == 16 and all(each["dim"] for each in space.settings)
        assert len(space.settings) == 46

    def test_beside_names_they_are_all_that_is_searched(self):
        space = space_of("stage", DIM, GRAPPLER)
        assert [each.label() for each in space.settings] == [
            "stage", "dim 32", "dim 64", "Grappler off", "Grappler no memory optimizer",
        ]  # fmt: skip
        assert tried(space) == [DIM, GRAPPLER]

    def test_joined_names_and_settings_may_have_choices(self):
        own = Optimizations(chosen=(DIM.at(64),), fused_embeddings="v2")
        space = space_of("stage+dim=32", own, DIM)
        assert [each.label() for each in space.settings] == [
            "stage + dim 32", "dim 32", "dim 64", "fused V2 + dim 64",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("toggles", "words"),
        [
            ([WIDTH], r"'width 2' trains another way \(width 2 beside width 1\)"),
            ([wb.toggles.PRECISION], "'precision bfloat16' trains another way"),
            (["precision=bfloat16+stage"], "allow_another_training=True lets it choose this one"),
            ([wb.Toggle("xla", [0, 1])], "another toggle is named 'xla'"),
            ([DIM, wb.Toggle("dim", [1, 2])], "another toggle is named 'dim'"),
            (
                [wb.Toggle("jit", ["off", "clusters"], label="XLA", training="same")],
                "two choices are both called 'XLA off'",
            ),
        ],
    )
    def test_what_cannot_be_searched_is_one_sentence(self, toggles, words):
        with pytest.raises(OptionError, match=words):
            space_of(*toggles)

    def test_another_training_is_searched_where_that_is_allowed(self):
        assert WIDTH.at(2) in space_of(WIDTH, allowed=True).choices


class TestNeighbors:
    def test_they_differ_in_one_choice(self):
        best = Optimizations(smart_stage=SmartStageOptions())
        wide = Optimizations(chosen=(DIM.at(16),), smart_stage=SmartStageOptions())
        assert labels(space_of("smart_stage", DIM, XLA).neighbors(wide, GRAPH)) == [
            "smart stage + dim 32", "smart stage + dim 64", "smart stage + XLA clusters",
        ]  # fmt: skip
        found = {each.label: each.refusal for each in space_of().neighbors(best, GRAPH)}
        assert "smart stage + Grappler off" in found and "smart stage + precision" not in found
        assert not found["smart stage + tf.data prefetch"]
        assert "NVIDIA" in found["smart stage + GPU threads private"]

    def test_from_a_choice_the_way_leads_back_and_to_workbenchs_own(self):
        best = Optimizations(chosen=(XLA.at("clusters"),))
        found = space_of("stage", "inline_executor", XLA).neighbors(best, GRAPH)
        # Both together would be two changes.
        assert labels(found) == [
            "off", "inline executor + XLA clusters", "stage + XLA clusters",
        ]  # fmt: skip

    def test_what_the_program_cannot_have_says_why(self):
        inline = Optimizations(executor="inline")
        refused = {each.label: each.refusal for each in space_of().neighbors(inline, GRAPH)}
        words = refused["inline executor + caller thread on"]
        assert "caller thread on and an executor exclude each other" in words
        assert refused["inline executor + Grappler off"] == ""
        # It is tried without the executor instead.
        assert refused["caller thread on"] == ""
        of_function = {each.label: each.refusal for each in space_of().neighbors(OFF, FUNCTION)}
        assert "a tf.function" in of_function["XLA clusters"]


GAINS = {
    "XLA clusters": 0.06,
    "oneDNN off": 1.0,
    "Grappler off": 0.97,
    "Grappler no memory optimizer": 1.0,
    "caller thread on": 0.74,
    "freed memory given back": 0.93,
}


class Rates(dict):
    """Steps/s of settings with choices too, where effects multiply."""

    def __init__(self, effects):
        super().__init__(true_rates(effects))
        self.effects = effects

    def __missing__(self, label):
        return 100.0 * math.prod(self.effects.get(part, 1.0) for part in label.split(" + "))


def search_with(effects, *, seed=0, toggles=(), budget_s=120.0, **options):
    """A search with predictions of Workbench's own settings, and what every setting gives."""
    space, rates = space_of(*toggles), Rates({**EFFECTS, **GAINS, **effects})
    known = {each.label for each in with_predictions(true_rates())}
    contenders = [
        *with_predictions(true_rates()),
        *(
            Contender(optimizations=each)
            for each in space.settings
            if each.label(in_full=True) not in known
        ),
    ]
    field = SimulatedField(rates, seed=seed, **options)
    found = searched(
        Search(space.baseline, contenders),
        field,
        budget_s=budget_s,
        neighbors=lambda best: space.neighbors(best, GRAPH),
    )
    return found, field, rates


def test_choices_that_give_nothing_cost_nothing():
    found, field, rates = search_with({})
    assert rates[found.best] >= 0.98 * max(rates.values())
    tried = [label for label in field.order if any(part in label for part in GAINS)]
    # On one best setting each is tried once, after those that are predicted to be best.
    assert tried and field.order[:4] == [each for each in field.order[:4] if each not in tried]


def test_with_twelve_toggles_the_chosen_setting_is_within_five_percent_of_the_best():
    losses = []
    for seed in range(5):
        found, field, rates = search_with({}, seed=seed, budget_s=180.0, noise=0.04, start=6.0)
        losses.append(1 - rates[found.best] / max(rates[label] for label in true_rates()))
        assert field.now <= 180.0 + field.block * 5
    assert sum(loss <= 0.05 for loss in losses) >= 4 and np.median(losses) <= 0.02


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_choices_that_help_are_found_together(seed):
    helps = {"oneDNN off": 1.15, "caller thread on": 1.12}
    found, _, rates = search_with(helps, seed=seed)
    # The cost model executor gives 1.02, and excludes the caller's thread.
    best = rates["smart stage + fused V2 + caller thread on + oneDNN off"]
    assert rates[found.best] >= 0.98 * best


def test_what_never_ran_of_an_earlier_best_is_gone():
    def near(**fields):
        both = (Optimizations(chosen=(each,), **fields) for each in (NO_GRAPPLER, CLUSTERS))
        return [Contender(optimizations=each) for each in both]

    search = Search(OFF, [Contender(optimizations=Optimizations(stage=StageOptions()))])
    refused = Optimizations(fused_embeddings="v2", chosen=(CLUSTERS,))
    search.surround([*near(), Contender(optimizations=refused, refusal="they exclude each other")])
    assert search.left_out == {"fused V2 + XLA clusters": "they exclude each other"}
    search.next_in(3)
    search.surround(near(fused_embeddings="v1"))
    search.surround(near(executor="inline"))
    assert search.waiting == ("inline executor + Grappler off", "inline executor + XLA clusters")
    assert search.left_out == {}
    # What ran stays.
    assert search.contender("XLA clusters").optimizations == Optimizations(chosen=(CLUSTERS,))


def test_a_choice_that_failed_is_not_tried_again():
    failing = Optimizations(chosen=(CLUSTERS,))
    again = Optimizations(chosen=(CLUSTERS, NO_GRAPPLER))
    search = Search(OFF, [Contender(optimizations=failing)])
    search.next_in(1)
    search.refuse("XLA clusters", "it hung", has_choices_of(failing))
    search.add([Contender(optimizations=again), Contender(optimizations=OFF)])
    assert search.waiting == ()
    assert search.left_out == {"XLA clusters": "it hung", "Grappler off + XLA clusters": "it hung"}


def test_one_that_fails_in_the_race_takes_its_choices_with_it():
    both = (CLUSTERS, NO_GRAPPLER)
    settings = [Optimizations(chosen=both[:1]), Optimizations(chosen=both)]
    search = Search(OFF, [Contender(optimizations=settings[0])])
    search.next_in(1)
    search.add([Contender(optimizations=settings[1])])
    search.fail("XLA clusters", "it failed: stuck")
    assert search.dropped == {"XLA clusters": "it failed: stuck"}
    assert search.left_out == {"Grappler off + XLA clusters": "it failed: stuck"}


def test_what_gave_little_elsewhere_is_left_out_on_another_best():
    search = Search(OFF, [])
    fused = Optimizations(fused_embeddings="v2")
    slow = Optimizations(chosen=(XLA.at("clusters"),))
    search.add([Contender(optimizations=fused, predicted=predicted(fused, 1.2, 0.1))])
    search.add([Contender(optimizations=slow)])
    search.next_in(2)
    for number in range(6):
        at = 1 + 0.01 * (-1) ** number
        rates = {"off": 100.0, "fused V2": 120.0 * at, "XLA clusters": 20.0 / at}
        search.feed({label: rates[label] for label in search.race.racing})
    staged = Optimizations(fused_embeddings="v2", chosen=slow.chosen)
    search.surround([Contender(optimizations=staged)])
    assert search.next_in(1) == []
    assert (
        "of fused V2 at most, from what its choices gave"
        in search.left_out["fused V2 + XLA clusters"]
    )


CHOICES = st.sampled_from([
    wb.Toggle("own", [1, 2], training="same"), wb.Toggle("mine", ["a", "b", "c"]),
    wb.toggles.EnvironmentToggle("VARIABLE", ["0", "1"]), *wb.toggles.STOCK,
])  # fmt: skip
NAMES = st.sampled_from(["stage", "smart_stage", "fused_v2", "auto_fused", "inline_executor"])


@few(25)
@given(
    toggles=st.lists(st.one_of(CHOICES, NAMES), min_size=1, max_size=6, unique_by=str),
    is_function=st.booleans(),
    allowed=st.booleans(),
    best=st.integers(0, 1000),
    budget_s=st.floats(20, 120),
    refuses=st.booleans(),
)
def test_no_refused_setting_and_none_that_trains_another_way_is_ever_tried(
    toggles, is_function, allowed, best, budget_s, refuses
):
    program = FUNCTION if is_function else GRAPH
    try:
        space = space_of(*toggles, allowed=allowed)
    except OptionError:
        assert not allowed
        return
    effects = {**EFFECTS, "own 2": 1.1, "VARIABLE 1": 1.05, "mine b": 1.2}
    rates = Rates(effects)
    tried: dict[str, Optimizations] = {"off": space.baseline}

    class Field(SimulatedField):
        def enter(self, labels, settings):
            tried.update(settings)
            return super().enter(labels, settings)

    raises = Refused(label="own 2", reason="no", holds_for=has_choices_of(space.settings[0]))
    field = Field(rates, seed=best, refuses={"own 2": raises} if refuses else {})
    contenders = [
        *(each for each in space.neighbors(space.baseline, program)),
        *(Contender(optimizations=each) for each in space.settings),
    ]
    possible = [
        each
        for each in contenders
        if not refusal_of(each.optimizations, is_function=is_function)
        and not (is_function and each.optimizations.stage)
    ]
    searched(
        Search(space.baseline, possible),
        field,
        budget_s=budget_s,
        neighbors=lambda best: space.neighbors(best, program),
    )
    for setting in tried.values():
        assert refusal_of(setting, is_function=is_function) == ""
        assert not (is_function and setting.stage)
        assert allowed or other_training(setting, space.baseline) == ""

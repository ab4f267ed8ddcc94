"""The search as a state machine: who races, who is dropped, what is left out, time and memory."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.examples import few
from tests.builders.predictions import predicted
from tests.unit.experiments.search.simulated import SimulatedField, searched
from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy, SmartStageOptions, StageOptions
from workbench.experiments.search.contenders import Contender, settings_of
from workbench.experiments.search.racing.refused import Refused
from workbench.experiments.search.racing.run_search import UNLIKELY
from workbench.experiments.search.search import TIME_UP, Search

OFF = Optimizations()
ALL = settings_of(None, StageOptions(), SmartStageOptions(), OFF)
EFFECTS = {
    "stage": 1.1,
    "smart stage": 1.3,
    "fused V1": 1.12,
    "fused V2": 1.16,
    "fused grouped": 1.1,
    "auto fused": 1.1,
}
EFFECTS |= {"inline executor": 0.7, "cost model executor": 1.02}


def true_rates(effects=EFFECTS):
    """Steps/s of every setting where effects multiply."""
    labels = ["off", *(each.label(in_full=True) for each in ALL)]
    return {
        label: 100.0 * math.prod(effects.get(part, 1.0) for part in label.split(" + "))
        for label in labels
    }


def unpredicted() -> list[Contender]:
    return [Contender(optimizations=each) for each in ALL]


def with_predictions(rates, off_by=lambda label: 1.0, half=0.08) -> list[Contender]:
    return [
        Contender(
            optimizations=each,
            predicted=predicted(each, rates[label] / rates["off"] * off_by(label), half),
        )
        for each in ALL
        for label in [each.label(in_full=True)]
    ]


def loss(search: Search, rates) -> float:
    return 1 - rates[search.best] / max(rates.values())


def test_with_predictions_the_best_is_found_and_most_are_never_run():
    rates = true_rates()
    field = SimulatedField(rates)
    found = searched(Search(OFF, with_predictions(rates)), field)
    assert loss(found, rates) <= 0.02
    # the first wave is what is predicted to be best
    first = sorted(ALL, key=lambda each: -rates[each.label(in_full=True)])[:4]
    assert set(field.order[:4]) == {each.label(in_full=True) for each in first}
    hopeless = [why for why in found.left_out.values() if why.startswith("expected to give")]
    assert len(hopeless) >= 12
    assert "from its prediction and what was measured since" in hopeless[0]
    assert field.running == [] or field.running == [found.best]
    assert set(found.left_out) | set(found.race.entered) == set(rates)


def test_without_predictions_each_toggle_alone_comes_first_then_combinations_of_what_gave_most():
    rates = true_rates()
    field = SimulatedField(rates, most=3)
    found = searched(Search(OFF, unpredicted()), field, budget_s=400.0)
    # one of them alone is usually slower, and comes later
    fused = {"fused V1", "fused V2", "fused grouped", "auto fused"}
    assert set(field.order[:7]) == {"stage", "smart stage", "cost model executor"} | fused
    assert set(field.order[7:9]) <= {
        "smart stage + fused V2",
        "smart stage + fused V1",
        "smart stage + fused V2 + cost model executor",
        "smart stage + fused V1 + cost model executor",
    }
    assert loss(found, rates) <= 0.02


def test_losers_are_dropped_after_few_rounds():
    rates = true_rates()
    field = SimulatedField(rates, noise=0.01)
    # Predicted too vaguely to leave any out: the best is there from the first round on.
    found = searched(Search(OFF, with_predictions(rates, half=0.9)), field, budget_s=2000.0)
    slow = [label for label in found.dropped if rates[label] < 0.9 * max(rates.values())]
    assert len(slow) >= 15
    assert all(field.ran[label] <= 9 for label in slow)
    assert all(found.dropped_s[label] < 2000 for label in found.dropped)


def test_effects_that_were_measured_correct_what_is_predicted_of_combinations():
    effects = EFFECTS | {
        "fused V1": 0.8,
        "fused V2": 0.82,
        "fused grouped": 0.81,
        "auto fused": 0.81,
    }
    rates = true_rates(effects)
    # predicted as good, measured bad: those with fused lookups that wait move to the end
    contenders = with_predictions(
        rates, off_by=lambda label: 1.35 if "fused" in label else 1.0, half=0.3
    )
    field = SimulatedField(rates, noise=0.005)
    found = searched(Search(OFF, contenders), field, budget_s=300.0)
    assert "fused" in field.order[0]
    assert loss(found, rates) <= 0.02
    assert len(field.order) < len(ALL)


def test_the_time_is_kept_and_what_it_did_not_reach_is_said():
    rates = true_rates()
    field = SimulatedField(rates, noise=0.05)
    found = searched(Search(OFF, unpredicted()), field, budget_s=40.0, reserve_s=8.0)
    assert field.now <= 40.0
    assert TIME_UP in found.left_out.values()
    assert set(found.left_out) | set(found.race.entered) == set(rates)


def test_a_budget_that_is_too_short_measures_one_setting_all_the_same():
    rates = true_rates()
    field = SimulatedField(rates)
    found = searched(Search(OFF, unpredicted()), field, budget_s=1.0)
    assert len(field.order) == 1 and found.race.rounds >= 4
    assert found.race.interval(field.order[0], "off").high < math.inf


def test_memory_decides_how_many_race():
    rates = true_rates()
    field = SimulatedField(rates, most=2)
    found = searched(Search(OFF, with_predictions(rates)), field, budget_s=300.0)
    assert field.most_seen == 2
    assert loss(found, rates) <= 0.02
    crowded = SimulatedField(rates, too_much=True)
    found = searched(Search(OFF, unpredicted()), crowded, budget_s=90.0)
    assert "too much memory" in found.dropped.values()
    assert len(crowded.running) == 1


def test_where_blocks_scatter_too_much_to_decide_places_are_given_to_others():
    rates = true_rates(dict.fromkeys(EFFECTS, 1.0))
    field = SimulatedField(rates, noise=0.2, most=2, start=1.0)
    found = searched(Search(OFF, unpredicted()), field, budget_s=300.0)
    unlikely = [label for label, reason in found.dropped.items() if reason == UNLIKELY]
    assert len(unlikely) >= 5 and len(field.order) >= 7
    assert all(field.ran[label] >= 3 for label in unlikely)
    assert found.best not in unlikely


def test_a_racer_gives_its_place_only_to_one_that_is_likelier_to_be_the_fastest():
    rates = true_rates()
    both = [each for each in ALL if each.label(in_full=True) in ("fused V1", "fused V2", "stage")]
    expected = {"fused V1": 1.5, "fused V2": 1.4, "stage": 0.8}
    search = Search(
        OFF,
        [
            Contender(optimizations=each, predicted=predicted(each, expected[label], 0.5))
            for each in both
            for label in [each.label(in_full=True)]
        ],
    )
    assert search.next_in(2) == ["fused V1", "fused V2"]
    for _ in range(3):
        search.feed({label: rates[label] for label in search.race.racing})
    assert search.best == "fused V2"
    # V1 came out behind, but nothing speaks for the stage.
    assert search.unlikely(2) == []
    added = Optimizations(fused_embeddings="grouped")
    likely = Contender(optimizations=added, predicted=predicted(added, 1.3, 0.5))
    search.add([likely])
    assert search.unlikely(2) == ["fused V1"]
    assert search.next_in(1) == ["fused grouped"]


def test_the_best_is_not_simply_the_one_that_was_lucky():
    v1, v2 = (Optimizations(fused_embeddings=version) for version in ("v1", "v2"))
    both = [Contender(optimizations=v1, predicted=predicted(v1, 1.3, 0.1))]
    both.append(Contender(optimizations=v2, predicted=predicted(v2, 1.1, 0.1)))
    search = Search(OFF, both)
    search.next_in(2)
    for scatter in (0.8, 1.0, 1.3):
        search.feed({"off": 1.0, "fused V1": 1.2 / scatter, "fused V2": 1.21 * scatter})
    assert search.race.best == "fused V2"
    assert search.best == "fused V1"


def test_a_refusal_holds_for_all_that_it_says():
    rates = true_rates()
    why = "the program builds no embedding lookup through Workbench"
    refused = Refused(
        label="fused V2", reason=why, holds_for=lambda other: bool(other.fused_embeddings)
    )
    field = SimulatedField(rates, refuses={"fused V2": refused}, most=2)
    found = searched(Search(OFF, unpredicted()), field, budget_s=500.0)
    fused = {label for label in rates if "fused" in label and label not in field.ran}
    assert fused <= {label for label, reason in found.left_out.items() if reason == why}
    assert "fused V2" not in field.ran
    assert len(fused) >= 15


def test_one_that_fails_is_out_and_the_others_go_on():
    rates = true_rates()
    best = "smart stage + fused V2 + cost model executor"
    field = SimulatedField(rates, fails={best: 2})
    found = searched(Search(OFF, with_predictions(rates)), field)
    assert found.dropped[best] == "it failed: out of luck"
    assert found.best != best and loss(found, rates) <= 0.05


def test_the_best_is_refined_once_the_others_are_known():
    rates = true_rates()
    asked = []
    two = Optimizations(smart_stage=SmartStageOptions(capacity=4), fused_embeddings="v2")
    rates[two.label(in_full=True)] = 1.2 * max(rates.values())

    def refine(best):
        asked.append(best)
        return [Contender(optimizations=two), Contender(optimizations=best)]

    field = SimulatedField(rates, noise=0.005)
    found = searched(Search(OFF, with_predictions(rates)), field, budget_s=400.0, refine=refine)
    assert len(asked) == 1
    assert found.best == two.label(in_full=True)


def test_where_nothing_is_faster_the_baseline_is_the_best():
    rates = true_rates(dict.fromkeys(EFFECTS, 0.9))
    found = searched(Search(OFF, with_predictions(rates)), SimulatedField(rates), budget_s=200.0)
    assert found.best == "off"


LEVELS = st.floats(min_value=-0.15, max_value=0.25)


@few(15)
@given(
    effects=st.fixed_dictionaries(dict.fromkeys(EFFECTS, LEVELS)),
    noise=st.floats(min_value=0.002, max_value=0.03),
    drift=st.floats(min_value=-0.01, max_value=0.01),
    most=st.integers(min_value=2, max_value=6),
    budget_s=st.floats(min_value=30, max_value=400),
    seeded=st.booleans(),
    seed=st.integers(min_value=0, max_value=10**6),
)
def test_time_memory_and_every_setting_are_accounted_for(
    effects, noise, drift, most, budget_s, seeded, seed
):
    rates = true_rates({name: math.exp(each) for name, each in effects.items()})
    contenders = with_predictions(rates) if seeded else unpredicted()
    field = SimulatedField(rates, noise=noise, drift=drift, most=most, seed=seed)
    found = searched(Search(OFF, contenders), field, budget_s=budget_s)
    assert field.now <= budget_s + field.block * (most + 1)
    assert field.most_seen <= most
    assert set(found.race.entered).isdisjoint(found.left_out)
    assert set(found.left_out) | set(found.race.entered) == set(rates)
    rest = set(found.race.entered) - set(found.dropped) - {"off", found.best}
    assert rest == set() and found.best not in found.dropped


@pytest.mark.parametrize(
    ("drift", "count"),
    [(0.004, 40), *(pytest.param(each, 100, marks=pytest.mark.slow) for each in (0.0, 0.004))],
)
def test_the_winner_is_within_two_percent_in_95_of_100_simulated_searches(drift, count):
    losses = []
    for seed in range(count):
        logs = zip(EFFECTS, _normal(seed, len(EFFECTS)), strict=True)
        effects = {name: math.exp(log) for name, log in logs}
        rates = true_rates(effects)
        errors = dict(zip(rates, _normal(10_000 + seed, len(rates)), strict=True))
        contenders = with_predictions(rates, lambda label: math.exp(0.4 * errors[label]))  # noqa: B023
        field = SimulatedField(rates, noise=0.02, drift=drift, seed=seed)
        losses.append(loss(searched(Search(OFF, contenders), field, budget_s=120.0), rates))
    assert sum(each <= 0.02 for each in losses) >= 0.95 * count


def _normal(seed: int, count: int):
    import numpy as np

    return np.random.default_rng(seed).normal(0.02, 0.1, count)


def test_all_combinations_are_searched():
    assert len(ALL) == 44
    labels = {each.label(in_full=True) for each in ALL}
    stages = ("", "stage", "smart stage")
    fused = ("", "fused V1", "fused V2", "fused grouped", "auto fused")
    executors = ("", "inline executor", "cost model executor")
    expected = {
        " + ".join(filter(None, parts)) for parts in itertools.product(stages, fused, executors)
    }
    assert labels == expected - {""}
    assert ALL[0].executor == ExecutorPolicy.INLINE

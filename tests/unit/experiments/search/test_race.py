"""Who is out after a round, against known rates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.experiments.search.racing.race import FEWEST_ROUNDS, Race

WAVE = (1.0, 1.01, 0.99, 1.005, 0.995, 1.0)


def fed(race: Race, rounds: int, **rates: float):
    """Feeds rounds in which all but the baseline scatter by a known wave; returns who was out."""
    out = []
    for number in range(rounds):
        at = WAVE[number % len(WAVE)]
        given = {name: rate * (1 if name == "off" else at) for name, rate in rates.items()}
        out += race.feed({name: given[name] for name in race.racing})
    return out


def test_a_clear_loser_is_out_early_and_the_reason_says_against_whom():
    race = Race("off")
    race.enter("fast")
    race.enter("slow")
    out = fed(race, 5, off=100.0, fast=130.0, slow=90.0)
    assert [each.label for each in out] == ["slow"]
    assert out[0].reason.startswith("slower: 0.69× of fast (0.69–0.69)")
    assert race.racing == ("off", "fast") and race.best == "fast"
    assert set(race.entered) == {"off", "fast", "slow"}


def test_one_that_is_as_fast_gives_its_place_to_others():
    race = Race("off")
    race.enter("one")
    race.enter("two")
    out = fed(race, 6, off=100.0, one=130.0, two=130.5)
    # the slower of two that are nearly the same: the other is not 1 % better than it can be
    assert [each.label for each in out] == ["one"]
    assert "slower: 1.00× of two" in out[0].reason
    alike = Race("off")
    for label in ("one", "two"):
        alike.enter(label)
    generator = np.random.default_rng(1)
    while len(alike.racing) > 2 and alike.rounds < 200:
        noise = np.exp(generator.normal(0, 0.01, 3))
        given = dict(zip(("off", "one", "two"), (100.0, 130.0, 130.0) * noise, strict=True))
        out = alike.feed({name: given[name] for name in alike.racing})
    assert alike.rounds < 200
    assert "no more than" in out[0].reason and " % faster than " in out[0].reason.replace(
        "\u00a0", " "
    )


def test_the_baseline_stays_and_may_be_the_best():
    race = Race("off")
    race.enter("slow")
    out = fed(race, FEWEST_ROUNDS, off=100.0, slow=80.0)
    assert [each.label for each in out] == ["slow"]
    assert race.best == "off" and race.racing == ("off",)
    assert race.settled


def test_a_race_is_settled_when_the_baseline_is_beaten_and_nobody_else_runs():
    race = Race("off")
    assert not race.settled
    race.enter("fast")
    fed(race, FEWEST_ROUNDS - 1, off=100.0, fast=150.0)
    assert not race.settled
    fed(race, 1, off=100.0, fast=150.0)
    assert race.settled


def test_rates_are_paired_with_the_baseline_of_the_same_rounds():
    race = Race("off")
    race.feed({"off": 50.0})
    race.enter("late")
    race.feed({"off": 100.0, "late": 110.0})
    race.leave("late")
    race.feed({"off": 70.0})
    own, base = race.rates("late")
    assert (own, base) == (pytest.approx((110.0,)), pytest.approx((100.0,)))
    assert race.mean_log("late") == pytest.approx(math.log(1.1))
    assert race.rounds == 3


def test_one_that_has_not_run_has_no_ratio():
    race = Race("off")
    race.enter("new")
    assert math.isnan(race.mean_log("new"))
    assert race.best == "off"
    assert race.interval("new", "off").high == math.inf

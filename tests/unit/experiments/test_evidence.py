"""What blocks say while more of them run: intervals that hold at every look, and when to stop."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.experiments.measurement.evidence import (
    evidence_of,
    is_clear,
    paired_ratio,
    rate_interval,
)
from workbench.experiments.measurement.statistics import Interval, ratio_interval


def test_rounds_are_paired_and_an_unfinished_one_does_not_count():
    rates = {"off": [10.0, 11.0, 12.0], "stage": [20.0, 22.0]}
    (said,) = evidence_of(rates, {"stage": 1.0}, rounds=6)
    assert said.ratios == (2.0, 2.0) and said.rounds == 6
    # of two rounds nothing is excluded
    assert (said.interval.low, said.interval.high) == (0.0, math.inf)
    assert not said.is_clear and not said.final


def test_samples_count_where_batches_differ_in_size():
    (said,) = evidence_of({"off": [10.0] * 4, "big": [6.0] * 4}, {"big": 2.0}, rounds=4)
    assert said.ratios == (1.2,) * 4
    assert said.interval.value == pytest.approx(1.2)


def test_a_variant_without_a_block_says_nothing():
    assert evidence_of({"off": [10.0], "stage": []}, {"stage": 1.0}, rounds=6) == ()


@pytest.mark.parametrize(
    ("low", "high", "clear"),
    [
        (1.001, 1.5, True),
        (0.5, 0.99, True),
        (0.995, 1.004, True),
        (0.98, 1.004, False),
        (0.9, 1.2, False),
        (0.0, math.inf, False),
    ],
)
def test_clear_is_faster_slower_or_no_different_by_a_hundredth(low, high, clear):
    assert is_clear(Interval(value=1.0, low=low, high=high)) is clear


def test_intervals_of_a_fixed_number_of_rounds_are_those_of_the_bootstrap():
    rates, others = [10.0, 11.0, 10.5, 11.5], [9.0, 9.5, 9.2, 9.8]
    assert paired_ratio(rates, others, 2.0, seed=3) == ratio_interval(rates, others, 3).scaled(2.0)
    wide = paired_ratio(rates, others, anytime=True)
    narrow = paired_ratio(rates, others)
    assert wide.value == pytest.approx(narrow.value)
    assert wide.low < narrow.low and wide.high > narrow.high
    assert rate_interval(rates, anytime=True).high > rate_interval(rates).high


def test_stopping_when_clear_errs_no_more_often_than_it_says():
    """Equal settings, looked at after every second round: seldom called different."""
    draws = np.random.default_rng(0).normal(0.0, 0.03, (600, 40))
    wrong = 0
    for logs in draws:
        for count in range(4, 41, 2):
            interval = paired_ratio(np.exp(logs[:count]), np.ones(count), anytime=True)
            if interval.low > 1 or interval.high < 1:
                wrong += 1
                break
    # 5 % are promised; of 600 more than 46 would come by chance once in ten thousand times
    assert wrong <= 46
    print(f"\n{wrong} of 600 searches of nothing were called clear")


def test_a_look_at_usual_intervals_would_err_more_often():
    """That the usual interval may not be looked at again and again is why there is another one."""
    draws = np.random.default_rng(0).normal(0.0, 0.03, (200, 40))
    wrong = sum(
        any(
            not interval.low <= 1 <= interval.high
            for interval in (
                paired_ratio(np.exp(logs[:count]), np.ones(count)) for count in range(4, 41, 4)
            )
        )
        for logs in draws
    )
    assert wrong > 20

"""Intervals that hold at every look."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.experiments.measurement.anytime_interval import (
    anytime_half_width,
    anytime_interval,
)


def bayes_factor(t: float, count: int, variance: float) -> float:
    """As the docstring of `anytime_half_width` has it."""
    k = 1 + count * variance
    inner = (1 + t**2 / (count - 1)) / (1 + t**2 / (k * (count - 1)))
    return k**-0.5 * inner ** (count / 2)


@pytest.mark.parametrize("count", [4, 6, 10, 40])
@pytest.mark.parametrize("error", [0.05, 0.01])
def test_at_its_end_the_bayes_factor_is_one_over_the_error(count, error):
    half = anytime_half_width(count, 2.0, error)
    t = half / (2.0 / math.sqrt(count))
    assert bayes_factor(t, count, 30.0) == pytest.approx(1 / error)


def test_it_needs_some_values_and_narrows_with_more():
    assert anytime_half_width(2, 1.0, 0.05) == math.inf
    halves = [anytime_half_width(count, 1.0, 0.05) for count in (4, 8, 16, 32, 64)]
    assert halves == sorted(halves, reverse=True) and halves[-1] < 0.6
    # wider than Student's, which holds at one look only: 2.57 of 6 values
    assert anytime_half_width(6, 1.0, 0.05) * math.sqrt(6) > 2.57
    assert anytime_half_width(6, 1.0, 0.01) > anytime_half_width(6, 1.0, 0.05)


def test_ratios_come_from_logarithms():
    found = anytime_interval([math.log(1.2)] * 5, 0.05)
    assert (found.value, found.low, found.high) == pytest.approx((1.2, 1.2, 1.2))
    assert anytime_interval([], 0.05).high == math.inf
    alone = anytime_interval([0.0], 0.05)
    assert (alone.value, alone.low, alone.high) == (1.0, 0.0, math.inf)


def test_looked_at_after_each_of_a_hundred_blocks_it_errs_as_seldom_as_it_says():
    generator = np.random.default_rng(7)
    missed = 0
    for _ in range(400):
        values = generator.normal(0.0, 0.02, 100)
        missed += any(
            abs(values[:n].mean()) > anytime_half_width(n, float(values[:n].std(ddof=1)), 0.05)
            for n in range(3, 101)
        )
    assert missed / 400 <= 0.06

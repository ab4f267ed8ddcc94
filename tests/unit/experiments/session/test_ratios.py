"""Ratios of runs: paired, inverse and through the baseline, by hand and for any values."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.sessions import OFF, SMART, STAGE, WIDE, measured, ratio
from workbench.core.optimizations import Optimizations
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.session.ratios import ratio_between
from workbench.experiments.session.run import Run


def runs_of(found: Comparison, *settings: Optimizations, first: int = 1) -> list[Run]:
    return [
        Run(
            number=number,
            optimizations=setting,
            comparison=found,
            variant=setting.label(in_full=True),
            started="2026-01-01T12:00:00+00:00",
        )
        for number, setting in enumerate(settings, start=first)
    ]


def between(run: Run, to: Run) -> Ratio:
    found = ratio_between(run, to)
    assert found is not None
    return found


def test_the_baseline_beside_a_run_is_what_its_comparison_says():
    found = measured([OFF, STAGE])
    off, stage = runs_of(found, OFF, STAGE)
    assert between(stage, off) == found.ratios[0]
    inverse = between(off, stage)
    assert (inverse.label, inverse.ratio, inverse.verdict) == ("off", 1 / 1.5, "slower")
    assert inverse.low == 1 / found.ratios[0].high


def test_a_run_and_the_baseline_of_an_earlier_comparison_have_the_paired_ratio():
    (off, _) = runs_of(measured([OFF, STAGE]), OFF, STAGE)
    later = measured([OFF, WIDE])
    (wide,) = runs_of(later, WIDE, first=3)
    assert between(wide, off) == dataclasses.replace(later.ratios[0], label=wide.label)


def test_a_run_and_itself_and_two_of_the_baseline_have_none():
    off, stage = runs_of(measured([OFF, STAGE]), OFF, STAGE)
    (again,) = runs_of(measured([OFF]), OFF, first=3)
    assert ratio_between(stage, stage) is None
    assert ratio_between(again, off) is None


def test_two_of_one_comparison_are_paired_round_by_round():
    # blocks that go up and down together: paired, nothing is left to vary
    found = measured([OFF, STAGE, WIDE], half=0.1)
    _, stage, wide = runs_of(found, OFF, STAGE, WIDE)
    paired = between(wide, stage)
    assert paired.ratio == pytest.approx(80 / 60)
    assert paired.high / paired.low < 1.000001
    assert paired.verdict == "faster"


def test_what_ran_in_several_groups_is_not_paired():
    found = measured([OFF, STAGE, WIDE], half=0.1, settings={"groups": 2})
    _, stage, wide = runs_of(found, OFF, STAGE, WIDE)
    apart = between(wide, stage)
    assert apart.high / apart.ratio == pytest.approx(math.exp(math.hypot(0.1, 0.1)))


def test_two_of_different_comparisons_have_the_quotient_and_both_widths():
    (stage,) = runs_of(measured([OFF, STAGE], half=0.03), STAGE)
    (smart,) = runs_of(measured([OFF, SMART], half=0.04), SMART, first=2)
    found = between(smart, stage)
    assert found.ratio == pytest.approx(70 / 60)
    assert found.low == pytest.approx(70 / 60 / math.exp(0.05))
    assert found.high == pytest.approx(70 / 60 * math.exp(0.05))
    assert (found.label, found.verdict, found.predicted) == ("smart stage", "faster", None)


def test_where_the_interval_has_no_end_there_is_no_clear_difference():
    endless = ratio("stage", 1.5, 0.1)
    endless = dataclasses.replace(endless, low=0.0, high=math.inf)
    found = measured([OFF, STAGE], ratios=(endless,))
    off, stage = runs_of(found, OFF, STAGE)
    (smart,) = runs_of(measured([OFF, SMART]), SMART, first=3)
    for a, b in ((off, stage), (smart, stage), (stage, smart)):
        assert between(a, b).verdict == "no clear difference"
        assert (between(a, b).low, between(a, b).high) == (0.0, math.inf)


logs = st.floats(-2, 2)
halves = st.floats(0, 1)


def one(number: int, log: float, low: float, high: float) -> Run:
    """A run of a comparison of its own."""
    value = math.exp(log)
    own = dataclasses.replace(
        ratio("stage", value, 0.0), low=value * math.exp(-low), high=value * math.exp(high)
    )
    (run,) = runs_of(measured([OFF, STAGE], ratios=(own,)), STAGE, first=number)
    return run


measured_runs = st.tuples(logs, halves, halves)


@given(measured_runs, measured_runs)
def test_back_and_forth_is_one(a, b):
    first, second = one(1, *a), one(2, *b)
    there, back = between(first, second), between(second, first)
    assert there.ratio * back.ratio == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)
    assert there.low <= there.ratio <= there.high


@given(measured_runs, measured_runs, measured_runs)
def test_through_a_third_run_it_is_the_same(a, b, c):
    first, second, third = (one(n, *each) for n, each in enumerate((a, b, c), start=1))
    through = between(first, second).ratio * between(second, third).ratio
    assert between(first, third).ratio == pytest.approx(through)


@given(measured_runs, measured_runs)
def test_the_interval_is_no_narrower_than_either(a, b):
    first, second = one(1, *a), one(2, *b)
    width = math.log(between(first, second).high / between(first, second).low)
    for _, low, high in (a, b):
        assert width >= max(low, high) - 1e-9

"""An axis of ratios: 1× is always on it, and no words stand on others."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.viz.predictions.ratio_axis import ratio_axis

RATIOS = st.lists(st.floats(0.01, 100), max_size=5)


@pytest.mark.parametrize(
    ("ratios", "ends", "words"),
    [
        ([], (0.95, 1.05), "0.95× 1× 1.05×"),
        ([0.8, 1.5], (0.8, 1.6), "0.8× 1× 1.2× 1.4× 1.6×"),
        ([0.9, 3.2], (0.5, 3.5), "1× 2× 3×"),
        ([1.0, 30.0], (0.0, 30.0), "1× 10× 20× 30×"),
    ],
)
def test_ticks_are_round(ratios, ends, words):
    axis = ratio_axis(ratios)
    assert (axis.low, axis.high) == pytest.approx(ends)
    assert [said for _, said in axis.ticks if said] == words.split()


def test_an_axis_of_logarithms_has_equal_ratios_as_far_apart():
    axis = ratio_axis([0.5, 8.0], logarithmic=True)
    assert axis.at(2.0) - axis.at(1.0) == pytest.approx(axis.at(4.0) - axis.at(2.0))
    assert [said for _, said in axis.ticks] == ["0.5×", "1×", "2×", "5×"]


def test_what_is_no_ratio_is_not_drawn():
    assert ratio_axis([math.inf, math.nan, -1.0]) == ratio_axis([])


@given(RATIOS, st.booleans())
def test_all_stand_on_it_in_their_order(ratios, logarithmic):
    axis = ratio_axis(ratios, logarithmic=logarithmic)
    places = [axis.at(each) for each in sorted(ratios)]
    assert places == sorted(places) and all(0 <= place <= 1 for place in places)
    assert "1×" in [said for _, said in axis.ticks]
    at = [place for place, _ in axis.ticks]
    assert at == sorted(set(at)) and all(-1e-9 <= place <= 1 + 1e-9 for place in at)

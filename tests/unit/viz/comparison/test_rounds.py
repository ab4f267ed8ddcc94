"""Rounds as points of a chart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.viz.comparison.rounds import in_points, point_words, rounds_a_point
from workbench.viz.comparison.tables import blocks_table

RATES = st.lists(st.floats(0.1, 1e4), min_size=1, max_size=300)


@given(rates=RATES)
def test_every_round_is_in_one_of_at_most_forty_points(rates):
    points = in_points(rates)
    assert len(points) <= 40
    assert len(points) * rounds_a_point(len(rates)) >= len(rates)
    assert min(rates) * 0.999 <= min(points) and max(points) <= max(rates) * 1.001


def test_few_rounds_are_points_themselves():
    assert in_points([1.0, 3.0, 2.0]) == pytest.approx((1.0, 3.0, 2.0))
    assert point_words(40) == ""
    assert point_words(41) == "means of 2 rounds"


def test_the_table_of_many_blocks_says_which_rounds_a_row_has():
    table = blocks_table([("off", [100.0] * 81), ("stage", [200.0, 50.0, 100.0] * 27)])
    assert len(table.rows) == 27
    assert table.rows[0] == ("1–3", "100.0", "100.0") and table.rows[-1][0] == "79–81"
    assert table.caption == "Steps/s of every block, means of 3 rounds, in the order they ran"
    assert [row[0] for row in blocks_table([("off", [1.0, 2.0])]).rows] == ["1", "2"]

"""The strip's bins, against counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.traces import START_NS, make_trace
from workbench.viz.style import colors
from workbench.viz.timeline.data import timeline_data
from workbench.viz.timeline.strip import STRIP_BINS, busy_in_bins, strip_columns

SPANS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 2)), min_size=1, max_size=9
)


@given(SPANS, st.integers(1, 12))
def test_each_bin_holds_what_of_the_spans_lies_in_it(
    rows: list[tuple[int, int, int]], bins: int
) -> None:
    start, length, family = np.array(rows, np.int64).T
    origin, finish = start.min(), max(start.min() + 1, (start + length).max())
    edges = origin + np.arange(bins + 1) * (finish - origin) // bins
    found = busy_in_bins(start, start + length, family, edges)
    expected = np.zeros((bins, len(colors.FAMILIES)))
    for begin, lasts, of in rows:
        for k in range(bins):
            inside = min(begin + lasts, edges[k + 1]) - max(begin, edges[k])
            expected[k, of] += max(0, inside)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("days", [1, 53, 400, 50_000])
def test_spans_of_any_distance_have_their_bins(days: int) -> None:
    """The number of a bin times 53 days leaves 64 bits."""
    length = days * 86_400 * 10**9
    events = [(START_NS, length // 4, 0, 0, 2, 1), (START_NS + length - 1, 1, 0, 0, 2, 1)]
    data = timeline_data(make_trace(events))
    columns = strip_columns(data, (START_NS, START_NS + length))
    busy = columns["stripBusy"].reshape(STRIP_BINS, -1).sum(axis=1)
    quarter = STRIP_BINS // 4
    assert (busy[:quarter] == 255).all() and (busy[quarter + 1 : -1] == 0).all()

"""The strip's bins, against counting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.viz.style import colors
from workbench.viz.timeline.strip import busy_in_bins

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

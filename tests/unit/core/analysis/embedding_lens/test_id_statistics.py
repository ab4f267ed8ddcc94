"""Statistics of sampled ids."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from workbench.core.analysis.embedding_lens.id_statistics import id_statistics


def test_counts():
    found = id_statistics([np.array([1, 1, 2, -1]), np.array([[1, 3], [4, 5]])])
    assert found.batches == 2 and found.per_batch == 3.5
    assert found.unique_share == (2 + 4) / 7 and found.seen == 5
    # The most frequent id of the first batch is 1, which the second asks for once of four times.
    assert found.top_ids == 1 and found.top_share == 0.25


def test_the_top_is_a_hundredth_of_what_was_seen():
    first = np.concatenate([np.arange(300), [7, 8, 9, 7, 8, 9]])
    found = id_statistics([first, np.array([7, 8, 9, 0])])
    assert found.top_ids == 3 and found.top_share == 0.75


def test_one_batch_has_neither_interval_nor_skew():
    found = id_statistics([np.array([1, 2])])
    assert found.per_batch_interval is found.top_share is None and found.unique_share == 1


def test_no_ids():
    found = id_statistics([np.array([-1]), np.array([], np.int64)])
    assert found.per_batch == 0 and found.seen == 0
    assert found.unique_share is found.top_share is None


@given(
    st.lists(arrays.arrays(np.int64, st.integers(0, 30), elements=st.integers(-2, 9)), min_size=1)
)
def test_shares_are_shares(batches):
    found = id_statistics(batches)
    for share in (found.unique_share, found.top_share):
        assert share is None or 0 <= share <= 1
    assert found.seen <= 10 and found.top_ids <= max(1, found.seen)


def test_the_curve_ranks_on_one_half_and_counts_on_the_other():
    # 7 is asked for three times, 8 twice, 9 once; then 7 twice, 9 once, and 5, which is new.
    found = id_statistics([np.array([7, 8, 7, 9, 8, 7]), np.array([9, 7, 5, 7])])
    assert found.skew == ((1, 0.5), (2, 0.5), (3, 0.75))


def test_the_curve_has_few_places_the_top_among_them():
    found = id_statistics([np.arange(20_000), np.arange(20_000)])
    places = [count for count, _ in found.skew]
    assert len(places) < 50 and found.top_ids in places and places[-1] == 20_000
    assert dict(found.skew)[found.top_ids] == found.top_share == 0.01
    assert id_statistics([np.array([1, 2])]).skew == ()


@given(
    st.lists(arrays.arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 9)), min_size=2)
)
def test_the_curve_only_rises(batches):
    found = id_statistics(batches)
    places, parts = zip(*found.skew, strict=True)
    assert list(places) == sorted(set(places)) and list(parts) == sorted(parts)
    assert parts[0] >= 0 and parts[-1] <= 1

"""Short names: different names stay different, and show where they differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.viz.style.short_names import told_apart, without_folders


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["clicks", "views"], ["clicks", "views"]),
        (["smart_stage_input", "smart_stage"], ["…input", "…stage"]),
        (["user_clicks_stage", "user_views_stage"], ["…clicks_stage", "…views_stage"]),
        (["a" * 20 + "1", "a" * 20 + "2"], ["aaaaaa…aaaaa1", "aaaaaa…aaaaa2"]),
        (["a" * 20 + "1" + "a" * 20, "a" * 20 + "2" + "a" * 20],
         ["1 aaaaa…aaaaa", "2 aaaaa…aaaaa"]),
        (["only_one_stage_with_a_long_name"], ["only_o…g_name"]),
        ([], []),
    ],
)  # fmt: skip
def test_the_part_that_differs_is_shown(names: list[str], short: list[str]) -> None:
    assert told_apart(names, 13) == short


@given(
    st.lists(st.text("ab_", min_size=1, max_size=30), min_size=1, max_size=9, unique=True),
    st.integers(8, 20),
)
def test_different_names_stay_different_and_fit(names: list[str], most: int) -> None:
    short = told_apart(names, most)
    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= most


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("/home/me/model/train.py:7 build", "train.py:7 build"),
        ("Cell In[3]:2 f", "Cell In[3]:2 f"),
        ("", ""),
    ],
)
def test_a_line_of_code_by_its_file_alone(source: str, short: str) -> None:
    assert without_folders(source) == short

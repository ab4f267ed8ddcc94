"""Boxes: what is alike is one, a level is a handful, nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.viz.boundary.scopes import Limits, boxes_of, folded_name, label_of

LIMITS = Limits(first=6, most=6, kept=200)


def boxes(names, limits=LIMITS, ops=None):
    return boxes_of(names, ops or ["Op"] * len(names), range(len(names)), limits)


def labels(made, places):
    return [(made[place].label, len(made[place].nodes)) for place in places]


@pytest.mark.parametrize(
    ("name", "other", "alike"),
    [
        ("tower_0/MatMul", "tower_1/MatMul", True),
        ("tower_0/MatMul", "tower_0/MatMul_1", True),
        ("C1/Where", "C26/Where", True),
        ("conv2d/kernel", "dense/kernel", False),
        ("a/b", "a/b/c", False),
    ],
)
def test_names_that_differ_in_numbers_only_are_alike(name, other, alike):
    assert (folded_name(name) == folded_name(other)) is alike


def test_a_label_spans_the_numbers():
    assert label_of(["C2/Where", "C10/Where", "C1/Where"]) == "C1…C10/Where"
    # Names come from anybody: a number may have more digits than Python converts.
    assert label_of([f"C{'9' * 5000}/Where", "C²/Where", "C07/Where", "C1/Where"]).startswith(
        "C1…C"
    )
    assert label_of(["C012/Where", "C7/Where"]) == "C7…C012/Where"
    assert label_of(["dlrm/MatMul"]) == "dlrm/MatMul"
    assert label_of(["top/MatMul", "top/MatMul_1"]) == "top/MatMul…MatMul_1"


def test_alike_scopes_are_one_box_that_opens_into_its_parts():
    names = [f"net/C{c}/{op}" for c in (1, 2, 3) for op in "abcdefgh"] + ["net/top"]
    made, first = boxes(names)
    assert labels(made, first) == [("net/C1…C3", 24), ("net/top", 1)]
    inner = made[first[0]].boxes
    # eight parts do not fit on a level of six: the last box holds the rest
    assert labels(made, inner)[:2] == [("a", 3), ("b", 3)]
    assert labels(made, inner)[-1] == ("3 more", 9)
    assert made[inner[0]].title == "net/C1…C3/a"
    rest = made[inner[-1]]
    assert labels(made, rest.boxes) == [("f", 3), ("g", 3), ("h", 3)]


def test_what_holds_one_thing_only_is_not_opened():
    made, first = boxes(["a/b/c/one", "a/b/c/two"])
    assert labels(made, first) == [("a/b/c/one", 1), ("a/b/c/two", 1)]
    assert all(not box.boxes for box in made)


def test_a_node_named_like_its_scope_is_a_box_in_it():
    made, first = boxes([f"lookup/{op}" for op in "abcdef"] + ["lookup"])
    (place,) = first
    assert len(made[place].nodes) == 7
    found = [made[p].label for p in made[place].boxes]
    assert "lookup/a" not in found
    assert "lookup" in found or any("more" in label for label in found)


def test_a_flat_graph_is_folded_by_op_type():
    names = [chr(97 + i) * 3 for i in range(20)]
    made, first = boxes(names, ops=["Mul"] * 15 + ["Add"] * 5)
    assert labels(made, first) == [("15 × Mul", 15), ("5 × Add", 5)]
    assert not made[first[0]].boxes


def test_order_is_that_of_the_graph():
    made, first = boxes(["z", "y/a", "y/b", "x"])
    assert [box[0] for box in labels(made, first)] == ["z", "y/a", "y/b", "x"]


def test_room_ends_in_boxes_that_cannot_be_opened():
    names = [f"{a}/{b}/{c}/x{d}y" for a in "abc" for b in "def" for c in "ghi" for d in "jkl"]
    made, first = boxes(names, Limits(first=3, most=3, kept=5))
    assert labels(made, first) == [("a", 27), ("b", 27), ("c", 27)]
    assert len(made) == 6
    assert not made[first[2]].boxes


parts = st.sampled_from(["a", "b", "c1", "c2", "c3", "MatMul", "MatMul_1", "x_9"])
paths = st.lists(parts, min_size=1, max_size=4).map("/".join)
graphs = st.lists(paths, min_size=1, max_size=60, unique=True)


@settings(deadline=None)
@given(names=graphs, first=st.integers(3, 9), most=st.integers(3, 12))
def test_every_level_is_a_handful_and_holds_all(names, first, most):
    ops = ["Mul" if "Mat" in name else "Add" for name in names]
    made, top = boxes_of(names, ops, range(len(names)), Limits(first=first, most=most, kept=10_000))
    assert 0 < len(top) <= first
    everything = np.sort(np.concatenate([made[place].nodes for place in top]))
    assert everything.tolist() == list(range(len(names)))
    for box in made:
        assert len(box.boxes) <= most
        if box.boxes:
            inside = np.sort(np.concatenate([made[place].nodes for place in box.boxes]))
            assert inside.tolist() == box.nodes.tolist()
            assert len(box.boxes) > 1

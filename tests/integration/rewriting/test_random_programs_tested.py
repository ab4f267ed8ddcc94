"""The test of random programs itself: it sees faults, no races, and makes programs small."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.fuzz.built import build
from tests.fuzz.compare import difference, differences
from tests.fuzz.draw import draw
from tests.fuzz.graphs import check, config_of
from tests.fuzz.kinds import signature
from tests.fuzz.program import Edit, Ids, Part, Program, Run, Table
from tests.fuzz.races import Order
from tests.fuzz.result import Result
from tests.fuzz.sessions import outcomes
from tests.fuzz.shrink import shrunk
from tests.fuzz.steps import Chooser

v1 = tf.compat.v1
SPARSE = {"table": 0, "ids": 0, "way": "safe", "combiner": "mean", "max_norm": None}
MORE = {"default_id": None, "weighted": False, "behind": "", "trained": True}
SUMS = Program(
    tables=(Table(10, 4),),
    ids=(Ids("matrix", 3),),
    parts=(Part("sparse", 0, {**SPARSE, **MORE}),),
    runs=(Run("train", picks=(1, 1, 1, 1)),),
    edit=Edit(0, "combiner", "sum"),
)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (np.float32([1, 2]), np.float32([1, 2.00001]), True),
        (np.float32([1, 2]), np.float32([1, 2.01]), False),
        (np.float32([1, np.nan]), np.float32([1, np.inf]), True),
        (np.float32([1, 2]), np.float64([1, 2]), False),
        (np.int64([3]), np.int64([4]), False),
        (np.array([b"a"], object), np.array([b"a"], object), True),
        (np.array([b"a"], object), np.array([b"b"], object), False),
        (None, None, True),
        (None, np.float32(1), False),
    ],
)
def test_values_differ_by_more_than_rounding(one: Any, other: Any, alike: bool) -> None:
    assert (difference(one, other) == "") is alike


def test_another_combiner_is_a_difference_of_losses_and_variables() -> None:
    built, edited = build(SUMS), build(SUMS.edited())
    _, steps = Chooser(built, config_of(SUMS)).steps()
    one, same, other = (
        outcomes(each, config_of(SUMS), steps) for each in (built, build(SUMS), edited)
    )
    labels = [step.what for step in steps]
    assert not list(differences(one, same, labels))
    found = {(each.kind, each.name) for each in differences(one, other, labels)}
    assert {("value", "loss_99/Mean:0"), ("variable", "table_0")} <= found


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("resource", [False, True])
def test_a_read_in_no_order_with_a_write_is_a_race(ordered: bool, resource: bool) -> None:
    with tf.Graph().as_default() as graph:
        table = v1.get_variable("t", [4, 2], use_resource=resource)
        rows = tf.gather(table, [1, 2], name="rows")
        with tf.control_dependencies([rows] if ordered else []):
            table.assign(tf.ones([4, 2]), name="change", read_value=False)
    order = Order(graph)
    assert order.racing(["rows:0", "change"]) == ([] if ordered else ["t"])
    assert order.racing(["rows:0"]) == order.racing(["change"]) == []


def test_a_feed_may_take_the_order_away() -> None:
    with tf.Graph().as_default() as graph:
        table = v1.get_variable("t", [4, 2], use_resource=True)
        rows = tf.gather(table, [1, 2], name="rows")
        table.assign(tf.zeros([4, 2]) + tf.reduce_sum(rows, name="sum"), name="change")
    order = Order(graph)
    assert order.racing(["rows:0", "change"]) == []
    assert order.racing(["rows:0", "change"], ["sum:0"]) == ["t"]


@pytest.mark.parametrize(
    ("seed", "staged"),
    [
        # All that reads its iterator races, so no run takes a batch.
        (30006, 0),
        # TensorFlow's optimizer drops what orders an assignment and a lookup.
        pytest.param(30022, 1, marks=pytest.mark.slow),
    ],
)
def test_what_stock_itself_does_not_keep_is_no_difference(seed: int, staged: int) -> None:
    result = check(draw("smart", seed), smart=True)
    assert (result.differences, min(result.staged, 1)) == ([], staged)


def test_a_program_becomes_as_small_as_its_difference() -> None:
    program = draw("fused", 3)
    number = program.parts[1].number

    def differs(candidate: Program) -> Result:
        result = Result(program=candidate)
        if any(part.number == number for part in candidate.parts):
            result.add("value", "run 0.0: train", "another number", "loss:0")
        return result

    small, _ = shrunk(differs(program), differs)
    assert [part.number for part in small.parts] == [number]
    assert len(small.runs) == len(small.tables) == len(small.ids) == 1


def test_a_seed_always_draws_the_same_program() -> None:
    assert draw("fused", 5) == draw("fused", 5) != draw("fused", 6)


def test_differences_of_one_cause_have_one_signature() -> None:
    result = Result(program=SUMS)
    for number in (1, 2):
        result.add("variable", f"run {number}.0: train", f"stock {number}", f"table_{number}/Adam")
    assert len({signature(each) for each in result.differences}) == 1


def test_an_edit_changes_one_choice() -> None:
    edited = SUMS.edited()
    assert edited.parts[0]["combiner"] == "sum"
    changed = (Part("sparse", 0, {**SPARSE, **MORE, "combiner": "sum"}),)
    assert edited == dataclasses.replace(SUMS, parts=changed, edit=None)

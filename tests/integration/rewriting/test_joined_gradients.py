"""Gradients that are cut out of one of many embeddings: an update reads them where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.core.framework import graph_pb2

import workbench as wb
from tests.builders.batch_norms import built
from tests.builders.fused_graphs import EXAMPLES, OPTIMIZERS, loss_of, ran, require_trains_alike
from tests.builders.grids import every_value

v1 = tf.compat.v1
ROWS, EXAMPLES_OF_A_BATCH = 12, 6
CUTS = {"Unpack", "SplitV", "Slice"}
Found = list[tf.Tensor]


def embeddings(
    dims: Sequence[int], kind: str = "resource", batch: int | None = EXAMPLES_OF_A_BATCH
) -> Found:
    """Embeddings of a feature for each of these widths, with sparse ids."""
    random = np.random.default_rng(0)
    found = []
    for number, dim in enumerate(dims):
        table = v1.get_variable(
            f"table_{number}",
            initializer=random.normal(size=[ROWS, dim]).astype(np.float32),
            use_resource=kind == "resource",
        )
        ids = random.integers(0, ROWS, EXAMPLES_OF_A_BATCH)
        given = v1.placeholder_with_default(ids, [batch])
        places = tf.range(tf.size(given, tf.int64))
        sparse = tf.SparseTensor(
            tf.stack([places, tf.zeros_like(places)], 1), given, [tf.size(given, tf.int64), 1]
        )
        each = v1.nn.safe_embedding_lookup_sparse(table, sparse, combiner="sum")
        each.set_shape([batch, dim])
        found.append(each)
    return found


def columns_of(plan: Any) -> list[list[int] | None]:
    """Of each update, at which column of one gradient its features begin; None without one."""
    added = graph_pb2.GraphDef.FromString(plan.added)
    nodes = [node for node in added.node if "GroupedApply" in node.op]
    return [
        list(node.attr["columns"].list.i) if node.attr["concatenated"].b else None for node in nodes
    ]


def planned(
    join: Callable[[Found], Found], found: Callable[[], Found], optimizer: str = "adagrad"
) -> tuple[Any, set[str]]:
    """The plan of a graph that trains as before with it, and the ops that ran."""
    with built() as graph:
        made = join(found())
        train_op = OPTIMIZERS[optimizer]().minimize(loss_of(made))
    plan = wb.plan_fusion(graph)
    require_trains_alike(graph, plan, made, train_op, rtol=1e-5, atol=1e-6)
    return plan, set(ran(graph, train_op, wb.apply(plan)))


@every_value(count=[5, 20], axis=[1, -1], kind=["resource", "ref"])
def test_of_a_concatenation(count: int, axis: int, kind: str) -> None:
    """Few parts are slices, more than 16 come from one split."""
    dims = np.resize([4, 1, 16], count).tolist()
    plan, ops = planned(
        lambda found: [tf.concat(found, axis)], lambda: embeddings(dims, kind), "descent"
    )
    assert columns_of(plan) == [[0, *np.cumsum(dims)[:-1].tolist()]]
    assert not CUTS & ops


@pytest.mark.parametrize("axis", [1, -2])
def test_of_a_stack(axis: int) -> None:
    plan, ops = planned(lambda found: [tf.stack(found, axis)], lambda: embeddings([4] * 5))
    assert columns_of(plan) == [[0, 4, 8, 12, 16]]
    assert not CUTS & ops


def test_of_both_is_one_sum() -> None:
    plan, ops = planned(
        lambda found: [tf.stack(found, 1), tf.concat(found, 1)], lambda: embeddings([8] * 5)
    )
    assert columns_of(plan) == [[0, 8, 16, 24, 32]]
    added = graph_pb2.GraphDef.FromString(plan.added)
    assert [node.attr["N"].i for node in added.node if node.op == "AddN"] == [2]
    assert not CUTS & ops


def test_of_a_batch_of_any_size_beside_something_else() -> None:
    plan, _ = planned(
        lambda found: [tf.concat([2 * found[0], *found[:0:-1], found[1] * 3], 1)],
        lambda: embeddings([4] * 6, batch=None),
        "adam",
    )
    # The gradient of one is a sum of two parts, that of another one goes through a product.
    assert sorted(columns_of(plan), key=str) == [None, [16, 12, 8, 4]]


def test_of_two_concatenations_are_two() -> None:
    plan, _ = planned(
        lambda found: [tf.concat(found[:4], 1), tf.stack(found[:3:-1], 1)],
        lambda: embeddings([4] * 9),
    )
    assert sorted(columns_of(plan), key=str) == [[0, 4, 8, 12], [16, 12, 8, 4, 0]]


def _few(found: Found) -> Found:
    return [tf.concat(found[:3], 1), tf.concat(found[3:], 1)]


def _in_two_orders(found: Found) -> Found:
    return [tf.concat(found, 1), tf.stack(found[::-1], 1)]


def _read_by_others(found: Found) -> Found:
    return [tf.stack(found, 1), *[each + 1.0 for each in found]]


def _one_over_the_other(found: Found) -> Found:
    return [tf.concat(found, 0)]


@pytest.mark.parametrize("join", [_few, _in_two_orders, _read_by_others, _one_over_the_other])
def test_others_are_read_one_by_one(join: Callable[[Found], Found]) -> None:
    plan, _ = planned(join, lambda: embeddings([4] * 6))
    assert set(columns_of(plan)) == {None}


@EXAMPLES
@given(
    dims=st.lists(st.sampled_from((1, 4, 16)), min_size=4, max_size=7),
    picks=st.lists(st.integers(0, 6), min_size=4, max_size=9),
    others=st.integers(0, 2),
    optimizer=st.sampled_from(("adagrad", "descent", "adam")),
)
def test_any_concatenation(dims: list[int], picks: list[int], others: int, optimizer: str) -> None:
    def join(found: Found) -> Found:
        chosen = [found[pick % len(found)] for pick in picks]
        chosen[others:others] = [tf.ones([EXAMPLES_OF_A_BATCH, 3])] * others
        return [tf.concat(chosen, 1)]

    planned(join, lambda: embeddings(dims), optimizer)

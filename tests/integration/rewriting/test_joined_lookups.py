"""Lookups whose embeddings a graph puts beside each other: one op writes them where they end up."""

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
from tests.builders.lookup_features import Feature, features, made_tables

v1 = tf.compat.v1
ROWS, EXAMPLES_OF_A_BATCH = 12, 6
JOINS: dict[str, Callable[[Sequence[tf.Tensor]], tf.Tensor]] = {
    "stack": lambda found: tf.stack(found, 1),
    "stack from behind": lambda found: tf.stack(found, -2),
    "concat": lambda found: tf.concat(found, 1),
    "concat from behind": lambda found: tf.concat(found, -1),
}


def dense(count: int, dims: Sequence[int], kind: str = "resource") -> list[tf.Tensor]:
    """Embeddings of as many features, an id for each example."""
    random = np.random.default_rng(0)
    found = []
    for number, dim in zip(range(count), np.resize(dims, count).tolist(), strict=True):
        table = v1.get_variable(
            f"table_{number}",
            initializer=random.normal(size=[ROWS, dim]).astype(np.float32),
            use_resource=kind == "resource",
        )
        ids = random.integers(0, ROWS, EXAMPLES_OF_A_BATCH)
        given = v1.placeholder_with_default(ids, [EXAMPLES_OF_A_BATCH])
        found.append(tf.nn.embedding_lookup(table, given))
    return found


def lookups_of(plan: Any) -> list[tuple[int, bool]]:
    """Of each op that looks up, how many features it has and whether they are joined."""
    added = graph_pb2.GraphDef.FromString(plan.added)
    nodes = [node for node in added.node if node.op.endswith("GroupedLookUp")]
    return [(node.attr["F"].i, node.attr["concatenated"].b) for node in nodes]


def require_alike(graph: tf.Graph, fetches: Any, train_op: Any) -> Any:
    plan = wb.plan_fusion(graph)
    require_trains_alike(graph, plan, fetches, train_op, rtol=1e-5, atol=1e-6)
    return plan


@every_value(join=list(JOINS), kind=["resource", "ref"])
def test_joined_embeddings_are_written_once(join: str, kind: str) -> None:
    with built() as graph:
        y = JOINS[join](dense(5, [4], kind))
        train_op = OPTIMIZERS["adagrad"]().minimize(loss_of([y]))
    plan = require_alike(graph, y, train_op)
    assert lookups_of(plan) == [(5, True)]
    assert not {"Pack", "ConcatV2", "Slice"} & set(ran(graph, y, wb.apply(plan)))


def test_stacked_and_concatenated_ones_too_and_each_can_be_fetched() -> None:
    with built() as graph:
        found = dense(4, [8])
        both = [tf.stack(found, 1), tf.concat(found, 1)]
        train_op = OPTIMIZERS["descent"]().minimize(loss_of(both))
    plan = require_alike(graph, [*found, *both], train_op)
    assert lookups_of(plan) == [(4, True)]


@pytest.mark.parametrize("shape", [[None, 4], [EXAMPLES_OF_A_BATCH, 4]])
def test_behind_a_shape_that_is_known_anyway(shape: Any) -> None:
    with built() as graph:
        y = tf.stack([tf.ensure_shape(each, shape) for each in dense(3, [4])], 1)
        train_op = OPTIMIZERS["adagrad"]().minimize(loss_of([y]))
    assert lookups_of(require_alike(graph, y, train_op)) == [(3, True)]


def test_a_shape_that_may_be_another_is_asked_for_as_before() -> None:
    with built() as graph:
        table = v1.get_variable("table", initializer=np.ones([ROWS, 4], np.float32))
        ids = [v1.placeholder(tf.int64, [None], f"ids_{number}") for number in range(2)]
        found = [tf.nn.embedding_lookup(table, each) for each in ids]
        y = tf.stack([tf.ensure_shape(each, [3, 4]) for each in found], 1)
    plan = wb.plan_fusion(graph)
    assert not any(joined for _, joined in lookups_of(plan))
    with v1.Session(config=wb.apply(plan), graph=graph) as session:
        session.run(v1.global_variables_initializer())
        asked = {each: np.zeros(3, np.int64) for each in ids}
        assert session.run(y, asked).shape == (3, 2, 4)
        with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible"):
            session.run(y, {each: np.zeros(2, np.int64) for each in ids})


def test_embeddings_of_other_widths_beside_each_other() -> None:
    with built() as graph:
        found = dense(6, [1, 16, 5])
        y = tf.concat(found, 1)
        train_op = OPTIMIZERS["adagrad"]().minimize(loss_of([y]))
    plan = require_alike(graph, [*found, y], train_op)
    assert lookups_of(plan) == [(6, True)]


def test_two_joins_and_what_is_alone_are_an_op_each() -> None:
    with built() as graph:
        found = dense(7, [4])
        parts = [tf.stack(found[:3], 1), tf.concat(found[5:2:-1], 1), found[6]]
        train_op = OPTIMIZERS["adagrad"]().minimize(loss_of(parts))
    plan = require_alike(graph, parts, train_op)
    assert lookups_of(plan) == [(1, False), (3, True), (3, True)]


def _read_by_another(found: list[tf.Tensor]) -> list[tf.Tensor]:
    return [tf.stack(found, 1), found[1] + 1.0]


def _in_two_orders(found: list[tf.Tensor]) -> list[tf.Tensor]:
    return [tf.stack(found, 1), tf.concat(found[::-1], 1)]


def _one_of_them_twice(found: list[tf.Tensor]) -> list[tf.Tensor]:
    return [tf.concat([*found, found[0]], 1)]


def _beside_something_else(found: list[tf.Tensor]) -> list[tf.Tensor]:
    return [tf.concat([*found, tf.ones_like(found[0])], 1)]


def _one_over_the_other(found: list[tf.Tensor]) -> list[tf.Tensor]:
    return [tf.concat(found, 0)]


def _behind_something(found: list[tf.Tensor]) -> list[tf.Tensor]:
    with tf.control_dependencies([tf.no_op()]):
        return [tf.stack(found, 1)]


def _on_another_device(found: list[tf.Tensor]) -> list[tf.Tensor]:
    with tf.device("/device:CPU:0"):
        return [tf.stack(found, 1)]


@pytest.mark.parametrize(
    "join",
    [
        _read_by_another,
        _in_two_orders,
        _one_of_them_twice,
        _beside_something_else,
        _one_over_the_other,
        _behind_something,
        _on_another_device,
    ],
)
def test_other_embeddings_have_an_output_each(join: Any) -> None:
    with built() as graph:
        made = join(dense(3, [4]))
        train_op = OPTIMIZERS["adagrad"]().minimize(loss_of(made))
    plan = require_alike(graph, made, train_op)
    assert lookups_of(plan) == [(3, False)]


@EXAMPLES
@given(
    drawn=st.lists(features(rows=EXAMPLES_OF_A_BATCH), min_size=2, max_size=5),
    dims=st.tuples(*[st.sampled_from((1, 5, 16))] * 3),
    # Not Adam, which scales rounding up: shortened rows of one column have no other gradient.
    optimizer=st.sampled_from(("adagrad", "descent")),
    seed=st.integers(0, 99),
)
def test_sparse_ids_of_any_kind(drawn: list[Feature], dims: Any, optimizer: str, seed: int) -> None:
    with built() as graph:
        tables = made_tables("resource", dims, tf.float32, seed)
        found = [
            v1.nn.safe_embedding_lookup_sparse(
                tables[each.table],
                each.sparse_ids(),
                each.weights() if each.weighted else None,
                each.combiner,
                each.default_id,
                max_norm=each.max_norm,
            )
            for each in drawn
        ]
        for each in found:
            each.set_shape([EXAMPLES_OF_A_BATCH, None])
        y = tf.concat(found, 1)
        train_op = OPTIMIZERS[optimizer]().minimize(loss_of([y]))
    require_alike(graph, [*found, y], train_op)

"""Outputs of ops with several stay apart where TensorFlow's optimizer takes any for the first.

Of a Pack of equal inputs it makes a Tile of the op, and forgets which of its outputs they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from workbench.ops.lookup.grouped import grouped_embedding_lookup

v1 = tf.compat.v1
VALUES = (1.0, 2.0, 3.0)


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def tables(resource: bool) -> list[Any]:
    return [
        v1.get_variable(f"t{each}", initializer=np.full((9, 4), each, "f"), use_resource=resource)
        for each in VALUES
    ]


def doubled(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    # What a run fetches the optimizer leaves alone.
    return [-tf.stack([x, x], 1) for x in tensors]


def require_values(found: Sequence[Any]) -> None:
    assert [sorted(set(np.ravel(each).tolist())) for each in found] == [[-each] for each in VALUES]


def sparse() -> tf.SparseTensor:
    return tf.SparseTensor([[row, 0] for row in range(4)], tf.range(4, dtype=tf.int64), [4, 1])


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("way", ["dense", "gather", "sparse"])
def test_of_fused_lookups(graph: tf.Graph, way: str, resource: bool) -> None:
    ids = tf.range(4, dtype=tf.int64)
    found = [
        tf.nn.embedding_lookup(table, ids)
        if way == "dense"
        else tf.gather(table, ids)
        if way == "gather"
        else v1.nn.safe_embedding_lookup_sparse(table, sparse())
        for table in tables(resource)
    ]
    wanted = doubled(found)
    plan = wb.plan_fusion(graph)
    assert len(plan.of("lookup")) == len(VALUES)
    with v1.Session(config=wb.apply(plan)) as session:
        session.run(v1.global_variables_initializer())
        require_values(session.run(wanted))
        assert plan.verify(session).right


def test_of_lookups_that_are_built_grouped() -> None:
    made = tables(True)
    found = grouped_embedding_lookup(made, [sparse() for _ in made])
    wanted, gradients = doubled(found), tf.gradients(found, made)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        require_values(session.run(wanted))
        for gradient in session.run(gradients):
            np.testing.assert_array_equal(gradient.values, np.ones((4, 4)))


@pytest.mark.parametrize("way", ["staged", "smart"])
def test_of_what_is_staged(graph: tf.Graph, way: str) -> None:
    whole = {str(each): np.full((4, 3), each, "f") for each in VALUES}
    data = tf.data.Dataset.from_tensors(whole).repeat()
    batch = v1.data.make_one_shot_iterator(data).get_next()
    features = {name: tf.abs(each) for name, each in batch.items()}
    if way == "staged":
        features = wb.staged(features)
    wanted = doubled([features[str(each)] for each in VALUES])
    config = v1.ConfigProto()
    if way == "smart":
        config, _ = wb.prepare_config(graph, config, targets=[each.op.name for each in wanted])
    with v1.Session(config=config) as session, wb.prefetching(session):
        require_values(session.run(wanted))

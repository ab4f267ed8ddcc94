"""Columns of text in a finished graph that one op hashes together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.python.eager import context

import workbench as wb
from tests.builders.examples import few
from tests.builders.fused_graphs import fetched, ran, require_same, require_trains_alike
from tests.builders.fused_parts import names_of
from workbench import _native
from workbench.core.session.rewrite import applied_in

v1 = tf.compat.v1
OP = "WorkbenchHashColumns"
WORDS = np.array(["a", "", "b", "", "a longer one than fits", "é", "a"], object)


def hashed(
    texts: tf.Tensor,
    buckets: int = 11,
    *,
    ignored: str = "",
    turned: bool = False,
    zero_last: bool = False,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Where the texts are not ignored, and their ids, as feature columns have them."""
    present = tf.not_equal(ignored, texts) if turned else tf.not_equal(texts, ignored)
    where = tf.where(present)
    ids = tf.strings.to_hash_bucket_fast(tf.gather_nd(texts, where), buckets)
    if zero_last:
        where = tf.concat([where, tf.zeros_like(where[:, :1])], axis=1)
    return where, ids


def text(*shape: int | None) -> tf.Tensor:
    return v1.placeholder(tf.string, shape, name="text")


@few(15)
@given(
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    known=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
    options=st.lists(
        st.fixed_dictionaries(
            {
                "buckets": st.sampled_from((1, 7, 10_000, 2**62)),
                "turned": st.booleans(),
                "zero_last": st.booleans(),
            }
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_gives_what_the_stock_graph_does(
    shape: list[int], known: bool, seed: int, options: Sequence[dict[str, Any]]
) -> None:
    random = np.random.default_rng(seed)
    with tf.Graph().as_default() as graph:
        columns = [text(*(shape if known else [None] * len(shape))) for _ in options]
        found = [hashed(each, **own) for each, own in zip(columns, options, strict=True)]
    plan = require_same(graph, found, {each: random.choice(WORDS, shape) for each in columns})
    assert len(names_of(plan, "hashed column")) == len(options)


def test_one_op_does_all_columns_of_a_batch() -> None:
    with tf.Graph().as_default() as graph:
        columns = tf.io.decode_csv(text(None), [[""]] * 5)
        ids = [hashed(each) for each in columns]
        feed = {graph.get_tensor_by_name("text:0"): ["a,b,c,d,e", "f,,g,,h"]}
    plan = require_same(graph, ids, feed)
    assert repr(plan) == "FusionPlan(5 hashed columns, 1 line decoder, 0 stay)"
    assert plan.count == 6
    lines = plan.describe().splitlines()
    assert lines[0] == "5 columns of text hashed together" and len(lines) == 8
    applied = applied_in(wb.apply(plan))
    assert applied is not None and applied.fusion == plan


def test_a_column_that_is_hashed_twice_is_hashed_once() -> None:
    with tf.Graph().as_default() as graph:
        column = text(None)
        ids = [hashed(column) for _ in range(3)]
        where = tf.where(tf.not_equal(column, ""))
        words = tf.gather_nd(column, where)
        both = [tf.strings.to_hash_bucket_fast(words, buckets) for buckets in (5, 11)]
    plan = require_same(graph, [ids, both, where], {column: WORDS})
    assert len(names_of(plan, "hashed column")) == 5
    added = v1.GraphDef.FromString(plan.added)
    (node,) = (each for each in added.node if each.op == OP)
    assert sorted(node.attr["buckets"].list.i) == [5, 11]


def test_what_else_reads_the_words_still_does() -> None:
    with tf.Graph().as_default() as graph:
        column = text(None, None)
        where = tf.where(tf.not_equal(column, ""))
        words = tf.gather_nd(column, where)
        ids = tf.strings.to_hash_bucket_fast(words, 3)
        found = [where, words, ids, tf.strings.length(words), tf.shape(where)]
    assert (
        len(
            names_of(require_same(graph, found, {column: WORDS[:6].reshape(2, 3)}), "hashed column")
        )
        == 1
    )


def strong(texts: tf.Tensor) -> Any:
    where = tf.where(tf.not_equal(texts, ""))
    return tf.strings.to_hash_bucket_strong(tf.gather_nd(texts, where), 7, [1, 2])


def of_other_texts(texts: tf.Tensor) -> Any:
    where = tf.where(tf.not_equal(tf.strings.lower(texts), ""))
    return tf.strings.to_hash_bucket_fast(tf.gather_nd(texts, where), 7)


def equal_ones(texts: tf.Tensor) -> Any:
    where = tf.where(tf.equal(texts, ""))
    return tf.strings.to_hash_bucket_fast(tf.gather_nd(texts, where), 7)


def of_several(texts: tf.Tensor) -> Any:
    where = tf.where(tf.not_equal(texts, tf.constant(["", ""])))
    return tf.strings.to_hash_bucket_fast(tf.gather_nd(texts, where), 7)


def in_order(texts: tf.Tensor) -> Any:
    with tf.control_dependencies([tf.no_op()]):
        return hashed(texts)


def in_a_branch(texts: tf.Tensor) -> Any:
    v1.disable_control_flow_v2()
    try:
        return v1.cond(tf.size(texts) > 0, lambda: hashed(texts), lambda: hashed(texts, 5))
    finally:
        v1.enable_control_flow_v2()


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        pytest.param(lambda texts: hashed(texts, ignored="a"), [None], id="another word"),
        pytest.param(lambda texts: tf.strings.to_hash_bucket_fast(texts, 5), [None], id="all"),
        pytest.param(hashed, None, id="any rank"),
        pytest.param(hashed, [], id="one word"),
        pytest.param(strong, [None], id="strong"),
        pytest.param(of_other_texts, [None], id="other texts"),
        pytest.param(equal_ones, [None], id="equal"),
        pytest.param(of_several, [2], id="several words"),
        pytest.param(in_order, [None], id="waits"),
        pytest.param(in_a_branch, [None], id="branch"),
    ],
)
def test_all_else_stays(make: Callable[[tf.Tensor], Any], shape: list[int | None] | None) -> None:
    with tf.Graph().as_default() as graph:
        make(v1.placeholder(tf.string, shape))
    assert not wb.plan_fusion(graph).count


def test_a_wider_matrix_of_other_zeros_stays_behind_the_op() -> None:
    with tf.Graph().as_default() as graph:
        column = text(None)
        where, ids = hashed(column)
        wide = [
            tf.concat([where, tf.zeros_like(where[:2, :1])[:0]], axis=0),
            tf.concat([where, tf.ones_like(where[:, :1])], axis=1),
            tf.concat([tf.zeros_like(where[:, :1]), where], axis=1),
        ]
    assert len(names_of(require_same(graph, [ids, wide], {column: WORDS}), "hashed column")) == 1


def test_of_a_gpu_stays() -> None:
    with tf.Graph().as_default() as graph, tf.device("/device:GPU:0"):
        hashed(text(None))
    assert not names_of(wb.plan_fusion(graph), "hashed column")


@pytest.mark.parametrize("rank", [1, 2])
def test_feature_columns_are_hashed_and_looked_up_by_two_ops(rank: int) -> None:
    shape = [None, 1][:rank]
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(1)
        features = {name: text(*shape) for name in "abc"}
        categories = [
            tf.feature_column.categorical_column_with_hash_bucket(name, 20) for name in features
        ]
        columns = [tf.feature_column.embedding_column(each, 4) for each in categories]
        made = v1.feature_column.input_layer(features, columns)
        begin = v1.global_variables_initializer()
    plan = wb.plan_fusion(graph)
    assert len(names_of(plan, "hashed column")) == len(plan.of("lookup")) == 3
    feeds = {each: WORDS.reshape([-1, 1][:rank]) for each in features.values()}
    results = []
    for config in (None, wb.apply(plan)):
        with v1.Session(graph=graph, config=config) as session:
            session.run(begin)
            results.append(session.run(made, feeds))
    np.testing.assert_array_equal(*results)


def test_of_a_function() -> None:
    with context.eager_mode():
        step = tf.function(hashed, input_signature=[tf.TensorSpec([None], tf.string)])
        concrete = step.get_concrete_function()
        fused = wb.fuse_function(concrete)
        for one, other in zip(fused(tf.constant(WORDS)), concrete(tf.constant(WORDS)), strict=True):
            np.testing.assert_array_equal(one, other)
        assert OP in {node.op for node in fused.graph.as_graph_def().node}


def test_columns_of_different_runs_are_not_hashed_together() -> None:
    with tf.Graph().as_default() as graph:
        one, other = text(None), text(None)
        first, second = hashed(one), hashed(other)
    plan = wb.plan_fusion(graph)
    # Each run is fed its own column alone.
    fetched(graph, first, {one: WORDS}, plan)
    fetched(graph, second, {other: WORDS}, plan)


def test_behind_them_all_lookups_are_one_op_still() -> None:
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(1)
        looked = []
        drawn = tf.random.uniform([5], maxval=3, dtype=tf.int32, seed=1)
        lines = tf.gather(["a,b,c", ",e,", "d,,"], drawn)
        for number, each in enumerate(tf.io.decode_csv(lines, [[""]] * 3)):
            table = v1.get_variable(f"table{number}", [50, 4], use_resource=False)
            where, ids = hashed(tf.expand_dims(each, 1), 50)
            sparse = tf.SparseTensor(where, ids, tf.stack([tf.size(each, tf.int64), 1]))
            looked.append(v1.nn.safe_embedding_lookup_sparse(table, sparse))
        loss = tf.reduce_sum(tf.square(tf.add_n(looked)))
        train_op = v1.train.AdagradOptimizer(0.1).minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert (
        len({each.op for each in plan.of("lookup")}) == 1
        and len(names_of(plan, "hashed column")) == 3
    )
    ops = ran(graph, train_op, wb.apply(plan))
    assert [ops.count(each) for each in (OP, "WorkbenchGroupedLookUp")] == [1, 1]
    assert not {"Where", "GatherNd", "StringToHashBucketFast", "DecodeCSV"} & set(ops)
    require_trains_alike(graph, plan, looked, train_op, rtol=1e-5, atol=1e-6)


@few(60)
@given(
    buckets=st.lists(st.integers(-1, 5), max_size=3),
    zero_last=st.lists(st.booleans(), max_size=3),
    count=st.integers(1, 3),
)
def test_the_op_refuses_what_does_not_fit(
    buckets: list[int], zero_last: list[bool], count: int
) -> None:
    fits = len(buckets) == len(zero_last) == count and min(buckets, default=0) > 0
    with context.eager_mode():
        try:
            made = _native.library().workbench_hash_columns(
                texts=[tf.constant(WORDS)] * count, buckets=buckets, zero_last=zero_last
            )
        except tf.errors.InvalidArgumentError:
            assert not fits
        else:
            assert fits
            assert [len(each) for each in made.ids] == [5] * count

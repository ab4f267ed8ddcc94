"""Parameters of DeepRec's functions that have no effect here: each warns once, by its name."""

from __future__ import annotations

import pytest
import tensorflow as tf

from workbench import ignored
from workbench.compat.contrib.layers.python.layers import feature_column
from workbench.ops.embedding_variable.variable import get_embedding_variable
from workbench.ops.lookup.fusion import embedding_lookup_sparse, safe_embedding_lookup_sparse


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ignored, "_warned", set())


def ids():
    return tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])


CALLS = {
    "get_embedding_variable(validate_shape)": lambda given: get_embedding_variable(
        "table", 4, **({"validate_shape": False} if given else {})
    ),
    "sparse_column_with_embedding(ht_partition_num)": (
        lambda given: feature_column.sparse_column_with_embedding(
            "key", tf.int64, **({"ht_partition_num": 7} if given else {})
        )
    ),
    "sparse_column_with_hash_bucket(combiner)": (
        lambda given: feature_column.sparse_column_with_hash_bucket(
            "key", 8, **({"combiner": "mean"} if given else {})
        )
    ),
    "sparse_column_with_integerized_feature(combiner)": (
        lambda given: feature_column.sparse_column_with_integerized_feature(
            "key", 8, **({"combiner": "mean"} if given else {})
        )
    ),
    "embedding_lookup_sparse(allow_fast_lookup)": lambda given: embedding_lookup_sparse(
        tf.ones([4, 2]), ids(), None, combiner="mean", do_fusion="v2", allow_fast_lookup=given
    ),
    "safe_embedding_lookup_sparse(allow_fast_lookup)": lambda given: safe_embedding_lookup_sparse(
        tf.ones([4, 2]), ids(), do_fusion="v1", allow_fast_lookup=given
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_warns_once_and_only_where_it_is_given(name, caplog):
    for given in (False, True, True):
        with tf.Graph().as_default():
            CALLS[name](given)
        warned = [each for each in caplog.messages if "has no effect" in each]
        assert len(warned) == int(given)
    assert warned[0].startswith(f"{name} = ")


def test_a_stock_lookup_takes_allow_fast_lookup(caplog):
    embedding_lookup_sparse(tf.ones([4, 2]), ids(), None, combiner="mean", allow_fast_lookup=True)
    assert not [each for each in caplog.messages if "has no effect" in each]

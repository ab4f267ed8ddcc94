"""Columns and lookups that the context fuses, or a call of their own."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.stock_columns import (
    VERSIONS,
    features,
    graph_of,
    identity,
    initializer,
    layer,
    lookups,
    result,
    same,
    sparse,
    stock,
    v1,
)
from workbench import ignored
from workbench.errors import UnsupportedError
from workbench.ops.feature_column import columns as wb
from workbench.ops.lookup.fusion import (
    chosen_fusion,
    embedding_lookup_sparse,
    fused_embeddings,
    safe_embedding_lookup_sparse,
)


def test_a_column_made_outside_is_fused_where_it_is_built():
    column = wb.embedding_column(identity(), 3)
    assert lookups(result(layer(column), context=fused_embeddings("v2"))[3]) == {"v2"}
    assert lookups(result(layer(column), context=fused_embeddings("v1"))[3]) == {"v1"}
    assert lookups(result(layer(column))[3]) == {"stock"}


def test_a_column_made_inside_is_stock_where_it_is_built_outside():
    with fused_embeddings("v2"):
        column = wb.embedding_column(identity(), 3)
    assert lookups(result(layer(column))[3]) == {"stock"}


@pytest.mark.parametrize(("do_fusion", "built"), [(False, "stock"), (True, "v2"), ("v2", "v2")])
def test_what_a_column_says_wins(do_fusion, built):
    column = wb.embedding_column(identity(), 3, do_fusion=do_fusion)
    assert lookups(result(layer(column), context=fused_embeddings("v1"))[3]) == {built}


def test_shared_columns_obey_the_context():
    columns = wb.shared_embedding_columns([identity(), identity("other")], 3)
    types = result(lambda: stock.input_layer(features(), columns), context=fused_embeddings("v2"))[
        3
    ]
    assert lookups(types) == {"v2"}


def test_contexts_nest_and_end_with_an_error():
    with fused_embeddings("v1"):
        with fused_embeddings(None):
            assert chosen_fusion() is None
            with pytest.raises(KeyError), fused_embeddings("v2"):
                assert chosen_fusion() == "v2"
                raise KeyError
            assert chosen_fusion() is None
        assert chosen_fusion() == "v1"
        seen = []
        other = threading.Thread(target=lambda: seen.append(chosen_fusion()))
        other.start()
        other.join()
        assert seen == [None]
    assert chosen_fusion() is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("weights", [False, True])
def test_sparse_lookups_obey_the_context(weights, version):
    def build(safe):
        table = v1.get_variable("table", [5, 3], initializer=initializer())
        fed = features()
        given = fed["weight"] if weights else None
        if safe:
            return safe_embedding_lookup_sparse(table, fed["id"], given, "sum", 2, max_norm=0.7)
        return embedding_lookup_sparse(table, fed["id"], given, combiner="sqrtn")

    for safe in (True, False):
        plain = result(lambda safe=safe: build(safe))
        fused = result(lambda safe=safe: build(safe), context=fused_embeddings(version))
        same(fused, plain, version)


@pytest.mark.parametrize("version", ["v1", "v2", "grouped"])
@pytest.mark.parametrize("look_up", [safe_embedding_lookup_sparse, embedding_lookup_sparse])
def test_tables_of_another_dtype_stay_stock_in_a_context(look_up, version, monkeypatch, caplog):
    monkeypatch.setattr(ignored, "_warned", set())
    table = np.arange(8.0).reshape([4, 2])
    for given in (table, tf.constant(table), v1.get_variable("table", initializer=table)):
        with fused_embeddings(version):
            found = look_up(given, sparse([[1, 3], [2]]), None, combiner="sum")
        assert found.dtype == tf.float64
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            np.testing.assert_array_equal(session.run(found), [[8, 10], [4, 5]])
    assert "tables of float64" in caplog.text and len(caplog.records) == 1


@pytest.mark.parametrize("version", ["v1", "v2", "grouped"])
def test_shards_of_different_dtypes_are_the_error_of_stock(version):
    shards = [np.zeros([2, 2], np.float32), np.zeros([2, 2])]
    with pytest.raises(TypeError):
        v1.nn.safe_embedding_lookup_sparse(shards, sparse([[1]]))
    with fused_embeddings(version), pytest.raises(TypeError):
        safe_embedding_lookup_sparse(shards, sparse([[1]]))


def test_a_call_that_asks_for_fusion_itself_is_refused_for_another_dtype():
    table = tf.zeros([4, 2], tf.float64)
    with pytest.raises(UnsupportedError, match="has dtype float64"):
        safe_embedding_lookup_sparse(table, sparse([[1]]), do_fusion="v1")


def test_lookups_without_fusion_are_the_very_stock_ones():
    def build(safe, plain):
        table = v1.get_variable("table", [5, 3])
        safe(table, features()["id"], None, default_id=1, allow_fast_lookup=True)
        plain(table, features()["id"], features()["weight"], name="look", max_norm=1.0)

    nn = v1.nn
    assert graph_of(lambda: build(safe_embedding_lookup_sparse, embedding_lookup_sparse)) == (
        graph_of(lambda: build(nn.safe_embedding_lookup_sparse, nn.embedding_lookup_sparse))
    )

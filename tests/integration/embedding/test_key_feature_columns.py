"""Feature columns over EmbeddingVariables: trained, they give what a stock column gives."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2 as fc

from tests.builders.grids import every_pair
from workbench.compat.contrib.feature_column import sequence_input_layer
from workbench.errors import OptionError, UnsupportedError
from workbench.ops.embedding_variable import variable
from workbench.ops.embedding_variable.optimizers import GradientDescentOptimizer
from workbench.ops.embedding_variable.variable import (
    CounterFilter,
    EmbeddingVariableOption,
    InitializerOption,
    get_embedding_variable,
)
from workbench.ops.feature_column import columns as wb
from workbench.ops.lookup.fusion import embedding_lookup_sparse, safe_embedding_lookup_sparse
from workbench.ops.lookup.stock import embedding_lookup

v1 = tf.compat.v1
stock = v1.feature_column
FUSIONS = [None, "v1", "v2"]
WORDS = ["a", "b", "c"]


def sparse(rows, dtype=tf.int64):
    at = [[r, c] for r, row in enumerate(rows) for c in range(len(row))]
    flat = [value for row in rows for value in row]
    return tf.SparseTensor(at, tf.constant(flat, dtype), [len(rows), max(map(len, rows))])


def features():
    return {
        "id": sparse([[1, 2, 1], [], [3], [0, 0]]),
        "other": sparse([[0], [3, 2], [], [1, 1]]),
        "word": sparse([["a", "b", "a"], [], ["c"], ["b", "b"]], tf.string),
        "weight": sparse([[1.0, -2.0, 0.5], [], [3.0], [2.0, 0.0]], tf.float32),
    }


def ones():
    return v1.ones_initializer()


def trained(build, optimizer=GradientDescentOptimizer):
    """Outputs of three steps of training in a graph of its own."""
    with tf.Graph().as_default():
        output = build()
        slope = tf.cos(tf.cast(tf.range(tf.size(output)), tf.float32))
        loss = tf.reduce_sum(output * tf.reshape(slope, tf.shape(output)))
        step = optimizer(0.1).minimize(loss)
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            outputs = []
            for _ in range(3):
                outputs.append(session.run(output))
                session.run(step)
        return np.array(outputs)


def weighted(column):
    return stock.weighted_categorical_column(column, "weight")


def input_layer(columns):
    return stock.input_layer(features(), columns)


def sequences(columns):
    return sequence_input_layer(features(), columns)[0]


# What is built over the column of ids, and the layer it goes into.
KINDS = {
    "plain": (lambda column: column, input_layer),
    "weighted": (weighted, input_layer),
    "sequence": (fc.SequenceCategoricalColumn, sequences),
    "weighted sequence": (
        lambda column: fc.SequenceCategoricalColumn(weighted(column)),
        sequences,
    ),
}


def cases() -> Iterator[Any]:
    """All kinds of columns in one part; in several the two that the others come down to.

    Each with one fusion, from case to case another; the others are slow.
    """
    combiners = [(kind, "mean") for kind in sorted(KINDS)]
    combiners += [(kind, each) for kind in ("plain", "weighted") for each in ("sum", "sqrtn")]
    for number, (kind, combiner) in enumerate(combiners):
        less = kind not in ("plain", "weighted") or combiner != "mean"
        for parts, fusion in itertools.product((None, 3), FUSIONS):
            usual = fusion == FUSIONS[(number + (parts is not None)) % len(FUSIONS)]
            marks = () if usual and not (parts and less) else pytest.mark.slow
            yield pytest.param(kind, combiner, parts, fusion, marks=marks)


def embedding_options(combiner):
    return {"combiner": combiner, "initializer": ones(), "max_norm": 1.4}


@functools.cache
def trained_by_ids(kind, combiner):
    over, layer = KINDS[kind]
    ids = over(stock.categorical_column_with_identity("id", 5))
    column = stock.embedding_column(ids, 3, **embedding_options(combiner))
    return trained(lambda: layer([column]))


@pytest.mark.parametrize(("kind", "combiner", "partition_num", "do_fusion"), list(cases()))
def test_an_embedding_of_keys_trains_as_one_of_ids(kind, combiner, partition_num, do_fusion):
    over, layer = KINDS[kind]
    expected = trained_by_ids(kind, combiner)
    keys = wb.categorical_column_with_embedding("id", tf.int64, partition_num)
    options = embedding_options(combiner)
    column = wb.embedding_column(over(keys), 3, do_fusion=do_fusion, **options)
    np.testing.assert_allclose(trained(lambda: layer([column])), expected, rtol=1e-5, atol=1e-6)
    assert np.ptp(expected[2]) > 0.1


@pytest.mark.parametrize("do_fusion", FUSIONS)
def test_columns_share_an_embedding_of_keys(do_fusion):
    keys = ("id", "other")
    made = [stock.categorical_column_with_identity(key, 5) for key in keys]
    plain = stock.shared_embedding_columns(made, 3, initializer=ones())
    made = [wb.categorical_column_with_embedding(key, tf.int64) for key in keys]
    shared = wb.shared_embedding_columns(made, 3, initializer=ones(), do_fusion=do_fusion)
    assert [each.name for each in shared] == [each.name for each in plain]
    names = {each.shared_embedding_collection_name for each in (*shared, *plain)}
    assert names == {"id_other_shared_embedding"}
    np.testing.assert_allclose(
        trained(lambda: input_layer(shared)), trained(lambda: input_layer(plain)), rtol=1e-5
    )


@pytest.mark.parametrize("do_fusion", FUSIONS)
def test_strings_are_keys_too(do_fusion):
    vocabulary = stock.categorical_column_with_vocabulary_list("word", WORDS)
    expected = trained(
        lambda: input_layer([stock.embedding_column(vocabulary, 3, initializer=ones())])
    )
    keys = wb.categorical_column_with_embedding("word")
    column = wb.embedding_column(keys, 3, initializer=ones(), do_fusion=do_fusion)
    np.testing.assert_allclose(trained(lambda: input_layer([column])), expected, rtol=1e-5)
    assert stock.make_parse_example_spec([column]) == {"word": tf.io.VarLenFeature(tf.string)}


@pytest.mark.parametrize("do_fusion", FUSIONS)
def test_the_unsafe_lookup_of_keys(do_fusion):
    def build(module, made, **options):
        options = {**options, "initializer": ones(), "use_safe_embedding_lookup": False}
        column = module.embedding_column(made, 3, **options)
        rows = [[1, 2, 1], [4], [3], [0, 0]]
        return lambda: stock.input_layer({"id": sparse(rows)}, [column])

    expected = trained(build(stock, stock.categorical_column_with_identity("id", 5)))
    keys = wb.categorical_column_with_embedding("id", tf.int32)
    actual = trained(build(wb, keys, do_fusion=do_fusion))
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_ids_of_dense_features_may_be_missing():
    def build(make):
        rows = [[1, -1], [-1, -1], [2, 3]]
        return lambda: stock.input_layer({"id": tf.constant(rows)}, [make()])

    ids = stock.categorical_column_with_identity("id", 5)
    expected = trained(build(lambda: stock.embedding_column(ids, 3, initializer=ones())))
    keys = wb.categorical_column_with_embedding("id", tf.int64)
    actual = trained(build(lambda: wb.embedding_column(keys, 3, initializer=ones())))
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def table(keyed):
    if keyed:
        return get_embedding_variable("table", 3, initializer=ones())
    return v1.get_variable("table", [5, 3], initializer=ones())


@every_pair(do_fusion=FUSIONS, weights=[False, True], default_id=[None, 0, 4])
def test_safe_lookups_of_an_embedding_variable(default_id, weights, do_fusion):
    def build(keyed):
        fed = features()
        fed["id"] = sparse([[1, 2, -1], [], [3], [0, 0]])
        given = fed["weight"] if weights else None
        return safe_embedding_lookup_sparse(
            table(keyed), fed["id"], given, default_id=default_id, do_fusion=do_fusion
        )

    np.testing.assert_allclose(
        trained(lambda: build(True)), trained(lambda: build(False)), rtol=1e-5
    )


@pytest.mark.parametrize("weights", [False, True])
def test_lookups_of_an_embedding_variable(weights):
    def build(keyed):
        given = features()["weight"] if weights else None
        return embedding_lookup_sparse(table(keyed), features()["id"], given, combiner="sum")

    np.testing.assert_allclose(
        trained(lambda: build(True)), trained(lambda: build(False)), rtol=1e-5
    )
    np.testing.assert_allclose(
        trained(lambda: embedding_lookup(table(True), [[1, 2], [1, 4]], max_norm=1.2)),
        trained(lambda: embedding_lookup(table(False), [[1, 2], [1, 4]], max_norm=1.2)),
        rtol=1e-5,
    )


def test_dropped_ids_make_no_rows():
    column = wb.categorical_column_with_embedding("id", tf.int64)
    fed = {
        "id": sparse([[7, -1], [8, 9]]),
        "weight": sparse([[1.0, 1.0], [0.0, 2.0]], tf.float32),
    }
    output = stock.input_layer(fed, [wb.embedding_column(weighted(column), 3)])
    (variable,) = [v for v in v1.trainable_variables() if hasattr(v, "total_count")]
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(output)
        assert session.run(variable.total_count()) == 2


@pytest.mark.parametrize("do_fusion", FUSIONS)
def test_every_occurrence_of_a_key_counts_for_a_filter(do_fusion):
    option = EmbeddingVariableOption(filter_option=CounterFilter(filter_freq=3))
    column = wb.categorical_column_with_embedding("id", tf.int64, ev_option=option)
    columns = [wb.embedding_column(column, 1, initializer=ones(), do_fusion=do_fusion)]
    output = stock.input_layer({"id": sparse([[1, 1], [2], [1], [2]])}, columns)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(output)[:, 0].tolist() == [1, 0, 1, 0]
        assert session.run(output)[:, 0].tolist() == [1, 1, 1, 1]


def test_layers_of_one_scope_share_the_embedding():
    columns = [wb.embedding_column(wb.categorical_column_with_embedding("id", tf.int64), 3)]
    outputs = []
    for _ in range(2):
        with v1.variable_scope("model", reuse=v1.AUTO_REUSE):
            outputs.append(input_layer(columns))
    assert len(v1.trainable_variables()) == 1
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(*session.run(outputs))


def test_an_embedding_joins_the_layers_collections():
    column = wb.categorical_column_with_embedding("id", tf.int64)
    shared = wb.shared_embedding_columns([column], 2)
    columns = [wb.embedding_column(column, 3), *shared]
    stock.input_layer(features(), columns, weight_collections=["mine"], trainable=False)
    assert len(v1.get_collection("mine")) == len(v1.model_variables()) == 2
    assert not v1.trainable_variables()


@pytest.fixture
def calls(monkeypatch):
    """Arguments of the EmbeddingVariables that are made."""
    seen = []

    def record(name, **options):
        seen.append({"name": name, **options})
        return get_embedding_variable(name, **options)

    monkeypatch.setattr(variable, "get_embedding_variable", record)
    return seen


def test_what_the_embedding_variable_is_made_with(calls):
    options = EmbeddingVariableOption(init_option=InitializerOption(default_value_dim=8))
    column = wb.categorical_column_with_embedding("id", tf.int64, 2, options)
    made = ones()
    input_layer([wb.embedding_column(column, 3, initializer=made, trainable=False)])
    (call,) = calls
    assert (call["name"], call["embedding_dim"]) == ("embedding_weights", 3)
    assert call["initializer"] is made
    assert call["trainable"] is False
    assert call["ev_option"] == options
    assert call["partitioner"](shape=tf.TensorShape([16, 3]), dtype=tf.float32) == [2, 1]


def test_a_column_without_options_makes_one_with_the_defaults(calls):
    input_layer([wb.embedding_column(wb.categorical_column_with_embedding("id", tf.int64), 3)])
    (call,) = calls
    assert call["partitioner"] is None
    assert call["ev_option"] == EmbeddingVariableOption()
    assert call["trainable"] is True


@pytest.mark.parametrize(
    "build",
    [
        lambda column: stock.input_layer(features(), [stock.indicator_column(column)]),
        lambda column: stock.linear_model(features(), [column]),
        lambda column: stock.linear_model(features(), [weighted(column)]),
        lambda column: stock.input_layer(features(), [stock.embedding_column(column, 3)]),
        lambda column: stock.shared_embedding_columns([column], 3),
        lambda column: wb.embedding_column(column, 3).create_state(None),
    ],
)
def test_where_a_number_of_buckets_is_needed_the_column_is_refused(build):
    message = (
        r"categorical_column_with_embedding\('id'\) has no fixed number of buckets, which "
        r"indicator_column, linear_model.* Wrap it in embedding_column .* of workbench.*"
        r"categorical_column_with_hash_bucket\('id', hash_bucket_size\)"
    )
    with pytest.raises(UnsupportedError, match=message):
        build(wb.categorical_column_with_embedding("id", tf.int64))


def test_checkpoints_of_dense_variables_are_refused():
    column = wb.embedding_column(
        wb.categorical_column_with_embedding("id", tf.int64),
        3,
        ckpt_to_load_from="/model",
        tensor_name_in_ckpt="table",
    )
    with pytest.raises(UnsupportedError, match="'id_embedding': ckpt_to_load_from = '/model'"):
        input_layer([column])


@pytest.mark.parametrize(
    ("dtype", "fed", "message"),
    [
        (tf.string, [[1]], "was fed int32 values; expected values of its dtype string"),
        (tf.int64, [["a"]], "was fed string values; expected values of its dtype int6"),
        (tf.int64, [[1.0]], "was fed float32 values; expected strings or integers"),
    ],
)
def test_features_of_another_dtype_are_refused(dtype, fed, message):
    column = wb.embedding_column(wb.categorical_column_with_embedding("id", dtype), 3)
    with pytest.raises(OptionError, match=message):
        stock.input_layer({"id": tf.constant(fed)}, [column])


def test_wrong_options_are_refused():
    make = wb.categorical_column_with_embedding
    with pytest.raises(OptionError, match=r"'id'\): dtype is float32; expected tf.string or an"):
        make("id", tf.float32)
    for wrong in (0, True, 1.5, "2"):
        with pytest.raises(
            OptionError, match=rf"'id'\): partition_num is {wrong!r}; expected None"
        ):
            make("id", partition_num=wrong)


def test_columns_that_cannot_share_are_refused():
    message = "the columns 'id', 'other' cannot share one EmbeddingVariable; expected all of them"
    keys = wb.categorical_column_with_embedding("id", tf.int64)
    for other in (
        stock.categorical_column_with_identity("other", 5),
        wb.categorical_column_with_embedding("other", tf.string),
        wb.categorical_column_with_embedding("other", tf.int64, 2),
    ):
        with pytest.raises(OptionError, match=message):
            wb.shared_embedding_columns([keys, other], 3)


def test_a_column_of_keys_comes_back_from_its_config():
    column = wb.categorical_column_with_embedding("id", tf.int64, 2)
    assert type(column).from_config(column.get_config()) == column

"""Embedding columns whose lookups are fused: the same variables, values and gradients as stock."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2 as fc

from tests.builders.grids import every_value
from workbench import ignored
from workbench.compat.contrib.feature_column import sequence_input_layer
from workbench.errors import OptionError, UnsupportedError
from workbench.ops.feature_column import columns as wb
from workbench.ops.feature_column.embedding_columns import EmbeddingColumn
from workbench.ops.lookup.fusion import (
    chosen_fusion,
    embedding_lookup_sparse,
    fused_embeddings,
    safe_embedding_lookup_sparse,
)

v1 = tf.compat.v1
stock = v1.feature_column
# The last op of each version's lookup; see `lookups`.
# The first op of each.
FUSED = {"v1": "WorkbenchPreLookUp", "v2": "WorkbenchPruneInvalidAndFillEmptyRows"}
VERSIONS = sorted(FUSED)


def sparse(rows, dtype=tf.int64, shape=None):
    """Rows of values, left-aligned, as a SparseTensor."""
    at = [[r, c] for r, row in enumerate(rows) for c in range(len(row))]
    flat = [value for row in rows for value in row]
    width = max(map(len, rows), default=0)
    return tf.SparseTensor(
        np.reshape(np.array(at, np.int64), [-1, 2]),
        tf.constant(flat, dtype),
        shape or [len(rows), width],
    )


def features():
    words = [["a", "b", "a"], [], ["c"], ["b", "b"]]
    return {
        "id": sparse([[1, 2, 1], [], [3], [0, 0]]),
        "other": sparse([[0], [3, 2], [], [1, 1]]),
        "word": sparse(words, tf.string),
        "weight": sparse([[1.0, -2.0, 0.5], [], [3.0], [2.0, 0.0]], tf.float32),
        "age": tf.constant([[1.5], [20.0], [70.0], [33.0]]),
        "dense": tf.constant([[1], [-1], [2], [0]], tf.int64),
    }


def identity(key="id"):
    return stock.categorical_column_with_identity(key, 5)


def vocabulary():
    # "c" is out of the vocabulary: id -1, which the lookup drops.
    return stock.categorical_column_with_vocabulary_list("word", ["a", "b"])


def weighted():
    return stock.weighted_categorical_column(identity(), "weight")


CATEGORICAL = {
    "identity": identity,
    "dense": lambda: identity("dense"),
    "hash": lambda: stock.categorical_column_with_hash_bucket("word", 7),
    "vocabulary": vocabulary,
    "weighted": weighted,
    "crossed": lambda: stock.crossed_column(["word", vocabulary()], 11),
    "bucketized": lambda: stock.bucketized_column(stock.numeric_column("age"), [18, 40, 65]),
}


def initializer():
    return v1.random_uniform_initializer(-1, 1, seed=7)


def result(build, *, use_resource=True, partitioner=None, context=None):
    """Runs what `build` makes in a graph of its own.

    Returns:
      variables (names and shapes), output, gradient of each variable, types of the graph's ops.
    """
    with tf.Graph().as_default() as graph:
        with (
            v1.variable_scope("model", use_resource=use_resource, partitioner=partitioner),
            context or contextlib.nullcontext(),
        ):
            output = build()
        variables = v1.trainable_variables()
        slope = tf.cos(tf.cast(tf.range(tf.size(output)), tf.float32))
        loss = tf.reduce_sum(output * tf.reshape(slope, tf.shape(output)))
        gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, variables)]
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            values = session.run((output, gradients))
        shapes = [(each.name, each.shape.as_list()) for each in variables]
        return shapes, *values, [op.type for op in graph.get_operations()]


def lookups(types):
    """Which kind of lookup each op of these types ends."""
    return {version for version, op in FUSED.items() if op in types} | (
        {"stock"} & {"stock" for op in types if op.startswith("SparseSegment")}
    )


def same(fused, plain, version):
    assert fused[0] == plain[0]
    np.testing.assert_allclose(fused[1], plain[1], rtol=1e-5, atol=1e-6)
    for one, other in zip(fused[2], plain[2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert lookups(fused[3]) == {version}
    assert not any(op.startswith("Workbench") for op in plain[3])


@every_value(
    version=VERSIONS,
    use_resource=[True, False],
    column=[(kind, "mean") for kind in sorted(CATEGORICAL)]
    + [(kind, combiner) for kind in ("identity", "weighted") for combiner in ("sum", "sqrtn")],
)
def test_a_column_has_stocks_variable_values_and_gradients(column, use_resource, version):
    kind, combiner = column
    options = {"combiner": combiner, "initializer": initializer()}
    made = CATEGORICAL[kind]()
    plain = [stock.embedding_column(made, 3, **options)]
    fused = [wb.embedding_column(made, 3, do_fusion=version, **options)]
    same(
        result(lambda: stock.input_layer(features(), fused), use_resource=use_resource),
        result(lambda: stock.input_layer(features(), plain), use_resource=use_resource),
        version,
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "options", [{"max_norm": 0.5}, {"use_safe_embedding_lookup": False}], ids=str
)
@pytest.mark.parametrize("kind", ["identity", "weighted"])
def test_options_of_a_column_count(kind, options, version):
    options = {**options, "initializer": initializer()}
    made = CATEGORICAL[kind]()
    plain = [stock.embedding_column(made, 3, **options)]
    fused = [wb.embedding_column(made, 3, do_fusion=version, **options)]
    same(
        result(lambda: stock.input_layer(features(), fused)),
        result(lambda: stock.input_layer(features(), plain)),
        version,
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("use_resource", [True, False])
def test_a_partitioned_variable(use_resource, version):
    options = {"use_resource": use_resource, "partitioner": v1.fixed_size_partitioner(2)}
    plain = stock.embedding_column(identity(), 3, initializer=initializer())
    fused = wb.embedding_column(identity(), 3, initializer=initializer(), do_fusion=version)
    expected = result(lambda: stock.input_layer(features(), [plain]), **options)
    assert len(expected[0]) == 2
    same(result(lambda: stock.input_layer(features(), [fused]), **options), expected, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("use_resource", [True, False])
@pytest.mark.parametrize("partitioner", [None, v1.fixed_size_partitioner(2)], ids=["one", "two"])
def test_shared_columns(partitioner, use_resource, version):
    def build(make, **options):
        columns = make([identity(), identity("other")], 3, initializer=initializer(), **options)
        return lambda: stock.input_layer(features(), columns)

    options = {"use_resource": use_resource, "partitioner": partitioner}
    expected = result(build(stock.shared_embedding_columns), **options)
    assert len(expected[0]) == (2 if partitioner else 1)
    same(
        result(build(wb.shared_embedding_columns, do_fusion=version), **options), expected, version
    )


def sequence_layer(columns):
    return sequence_input_layer(features(), columns)[0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_sequence_columns(weights, shared, version):
    def build(module, **options):
        made = stock.sequence_categorical_column_with_identity("id", 5)
        if weights:
            made = stock.weighted_categorical_column(made, "weight")
            made = fc.SequenceCategoricalColumn(made)
        options = {**options, "initializer": initializer()}
        columns = (
            module.shared_embedding_columns([made], 3, **options)
            if shared
            else [module.embedding_column(made, 3, **options)]
        )
        return lambda: sequence_layer(columns)

    expected = result(build(stock))
    assert expected[1].shape == (4, 3, 3)
    same(result(build(wb, do_fusion=version)), expected, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_in_keras_style_layers(version):
    """The path of DenseFeatures, which keeps a column's variable for it."""

    class State:
        def create_variable(self, column, name, shape, **options):
            del options["use_resource"]
            self.variable = v1.get_variable(name, shape, **options)

        def get_variable(self, column, name):
            return self.variable

    def build(column):
        def layer():
            state = State()
            column.create_state(state)
            return column.get_dense_tensor(fc.FeatureTransformationCache(features()), state)

        return layer

    plain = stock.embedding_column(weighted(), 3, initializer=initializer())
    fused = wb.embedding_column(weighted(), 3, initializer=initializer(), do_fusion=version)
    same(result(build(fused)), result(build(plain)), version)


def graph_of(build):
    with tf.Graph().as_default() as graph:
        build()
        return graph.as_graph_def()


@pytest.mark.parametrize("do_fusion", [None, False])
def test_without_fusion_the_graph_is_the_very_stock_one(do_fusion):
    def build(module, **options):
        options = {**options, "initializer": initializer()}
        column = module.embedding_column(weighted(), 3, **options)
        shared = module.shared_embedding_columns([identity(), identity("other")], 2, **options)
        return lambda: stock.input_layer(features(), [column, *shared])

    assert graph_of(build(wb, do_fusion=do_fusion)) == graph_of(build(stock))


def test_a_stock_checkpoint_goes_into_a_fused_column(tmp_path):
    def session(column):
        output = stock.input_layer(features(), [column])
        opened = v1.Session()
        opened.run(v1.global_variables_initializer())
        return opened, output

    with tf.Graph().as_default():
        opened, output = session(stock.embedding_column(identity(), 3))
        expected = opened.run(output)
        path = v1.train.Saver().save(opened, str(tmp_path / "model"))
    with tf.Graph().as_default():
        opened, output = session(wb.embedding_column(identity(), 3, do_fusion="v2"))
        assert np.abs(opened.run(output) - expected).max() > 1e-3
        v1.train.Saver().restore(opened, path)
        np.testing.assert_allclose(opened.run(output), expected, rtol=1e-6)
    with tf.Graph().as_default():
        name = "input_layer/id_embedding/embedding_weights"
        opened, output = session(
            wb.embedding_column(identity(), 3, "mean", None, path, name, do_fusion="v1")
        )
        np.testing.assert_allclose(opened.run(output), expected, rtol=1e-6)


@pytest.mark.parametrize("parts", [1, 2])
def test_shared_columns_start_from_a_checkpoint(parts, tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("table", initializer=np.full([5, 2], 4.0, np.float32))
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, str(tmp_path / "model"))
    columns = wb.shared_embedding_columns(
        [identity("dense")], 2, ckpt_to_load_from=path, tensor_name_in_ckpt="table", do_fusion="v2"
    )
    partitioner = v1.fixed_size_partitioner(parts)
    output = result(lambda: stock.input_layer(features(), columns), partitioner=partitioner)[1]
    assert output.tolist() == [[4, 4], [0, 0], [4, 4], [4, 4]]


# The context.


def layer(column):
    return lambda: stock.input_layer(features(), [column])


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


# What a column keeps, and what is refused.


def test_a_column_is_stocks_with_one_more_field():
    column = wb.embedding_column(identity(), 3, do_fusion="v1")
    assert isinstance(column, type(stock.embedding_column(identity(), 3)))
    assert column.name == "id_embedding"
    assert stock.make_parse_example_spec([column]) == {"id": tf.io.VarLenFeature(tf.int64)}
    changed = column._replace(dimension=4)
    assert (changed.dimension, changed.do_fusion) == (4, "v1")
    (shared,) = wb.shared_embedding_columns([identity()], 3, do_fusion="v2")
    assert shared._replace(combiner="sum").do_fusion == "v2"
    config = wb.embedding_column(
        identity(), 3, initializer=v1.ones_initializer(), do_fusion="v1"
    ).get_config()
    again = EmbeddingColumn.from_config(config)
    assert (again.do_fusion, again.categorical_column) == ("v1", identity())


@pytest.mark.parametrize("wrong", ["v3", "V1", 1, 0, b"v1"])
def test_unknown_versions_are_refused_by_name(wrong):
    expected = (
        rf"do_fusion is {wrong!r}; expected 'v1', 'v2', 'grouped', True .* None \(= the context\)"
    )
    for make in (
        lambda: wb.embedding_column(identity(), 3, do_fusion=wrong),
        lambda: wb.shared_embedding_columns([identity()], 3, do_fusion=wrong),
        lambda: safe_embedding_lookup_sparse(None, None, do_fusion=wrong),
    ):
        with pytest.raises(OptionError, match=expected):
            make()


@pytest.mark.parametrize("wrong", ["v3", True, False, 2])
def test_a_context_of_an_unknown_version_is_refused(wrong):
    expected = rf"fused_embeddings\(version\) is {wrong!r}; expected 'v1', 'v2', 'grouped', or None"
    with pytest.raises(OptionError, match=expected), fused_embeddings(wrong):
        pass


def test_stocks_own_checks_remain():
    with pytest.raises(ValueError, match="Invalid dimension 0"):
        wb.embedding_column(identity(), 0, do_fusion="v2")
    with pytest.raises(ValueError, match="initializer must be callable"):
        wb.embedding_column(identity(), 3, initializer=1.0)
    with pytest.raises(ValueError, match="same number of buckets"):
        other = stock.categorical_column_with_identity("other", 9)
        wb.shared_embedding_columns([identity(), other], 3, do_fusion="v2")


def test_a_collection_that_holds_another_variable_is_refused():
    columns = wb.shared_embedding_columns(
        [identity()], 3, shared_embedding_collection_name="mine", do_fusion="v2"
    )
    v1.add_to_collection("mine", v1.get_variable("other", [2, 2]))
    message = (
        r"column 'id_shared_embedding' .* shape \[5, 3\] .* 'mine', which holds 1 with \[2, 2\]"
    )
    with pytest.raises(OptionError, match=message):
        stock.input_layer(features(), columns)


def test_sequences_want_sequence_columns():
    with pytest.raises(OptionError, match="'age' of type NumericColumn; expected embedding_column"):
        sequence_layer([stock.numeric_column("age")])


def test_sequences_stand_in_the_order_of_their_names():
    columns = [
        wb.embedding_column(
            stock.sequence_categorical_column_with_identity(key, 5),
            1,
            initializer=v1.constant_initializer(value),
            do_fusion="v2",
        )
        for key, value in (("other", 2.0), ("id", 1.0))
    ]
    fed = features()
    fed["other"] = fed["id"]
    output, lengths = sequence_input_layer(fed, columns)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        values, counted = session.run([output, lengths])
    assert values[0].tolist() == [[1, 2]] * 3
    assert counted.tolist() == [3, 0, 1, 2]


def test_lengths_of_sequences_must_agree():
    keys = ("id", "other")
    fed = {key: v1.sparse_placeholder(tf.int64, [None, None]) for key in keys}
    made = [stock.sequence_categorical_column_with_identity(key, 5) for key in keys]
    columns = [wb.embedding_column(each, 2, do_fusion="v2") for each in made]
    output, lengths = sequence_input_layer(fed, columns)

    def feed(rows):
        indices = [[r, c] for r, row in enumerate(rows) for c in range(len(row))]
        flat = [value for row in rows for value in row]
        return v1.SparseTensorValue(indices, flat, [len(rows), max(map(len, rows))])

    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        alike = {fed["id"]: feed([[1, 2], [3]]), fed["other"]: feed([[4, 4], [0]])}
        assert session.run(lengths, alike).tolist() == [2, 1]
        assert session.run(output, alike).shape == (2, 2, 4)
        for other in ([[4], [0, 0]], [[4, 4, 4], [0]]):
            apart = {**alike, fed["other"]: feed(other)}
            for fetch in (output, lengths):
                with pytest.raises(
                    tf.errors.InvalidArgumentError, match="lengths of the columns differ"
                ):
                    session.run(fetch, apart)

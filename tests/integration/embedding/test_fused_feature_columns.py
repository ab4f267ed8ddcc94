"""Embedding columns whose lookups are fused: the same variables, values and gradients as stock."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2 as fc

from tests.builders.grids import every_value
from tests.builders.stock_columns import (
    CATEGORICAL,
    VERSIONS,
    features,
    graph_of,
    identity,
    initializer,
    result,
    same,
    sequence_layer,
    stock,
    v1,
    weighted,
)
from workbench.ops.feature_column import columns as wb


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

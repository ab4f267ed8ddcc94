"""DeepRec's names around embeddings, under `workbench.compat`.

Whole scripts run in a process of their own, because importing `workbench.compat.v1` switches
TensorFlow to v1 behaviour; `workbench.compat.contrib` alone does not.
"""

from __future__ import annotations

import ast
import importlib

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.scripts import printed
from workbench.compat import contrib
from workbench.compat.contrib.layers import feature_column, feature_column_ops
from workbench.compat.python.ops import embedding_ops
from workbench.errors import OptionError, UnsupportedError
from workbench.ops.lookup import fused, fusion

v1 = tf.compat.v1
stock = v1.feature_column

FEATURES = """
ids = tf.SparseTensor(
    indices=[[n, n] for n in range(5)], values=tf.cast([1, 2, 3, 4, 5], tf.int64),
    dense_shape=[5, 4],  # one column less than the indices: as many scripts have it
)
"""
TRAINED = """
loss = tf.reduce_sum(tf.multiply(emb, 2.0, name="multiply"), name="reduce_sum")
ftrl = tf.train.FtrlOptimizer(
    0.1, l1_regularization_strength=2.0, l2_regularization_strength=0.00001
)
train_op = ftrl.apply_gradients(ftrl.compute_gradients(loss))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(3):
        values, _, total = sess.run([emb, train_op, loss])
        print([sorted(set(values.ravel().tolist())), float(total)])
print(sorted({op.type for op in loss.graph.get_operations() if "PostLookUp" in op.type}))
"""
# Of these scripts under DeepRec's rules, with every row of ones; from a stock dense variable too.
GOLDEN = [(1.0, 30.0), (0.6462797, 19.38839), (0.5760069, 17.28021)]


def printed_values(script, directory):
    return [ast.literal_eval(line) for line in printed(script, directory)]


def golden(lines, kinds):
    assert lines[3] == kinds
    for (value, total), (values, loss) in zip(GOLDEN, lines, strict=False):
        np.testing.assert_allclose(values, value, rtol=1e-6)
        assert loss == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize(
    ("do_fusion", "kinds"),
    [
        ("v2", ["WorkbenchPostLookUpV2", "WorkbenchPostLookUpV2Grad"]),
        ("v1", ["WorkbenchPostLookUp", "WorkbenchPostLookUpGrad"]),
        (None, []),
    ],
)
def test_a_script_of_core_feature_columns(do_fusion, kinds, tmp_path):
    script = f"""
column = tf.feature_column.categorical_column_with_embedding("clicks", dtype=tf.dtypes.int64)
embedding = tf.feature_column.embedding_column(
    categorical_column=column, dimension=3,
    initializer=tf.ones_initializer(tf.dtypes.float32), do_fusion={do_fusion!r},
)
emb = tf.feature_column.input_layer({{"clicks": ids}}, [embedding])
"""
    golden(printed_values(FEATURES + script + TRAINED, tmp_path), kinds)


@pytest.mark.parametrize(
    "home",
    ["workbench.compat.contrib.layers.python.layers", "workbench.compat.contrib.layers"],
)
def test_a_script_of_contribs_feature_columns(home, tmp_path):
    script = f"""
from {home} import feature_column
from {home} import feature_column_ops
column = feature_column.sparse_column_with_embedding(column_name="clicks", dtype=tf.int64)
embedding = feature_column.embedding_column(
    sparse_id_column=column, dimension=3,
    initializer=tf.ones_initializer(tf.dtypes.float32), do_fusion="v2",
)
emb = feature_column_ops.input_from_feature_columns(
    columns_to_tensors={{"clicks": ids}}, feature_columns=[embedding]
)
"""
    lines = printed_values(FEATURES + script + TRAINED, tmp_path)
    golden(lines, ["WorkbenchPostLookUpV2", "WorkbenchPostLookUpV2Grad"])


def test_a_script_of_sequences_and_weights(tmp_path):
    script = """
ids = tf.SparseTensor(
    [[0, 0], [0, 1], [1, 1], [2, 2], [3, 3], [4, 4]], tf.cast([1, 3, 2, 3, 4, 5], tf.int64), [5, 5]
)
key = tf.contrib.feature_column.sequence_categorical_column_with_embedding("clicks", tf.int32)
column = tf.feature_column.embedding_column(key, 3, initializer=tf.ones_initializer())
emb, length = tf.contrib.feature_column.sequence_input_layer({"clicks": ids}, [column])
key = tf.feature_column.categorical_column_with_embedding("shows", dtype=tf.int64)
column = tf.feature_column.embedding_column(
    tf.feature_column.weighted_categorical_column(key, "weight"), 3, "sum",
    initializer=tf.ones_initializer(), do_fusion="v2",
)
# The weights stand in the order of the ids; their own indices do not count.
weight = [[2.0], [5.0], [4.0], [8.0], [3.0], [1.0]]
wide = tf.feature_column.input_layer({"shows": ids, "weight": weight}, [column])
step = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(emb) + tf.reduce_sum(wide))
with tf.train.MonitoredTrainingSession() as sess:
    before = sess.run([emb, wide, length])
    print([before[0].sum(axis=2).tolist(), before[1][:, 0].tolist(), before[2].tolist()])
    sess.run(step)
    print([bool((sess.run(wide) < before[1]).all())])
"""
    (embedded, wide, length), (trained,) = printed_values(script, tmp_path)
    filled = 3 * np.eye(5)
    filled[0, 1] = 3
    assert embedded == filled.tolist()
    assert wide == [7.0, 4.0, 8.0, 3.0, 1.0]
    assert length == [2, 2, 3, 4, 5]
    assert trained


def test_deeprecs_names_are_there_and_the_context_counts(tmp_path):
    script = """
import workbench.ops as ops
table = tf.get_embedding_variable(
    "table", embedding_dim=2, initializer=tf.ones_initializer(),
    ev_option=tf.EmbeddingVariableOption(
        filter_option=tf.CounterFilter(filter_freq=2),
        init_option=tf.InitializerOption(default_value_dim=16),
    ),
)
print([type(table) is tf.EmbeddingVariable])
ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([3, 4], tf.int64), [2, 1])
with tf.fused_embeddings("v2"):
    fused = tf.nn.safe_embedding_lookup_sparse(table, ids)
    loose = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
plain = tf.nn.safe_embedding_lookup_sparse(table, ids)
rows = tf.nn.embedding_lookup(table, [3, 4])
print(["PostLookUpV2" in fused.op.type or "PostLookUpV2" in str(fused.op.inputs[0].op.type)])
print([op.type for op in (loose.op, plain.op, rows.op)])
print([tf.nn.relu is not None, hasattr(tf.feature_column, "numeric_column")])
names = ["GradientDescent", "Adagrad", "Adam", "Ftrl"]
print([getattr(tf.train, f"{name}Optimizer").__module__.split(".")[0] for name in names])
print([tf.train.MomentumOptimizer.__module__.split(".")[0]])
"""
    lines = printed_values(script, tmp_path)
    assert lines[0] == [True]
    assert lines[1] == [True]
    assert not any("PostLookUp" in kind for kind in lines[2][1:])
    assert lines[3] == [True, True]
    assert lines[4] == ["workbench"] * 4
    assert lines[5] == ["tensorflow"]


def test_one_function_stands_behind_every_path():
    assert embedding_ops.safe_embedding_lookup_sparse is fusion.safe_embedding_lookup_sparse
    inner = contrib.layers.python.layers
    assert inner.feature_column is contrib.layers.feature_column is feature_column
    assert inner.feature_column_ops is feature_column_ops
    for home in (inner.embedding_ops, embedding_ops):
        found = home.fused_safe_embedding_lookup_sparse
        assert found is fused.fused_safe_embedding_lookup_sparse


def run(output):
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        return session.run(output)


def test_contribs_columns_are_tensorflows():
    ids = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([7, 3, 4], tf.int64), [2, 2])
    words = tf.SparseTensor(ids.indices, tf.constant(["a", "b", "c"]), ids.dense_shape)
    weights = tf.SparseTensor(ids.indices, tf.constant([2.0, 1.0, 3.0]), ids.dense_shape)
    fed = {"id": ids, "word": words, "weight": weights, "age": tf.constant([[1.0, 2], [3, 4]])}
    made = v1.constant_initializer(np.arange(10).reshape(5, 2))
    whole = feature_column.sparse_column_with_integerized_feature("id", 5)
    weighted = feature_column.weighted_sparse_column(whole, "weight")
    hashed = feature_column.sparse_column_with_hash_bucket("word", 5)
    columns = [
        feature_column.embedding_column(weighted, 2, "sum", made, do_fusion="v1"),
        feature_column.embedding_column(hashed, 2, initializer=made, do_fusion="v2"),
        feature_column.real_valued_column("age", 2, normalizer=lambda age: age * 10),
    ]
    outs = {}
    output = feature_column_ops.input_from_feature_columns(fed, columns, cols_to_outs=outs)
    assert {variable.name for variable in v1.trainable_variables()} == {
        f"input_from_feature_columns/input_layer/{name}_embedding/embedding_weights:0"
        for name in ("id_weighted_by_weight", "word")
    }
    values, parts = run([output, [outs[column] for column in columns]])
    # Ids 7, 3 and 4 modulo 5 are rows (4, 5), (6, 7) and (8, 9).
    assert parts[0].tolist() == [[8, 10], [6 + 24, 7 + 27]]
    assert parts[2].tolist() == [[10, 20], [30, 40]]
    expected = stock.embedding_column(
        stock.categorical_column_with_hash_bucket("word", 5), 2, initializer=made
    )
    np.testing.assert_array_equal(parts[1], run(stock.input_layer(fed, [expected])))
    # In the order of the names: age, id, word.
    np.testing.assert_array_equal(values, np.concatenate([parts[2], parts[0], parts[1]], 1))


def test_contribs_default_initializer_depends_on_the_buckets():
    column = feature_column.sparse_column_with_hash_bucket("word", 100)
    embedding = feature_column.embedding_column(column, 2)
    drawn = run(embedding.initializer([2000], tf.float32))
    assert 0.5 / 10 < drawn.std() < 1 / 10
    keys = feature_column.sparse_column_with_embedding("word")
    drawn = run(feature_column.embedding_column(keys, 100).initializer([2000], tf.float32))
    assert 0.5 / 10 < drawn.std() < 1 / 10


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("contrib", "rnn"),
        ("contrib.layers", "fully_connected"),
        ("contrib.layers.feature_column", "bucketized_column"),
        ("contrib.layers.feature_column_ops", "weighted_sum_from_feature_columns"),
        ("contrib.layers.embedding_ops", "scattered_embedding_lookup"),
        ("contrib.feature_column", "concatenate_context_input"),
    ],
)
def test_the_rest_of_contrib_is_refused_by_name(module, name):
    home = contrib
    for part in module.split(".")[1:]:
        home = getattr(home, part)
    with pytest.raises(UnsupportedError, match=rf"tf\.{module}\.{name} is not available; work"):
        getattr(home, name)
    assert not hasattr(home, "_private")


def test_importing_what_contrib_lacks_says_so():
    importlib.import_module("workbench.compat.contrib.layers.python.layers.feature_column")
    with pytest.raises(UnsupportedError, match=r"tf\.contrib\.rnn is not available"):
        exec("from workbench.compat.contrib import rnn")


def test_what_contribs_columns_do_not_take_is_refused():
    with pytest.raises(UnsupportedError, match="'word', hash_keys=\\[1\\]\\) is not supported"):
        feature_column.sparse_column_with_hash_bucket("word", 5, hash_keys=[1])
    with pytest.raises(
        UnsupportedError, match="'id', steps_to_live=9\\) .* EmbeddingVariableOption"
    ):
        feature_column.sparse_column_with_embedding("id", tf.int64, steps_to_live=9)
    with pytest.raises(UnsupportedError, match="'id', init_data_source='x'\\)"):
        feature_column.sparse_column_with_embedding("id", tf.int64, init_data_source="x")
    with pytest.raises(UnsupportedError, match="'age', dimension=None\\) is not supported"):
        feature_column.real_valued_column("age", None)
    with pytest.raises(OptionError, match="'id'\\): dtype is float32; expected an integer type"):
        feature_column.sparse_column_with_integerized_feature("id", 5, dtype=tf.float32)
    whole = feature_column.sparse_column_with_integerized_feature("id", 5)
    with pytest.raises(OptionError, match="'id'\\) was fed string values; expected integers"):
        stock.input_layer({"id": tf.constant([["a"]])}, [feature_column.embedding_column(whole, 2)])

"""Keras models, modules and functions load where Workbench is not installed."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.stock_python import StockError, stock_outputs
from workbench.core.tf_graph.saved_model_file import read_saved_model
from workbench.errors import OptionError
from workbench.exporting.saved_proto import own_ops
from workbench.ops import GroupedEmbedding, grouped_embedding_lookup

IDS = np.random.default_rng(0).integers(-1, 50, (10_000, 3)).astype(np.int64)


@pytest.fixture(autouse=True)
def graph():
    """These run eagerly."""


def recommender() -> keras.Model:
    ids = {name: keras.Input((3,), dtype="int64", name=name) for name in ("user", "shop")}
    layer = GroupedEmbedding({"user": (50, 8), "shop": (50, 4)}, concatenate=True)
    return keras.Model(ids, keras.layers.Dense(1)(layer(ids)))


class Recommender(tf.Module):
    """A table with two ways to serve it, a vocabulary, and a step that trains."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.table = tf.Variable(tf.random.stateless_normal([50, 8], [1, 2]))
        start = tf.lookup.TextFileInitializer(
            words,
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        self.words = tf.lookup.StaticHashTable(start, 0)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.int64, "ids")])
    def vectors(self, ids):
        (found,) = grouped_embedding_lookup(
            [self.table], [tf.RaggedTensor.from_tensor(ids, padding=-1)]
        )
        return {"vectors": found}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def of_words(self, words):
        (found,) = grouped_embedding_lookup([self.table], [self.words.lookup(words)])
        return {"vectors": found}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.int64)])
    def train(self, ids):
        with tf.GradientTape() as tape:
            (found,) = grouped_embedding_lookup([self.table], [tf.nn.relu(ids)])
            loss = tf.reduce_sum(found)
        self.table.assign_sub(tf.convert_to_tensor(tape.gradient(loss, self.table)))
        return loss


def ops_left(folder) -> set[str]:
    return set().union(*(own_ops(meta) for meta in read_saved_model(folder).meta_graphs))


@pytest.mark.parametrize("fused", [False, True])
def test_a_keras_model(fused, tmp_path):
    model = recommender()
    given = {"user": IDS, "shop": IDS[:, ::-1].copy()}
    if fused:
        model.compile("sgd", "mse")
        wb.fuse_model(model)
        model.fit(given, np.zeros([len(IDS), 1]), batch_size=1000, verbose=0)
    expected = model(given).numpy()
    result = wb.export(model, tmp_path / "out")
    assert result.replaced["WorkbenchResourceGroupedLookUp"] and not ops_left(tmp_path / "out")
    for signature in ("serving_default", "serve"):
        if signature in result.signatures:
            (found,) = stock_outputs(
                tmp_path / "out", given, tmp_path, signature=signature
            ).values()
            np.testing.assert_array_equal(found, expected)
    assert "serving_default" in result.signatures


def test_a_module_with_signatures_and_a_vocabulary(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("apple\nbanana\n")
    module = Recommender(str(words))
    module.train(IDS)
    signatures = {"ids": module.vectors, "words": module.of_words}
    result = wb.export(module, tmp_path / "out", signatures=signatures)
    words.unlink()
    assert result.signatures == ("ids", "words") and list(result.left_out) == ["train"]
    assert "it trains" in result.left_out["train"] and "Left out train: " in str(result)
    found = stock_outputs(tmp_path / "out", {"ids": IDS}, tmp_path, signature="ids")
    expected = module.vectors(tf.constant(IDS))["vectors"].numpy()
    np.testing.assert_array_equal(found["vectors"], expected)
    given = {"words": np.array(["banana", "none"])}
    found = stock_outputs(tmp_path / "out", given, tmp_path, signature="words", session=True)
    table = module.table.numpy()
    np.testing.assert_array_equal(found["vectors"], table[[1, 0]])
    assert not ops_left(tmp_path / "out")


def test_functions(tmp_path):
    table = tf.Variable(tf.random.stateless_normal([50, 8], [1, 2]))

    @tf.function
    def serve(ids):
        (found,) = grouped_embedding_lookup([table], [ids])
        return {"vectors": found}

    specs = {"ids": tf.TensorSpec([None, 3], tf.int64)}
    wb.export(serve, tmp_path / "function", inputs=specs)
    wb.export(serve.get_concrete_function(**specs), tmp_path / "concrete")
    expected = serve(tf.constant(IDS))["vectors"].numpy()
    for name in ("function", "concrete"):
        found = stock_outputs(tmp_path / name, {"ids": IDS}, tmp_path)["vectors"]
        np.testing.assert_array_equal(found, expected)


def test_inputs_of_a_function_are_nested_as_its_arguments_are(tmp_path):
    @tf.function
    def serve(pair, scale):
        return pair["a"] * scale + pair["b"][0]

    vector = tf.TensorSpec([None], tf.float32)
    specs = [{"a": vector, "b": (vector,)}, tf.TensorSpec([], tf.float32)]
    wb.export(serve, tmp_path / "out", inputs=specs)
    (meta,) = read_saved_model(tmp_path / "out").meta_graphs
    assert len(meta.signature_def["serving_default"].inputs) == 3
    with pytest.raises(OptionError, match="cannot be traced with these inputs: "):
        wb.export(serve, tmp_path / "other", inputs=vector)


def test_a_function_that_was_fused(tmp_path):
    table = tf.Variable(tf.random.stateless_normal([50, 8], [1, 2]))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.int64, "ids")])
    def serve(ids):
        ids = tf.sparse.from_dense(ids)
        return tf.nn.safe_embedding_lookup_sparse(table, ids)

    concrete = serve.get_concrete_function()
    fused = wb.fuse_function(concrete)
    assert fused is not concrete
    result = wb.export(fused, tmp_path / "out")
    assert sum(result.replaced.values())
    ids = np.maximum(IDS, 0)
    (meta,) = read_saved_model(tmp_path / "out").meta_graphs
    (key,) = meta.signature_def["serving_default"].inputs
    (found,) = stock_outputs(tmp_path / "out", {key: ids}, tmp_path).values()
    np.testing.assert_allclose(found, serve(tf.constant(ids)).numpy(), rtol=1e-6, atol=1e-6)


def test_a_saved_model_and_its_versions(tmp_path):
    module = Recommender(_words(tmp_path))
    for version in (1, 3):
        module.table.assign_add(tf.ones_like(module.table))
        tf.saved_model.save(module, str(tmp_path / f"own/{version}"), module.vectors)
    expected = module.vectors(tf.constant(IDS))["vectors"].numpy()
    assert ops_left(tmp_path / "own/3")
    result = wb.export(tmp_path / "own", tmp_path / "out")
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["1", "3"]
    assert result.replaced
    found = stock_outputs(tmp_path / "out/3", {"ids": IDS}, tmp_path)["vectors"]
    np.testing.assert_array_equal(found, expected)
    older = stock_outputs(tmp_path / "out/1", {"ids": IDS}, tmp_path)["vectors"]
    assert not np.array_equal(older, expected)
    with pytest.raises(OptionError, match="has the versions 1, 3, which keep their numbers"):
        wb.export(tmp_path / "own", tmp_path / "numbered", version=2)


def test_a_version_beside_others(tmp_path):
    module = Recommender(_words(tmp_path))
    for version in (1, 2):
        result = wb.export(
            module, tmp_path / "out", signatures={"ids": module.vectors}, version=version
        )
        assert result.path == tmp_path / f"out/{version}"
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["1", "2"]


def test_kept_ops(tmp_path):
    model = recommender()
    given = {"user": tf.constant(IDS), "shop": tf.constant(IDS)}
    result = wb.export(model, tmp_path / "out", keep_ops=True)
    assert result.kept == tuple(sorted(ops_left(tmp_path / "out"))) != ()
    assert "wb.load_saved" in str(result)
    loaded = wb.load_saved(tmp_path / "out")
    np.testing.assert_array_equal(loaded.serve(given).numpy(), model(given).numpy())
    with pytest.raises(StockError, match="Op type not registered 'Workbench"):
        stock_outputs(tmp_path / "out", {"user": IDS, "shop": IDS}, tmp_path)


def test_other_fused_ops_have_stock_forms(tmp_path):
    from workbench import _native

    library = _native.library()
    random = np.random.default_rng(0)
    x = random.normal(size=(64, 5, 8)).astype(np.float32)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 5, 8], tf.float32, "x"),
            tf.TensorSpec([None, 2], tf.string, "text"),
        ]
    )
    def serve(x, text):
        flat = tf.reshape(x, [-1, 40])
        norm = library.workbench_batch_norm(
            x=flat, gamma=tf.fill([40], 2.0), beta=tf.ones([40]), epsilon=1e-3
        )
        columns = library.workbench_hash_columns(
            texts=[text, text], buckets=[7, 9], zero_last=[False, True]
        )
        features = library.workbench_id_columns(
            ids=[5 * flat] * 3,
            columns=[3, 0, -1],
            widths=[0, 2, 0],
            table_rows=[7, 9, 2**40],
            Tid=tf.int64,
        )
        lines = library.workbench_decode_csv(
            records=tf.strings.reduce_join(text, 1, separator=","),
            record_defaults=[tf.constant([""])] * 2,
        )
        return {
            "dots": library.workbench_dot_interaction(x=x, vectors=5, pairs=[1, 7, 13]),
            "pairs": library.workbench_fm_interaction(x=x),
            "kept": library.workbench_fm_interaction(x=x, keep_dims=True),
            "norm": norm.y,
            "variance": norm.variance,
            "product": library.workbench_mat_mul(
                a=flat, b=tf.ones([3, 40]), bias=[tf.ones([3])], transpose_b=True, relu=True
            ),
            "ids": columns.ids[1],
            "places": columns.indices[0],
            "deeper": columns.indices[1],
            **{f"feature_{i}": each for i, each in enumerate(features)},
            "second": library.workbench_hand_on(input=lines[1]),
        }

    module = tf.Module()
    module.serve = serve
    text = np.array([["a", ""], ["", "b"]])
    wb.export(module, tmp_path / "out", signatures=serve)
    found = stock_outputs(tmp_path / "out", {"x": x, "text": text}, tmp_path)
    expected = serve(tf.constant(x), tf.constant(text))
    assert found.keys() == expected.keys() and not ops_left(tmp_path / "out")
    for name, value in expected.items():
        if value.dtype.is_floating:
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], value.numpy(), name)


def _words(folder) -> str:
    path = folder / "words.txt"
    path.write_text("apple\n")
    return str(path)

"""A SavedModel whose file is text is read wherever one is, as TensorFlow does."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

import workbench as wb
from tests.builders import saved_models
from tests.builders.stock_python import stock_outputs
from workbench.core.tf_graph.saved_model_file import read_saved_model
from workbench.errors import DataError, OptionError
from workbench.experiments.serving.server.signature import read_meta_graph, signature_of
from workbench.ops import grouped_embedding_lookup

v1 = tf.compat.v1
IDS = np.arange(12, dtype=np.int64).reshape(4, 3)


@pytest.fixture(autouse=True)
def graph():
    """These run eagerly."""


class Own(tf.Module):
    """A model with an op of Workbench's."""

    def __init__(self) -> None:
        super().__init__()
        self.table = tf.Variable(tf.reshape(tf.range(100.0), [25, 4]))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.int64, "ids")])
    def vectors(self, ids):
        (found,) = grouped_embedding_lookup([self.table], [ids])
        return {"vectors": found}


def as_text(folder: Path) -> Path:
    """Puts text in the place of the file of a SavedModel."""
    text = text_format.MessageToString(read_saved_model(folder))
    (folder / "saved_model.pbtxt").write_text(text)
    (folder / "saved_model.pb").unlink()
    return folder


def of_objects(folder: Path) -> Path:
    wb.export(Own(), folder, keep_ops=True)
    return as_text(folder)


def of_session(folder: Path) -> Path:
    with tf.Graph().as_default(), v1.Session() as session:
        ids = v1.placeholder(tf.int64, [None, 3], "ids")
        table = v1.get_variable("table", initializer=tf.reshape(tf.range(100.0), [25, 4]))
        (found,) = grouped_embedding_lookup([table], [ids])
        session.run(v1.global_variables_initializer())
        wb.export(session, folder, inputs=[ids], outputs={"vectors": found}, keep_ops=True)
    return as_text(folder)


@pytest.mark.parametrize("made", [of_objects, of_session])
def test_is_exported_alone_and_as_a_version(made, tmp_path):
    model = made(tmp_path / "model")
    expected = np.arange(100.0, dtype=np.float32).reshape(25, 4)[IDS.ravel()].reshape(4, 3, 4)
    result = wb.export(model, tmp_path / "stock")
    assert sum(result.replaced.values()) == 1 and not result.kept
    # Text beside the new file would be of another model.
    assert not (tmp_path / "stock" / "saved_model.pbtxt").exists()
    outputs = stock_outputs(tmp_path / "stock", {"ids": IDS}, tmp_path)
    np.testing.assert_array_equal(outputs["vectors"].ravel(), expected.ravel())
    shutil.copytree(model, tmp_path / "versions" / "7")
    wb.export(tmp_path / "versions", tmp_path / "all")
    assert read_saved_model(tmp_path / "all" / "7")
    kept = wb.export(model, tmp_path / "kept", keep_ops=True)
    assert kept.kept
    loaded = wb.load_saved(tmp_path / "kept").signatures["serving_default"]
    found = loaded(ids=tf.constant(IDS))["vectors"].numpy()
    np.testing.assert_array_equal(found.ravel(), expected.ravel())


def test_is_planned_for_and_served(tmp_path):
    saved_models.save(tmp_path / "model", "safe", 3)
    binary = wb.plan_fusion(tmp_path / "model", signature="serving_default")
    as_text(tmp_path / "model")
    text = wb.plan_fusion(tmp_path / "model", signature="serving_default")
    assert text.fused == binary.fused and text.count == 3
    signature = signature_of(read_meta_graph(str(tmp_path / "model")), "serving_default")
    assert len(signature.feeds) == 9


def test_that_is_damaged_is_refused(tmp_path):
    (tmp_path / "saved_model.pbtxt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"saved_model\.pbtxt is damaged"):
        wb.export(tmp_path, tmp_path / "out")
    with pytest.raises(DataError, match=r"saved_model\.pbtxt is damaged"):
        read_meta_graph(str(tmp_path))
    with pytest.raises(OptionError, match="is no folder of a SavedModel"):
        wb.plan_fusion(tmp_path, signature="serving_default")

"""What cannot be exported is one sentence that says what to do."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import workbench as wb
from workbench.errors import DataError, OptionError, OutputError, UnsupportedError
from workbench.ops import GroupedEmbedding, get_embedding_variable, grouped_embedding_lookup

v1 = tf.compat.v1


def simple_session() -> tuple[v1.Session, tf.Tensor, tf.Tensor]:
    x = v1.placeholder(tf.float32, [None], "x")
    weight = v1.get_variable("weight", [], initializer=v1.ones_initializer())
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    return session, x, x * weight


def refused(kind: type, words: str, *arguments, **named) -> None:
    with pytest.raises(kind) as refusal:
        wb.export(*arguments, **named)
    message = str(refusal.value)
    assert words in message and "\n" not in message


def test_folders(tmp_path):
    session, x, y = simple_session()
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    named = {"inputs": [x], "outputs": {"y": y}}
    refused(OutputError, "full: the folder is not empty; give", session, full, **named)
    refused(OutputError, "notes.txt: it is a file; give", session, full / "notes.txt", **named)
    assert (full / "notes.txt").read_text() == "mine"
    empty = tmp_path / "empty"
    empty.mkdir()
    wb.export(session, empty, **named)
    refused(OutputError, "empty: the folder is not empty", session, empty, **named)


def test_arguments(tmp_path):
    session, x, y = simple_session()
    out = tmp_path / "out"
    refused(OptionError, "is a session, whose outputs are not known; give", session, out)
    refused(OptionError, "expected one of both", session, out, outputs=y, signatures={"a": (x, y)})
    refused(OptionError, "signatures is empty", session, out, signatures={})
    refused(OptionError, "has no tensor 'z'", session, out, inputs=[x], outputs="z")
    refused(OptionError, "'weak' is (1,); expected", session, out, signatures={"weak": (1,)})
    refused(OptionError, "has no outputs", session, out, signatures={"s": ([x], {})})
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    refused(OptionError, "is no tensor of the session's graph", session, out, outputs=other)
    refused(OptionError, "version is -1; expected", session, out, outputs=y, version=-1)
    refused(OptionError, "the model is of type int; expected", 3, out)
    refused(OptionError, "outputs is given, but only", str(tmp_path), out, outputs=y)
    assert not out.exists()


def test_graphs(tmp_path):
    session, x, y = simple_session()
    out = tmp_path / "out"
    needs = "signature 'serving_default': its outputs need"
    refused(OptionError, f"{needs} the placeholder 'x', which is none", session, out, outputs=y)
    data = tf.data.Dataset.range(3)
    batch = v1.data.make_one_shot_iterator(data).get_next()
    refused(UnsupportedError, f"{needs} 'IteratorGetNext'", session, out, outputs=batch + 1)
    called = tf.numpy_function(lambda value: value, [x], tf.float32)
    refused(UnsupportedError, "calls Python code", session, out, inputs=[x], outputs=called)
    fresh = v1.get_variable("fresh", [2])
    refused(OptionError, "are not all initialized", session, out, outputs=fresh + 0)


def test_an_input_of_another_signature(tmp_path):
    session, x, y = simple_session()
    z = v1.placeholder(tf.float32, [None], "z")
    signatures = {"first": ({"x": x}, y + z), "second": ({"z": z}, z)}
    needs = "signature 'first': its outputs need the placeholder 'z', which is none of its inputs"
    refused(OptionError, needs, session, tmp_path / "out", signatures=signatures)


def test_rows_that_are_read_in_a_loop(tmp_path):
    table = get_embedding_variable("user", 4)
    keys = v1.placeholder(tf.int64, [None], "keys")
    _, rows = tf.while_loop(
        lambda i, _: i < 2,
        lambda i, rows: (i + 1, rows + table.sparse_read(keys, read_only=True)),
        [0, tf.zeros([1, 4])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 4])],
    )
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        refused(
            UnsupportedError,
            "is read in a loop or a function of its own; read its rows before it, or keep the ops",
            *(session, tmp_path / "out"),
            inputs=[keys],
            outputs=rows,
        )


def test_what_trains(tmp_path):
    table = v1.get_variable("table", [9, 4], use_resource=True)
    ids = v1.placeholder(tf.int64, [None], "ids")
    (vectors,) = grouped_embedding_lookup([table], [ids])
    (gradient,) = tf.gradients(vectors, [table])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        refused(
            UnsupportedError,
            "(WorkbenchGroupedLookUpGrad), which has no stock form: it trains, or counts rows; ",
            *(session, tmp_path / "out"),
            inputs=[ids],
            outputs=gradient.values,
        )
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_no_saved_model(tmp_path):
    out, folder = tmp_path / "out", tmp_path / "model"
    refused(DataError, "no such folder; expected a SavedModel", folder, out)
    folder.mkdir()
    refused(DataError, "it has no saved_model.pb or saved_model.pbtxt; expected", folder, out)
    (folder / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    refused(DataError, "saved_model.pb is damaged", folder, out)
    (folder / "saved_model.pb").write_bytes(b"")
    refused(DataError, "saved_model.pb has no model", folder, out)
    with pytest.raises(DataError, match="no SavedModel"):
        wb.load_saved(out)


def test_saved_models_that_cannot_be_read(tmp_path):
    own = tmp_path / "own"
    keys = v1.placeholder(tf.int64, [None], "keys")
    rows = get_embedding_variable("user", 2).sparse_read(keys, read_only=True)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(own), {"keys": keys}, {"rows": rows})
    index = own / "variables/variables.index"
    index.write_bytes(b"x" * index.stat().st_size)
    refused(DataError, "own: cannot be loaded: ", own, tmp_path / "out")
    index.unlink()
    index.symlink_to("nowhere")
    link = "variables.index: cannot be read: it is no file"
    refused(DataError, link, own, tmp_path / "out", keep_ops=True)
    assert [each.name for each in tmp_path.iterdir()] == ["own"]


def test_a_copy_does_not_have_the_modes_of_its_files(tmp_path):
    session, x, y = simple_session()
    own, out = tmp_path / "own", tmp_path / "out"
    v1.saved_model.simple_save(session, str(own), {"x": x}, {"y": y})
    places = [own, *own.rglob("*")]
    for each in places:
        each.chmod(each.stat().st_mode & ~0o222)
    wb.export(own, out)
    assert all(each.stat().st_mode & 0o200 for each in (out, *out.rglob("*")))
    for each in places:
        each.chmod(each.stat().st_mode | 0o200)


def test_functions_and_models(tmp_path):
    import keras

    out = tmp_path / "out"
    with context.eager_mode():
        variable = tf.Variable(1.0)

        @tf.function
        def serve(x):
            return x * variable

        refused(OptionError, "was traced for 0 kinds of arguments; give inputs=", serve, out)
        concrete = serve.get_concrete_function(tf.TensorSpec([], tf.float32))
        refused(OptionError, "beside a concrete function", concrete, out, inputs=[1])
        refused(OptionError, "is one signature; give", serve, out, signatures={"a": serve})
        refused(OptionError, "neither a session nor", tf.Module(), out, inputs=[1])
        model = keras.Sequential([GroupedEmbedding({"a": (3, 2)})])
        refused(OptionError, "is not built", model, out)
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([1], tf.int64)), 0
        )

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def find(x):
            return table.lookup(x)

        refused(UnsupportedError, "give the tf.Module that holds it", find, out)
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_a_newer_version(tmp_path):
    from workbench.exporting.saved_proto import read_saved_model

    session, _, _ = simple_session()
    z = v1.placeholder(tf.float32, [None, 2, 3], "z")
    from workbench import _native

    dots = _native.library().workbench_fm_interaction(x=z)
    folder = tmp_path / "model"
    result = wb.export(session, folder, inputs=[z], outputs=dots, keep_ops=True)
    assert result.kept == ("WorkbenchFmInteraction",)
    saved = read_saved_model(folder)
    text = saved.SerializeToString().replace(b"WorkbenchFmInteraction", b"WorkbenchFmInteractioX")
    (folder / "saved_model.pb").write_bytes(text)
    note = folder / "assets.extra" / "workbench.json"
    assert json.loads(note.read_text())["ops"] == ["WorkbenchFmInteraction"]
    note.write_text(json.dumps({"workbench": "9.9", "tensorflow": "2.21.0", "ops": []}))
    with pytest.raises(
        UnsupportedError,
        match="lacks the model's op WorkbenchFmInteractioX; "
        "Workbench 9.9 wrote it: install that version or a newer one",
    ):
        wb.load_saved(folder)
    note.write_text("{")
    with pytest.raises(DataError, match="workbench.json: "):
        wb.load_saved(folder)


def test_the_text_begins_with_the_caution(tmp_path):
    session, x, y = simple_session()
    result = wb.export(session, tmp_path / "out", inputs=[x], outputs={"y": y})
    first = str(result).splitlines()[0]
    assert first == (
        "A SavedModel is code that may read and write files: load it only if you trust who made it."
    )
    assert repr(result) == str(result)
    np.testing.assert_equal(result.document()["path"], str(tmp_path / "out"))

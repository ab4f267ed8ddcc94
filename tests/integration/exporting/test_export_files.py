"""An export reads its files out of its own folder, wherever that is moved."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.stock_python import stock_outputs
from workbench.ops import grouped_embedding_lookup

v1 = tf.compat.v1
WORDS = np.array([b"two", b"one", b"none"], object)


@pytest.fixture(autouse=True)
def graph():
    """Each test has sessions with graphs of their own, or runs eagerly."""


def lines_of(path) -> tf.Tensor:
    """The lines of files, which are read at each request."""
    lines = tf.data.TextLineDataset(path)
    return lines.reduce(tf.constant(""), lambda all_of_them, line: all_of_them + line + ";")


def whole(path) -> tf.Tensor:
    return tf.io.read_file(path)


def filled(path) -> tf.Tensor:
    """A table that is filled when the model is loaded."""
    start = tf.lookup.TextFileInitializer(
        path,
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    return tf.strings.as_string(tf.lookup.StaticHashTable(start, -1).lookup(tf.constant(WORDS)))


READS: dict[str, Callable[[str], tf.Tensor]] = {
    "whole": whole,
    "lines": lines_of,
    "of several": lambda path: lines_of([path, path]),
    "by way": lambda path: whole(tf.identity(tf.constant(path))),
    "filled": filled,
    "filled and whole": lambda path: tf.strings.join([filled(path), whole(path)]),
}


def session_with(path: Path, read: Callable[[str], tf.Tensor]):
    ids = v1.placeholder(tf.int64, [None], "ids")
    table = v1.get_variable("table", initializer=tf.reshape(tf.range(20.0), [5, 4]))
    (rows,) = grouped_embedding_lookup([table], [ids])
    outputs = {"rows": rows, "text": tf.reshape(read(str(path)), [-1])}
    session = v1.Session()
    session.run([v1.global_variables_initializer(), v1.tables_initializer()])
    return session, ids, outputs


def moved(made: Path, *gone: Path) -> Path:
    """The export elsewhere, where what it was made of is no more."""
    target = made.parent / f"{made.name} elsewhere" / "model"
    target.parent.mkdir()
    shutil.move(made, target)
    for each in gone:
        shutil.rmtree(each)
    return target


@pytest.fixture
def words(tmp_path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "words.txt").write_text("one\ntwo\n")
    return tmp_path / "source" / "words.txt"


def require_answers(
    folder: Path, expected, scratch: Path, signature: str = "serving_default"
) -> None:
    for session in (True, False):
        given = {"ids": np.arange(3)}
        found = stock_outputs(folder, given, scratch, signature=signature, session=session)
        assert [tf.compat.as_bytes(each) for each in found["text"].tolist()] == expected.tolist()
        assert found["rows"].shape == (3, 4)


@pytest.mark.parametrize("kind", READS)
def test_of_a_session_has_what_is_read_at_requests(kind, words, tmp_path):
    with tf.Graph().as_default():
        session, ids, outputs = session_with(words, READS[kind])
        with session:
            expected = session.run(outputs["text"])
            result = wb.export(session, tmp_path / "out", inputs={"ids": ids}, outputs=outputs)
    assert not result.left_files
    if kind != "filled":
        assert result.copied_files in ({str(words): "words.txt"}, {})
    require_answers(moved(tmp_path / "out", words.parent), expected, tmp_path)


@pytest.mark.parametrize("own", [False, True], ids=["stock", "own ops"])
@pytest.mark.parametrize("named", [False, True], ids=["a path", "an asset"])
@pytest.mark.parametrize("kind", ["whole", "lines", "filled and whole"])
def test_of_a_folder_has_what_is_read_at_requests(kind, named, own, words, tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        ids = v1.placeholder(tf.int64, [None], "ids")
        table = v1.get_variable("table", initializer=tf.reshape(tf.range(20.0), [5, 4]))
        rows = grouped_embedding_lookup([table], [ids])[0] if own else tf.gather(table, ids)
        place = tf.constant(str(words), name="place")
        text = tf.reshape(READS[kind](place), [-1])
        if named:
            v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, place)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        expected = session.run(text)
        builder = v1.saved_model.Builder(str(tmp_path / "own"))
        signature = v1.saved_model.predict_signature_def({"ids": ids}, {"rows": rows, "text": text})
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": signature},
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
            main_op=v1.tables_initializer(),
        )
        builder.save()
    result = wb.export(tmp_path / "own", tmp_path / "out")
    assert not result.left_files, result
    require_answers(moved(tmp_path / "out", words.parent, tmp_path / "own"), expected, tmp_path)


class Reader(tf.Module):
    """Functions that read files by paths in their code."""

    def __init__(self, path: str, read: Callable[[str], tf.Tensor], *, own: bool) -> None:
        super().__init__()
        self.table = tf.Variable(tf.reshape(tf.range(20.0), [5, 4]))
        self.path, self.read, self.own = path, read, own

    @tf.function
    def inner(self) -> tf.Tensor:
        return tf.reshape(self.read(self.path), [-1])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, "ids")])
    def serve(self, ids):
        rows = grouped_embedding_lookup([self.table], [ids])[0] if self.own else ids[:, None]
        return {"rows": rows * tf.ones([1, 4], rows.dtype), "text": self.inner()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, "ids")])
    def again(self, ids):
        text = tf.strings.join([self.inner(), tf.reshape(tf.io.read_file(self.path), [-1])])
        return {"rows": tf.zeros([tf.size(ids), 4]), "text": text}


IN_CODE = ["whole", "lines", "of several", "by way"]


@pytest.mark.parametrize("own", [False, True], ids=["stock", "own ops"])
@pytest.mark.parametrize("kind", IN_CODE)
@pytest.mark.parametrize("way", ["object", "folder"])
def test_of_functions_has_what_their_code_names(way, kind, own, words, tmp_path):
    model = Reader(str(words), READS[kind], own=own)
    signatures = {"serving_default": model.serve, "again": model.again}
    expected = {name: each(tf.range(3, dtype=tf.int64)) for name, each in signatures.items()}
    gone = [words.parent]
    if way == "folder":
        tf.saved_model.save(model, str(tmp_path / "own"), signatures=signatures)
        result = wb.export(tmp_path / "own", tmp_path / "out")
        gone.append(tmp_path / "own")
    else:
        result = wb.export(model, tmp_path / "out", signatures=signatures)
    assert result.copied_files == {str(words): "words.txt"} and not result.left_files
    folder = moved(tmp_path / "out", *gone)
    for name, answer in expected.items():
        require_answers(folder, answer["text"].numpy(), tmp_path, signature=name)
    loaded = tf.saved_model.load(str(folder))
    assert loaded.inner().numpy().tolist() == expected["serving_default"]["text"].numpy().tolist()
    # What was loaded is a model like any other.
    signature = loaded.signatures["again"]
    tf.saved_model.save(loaded, str(tmp_path / "once more"), signatures={"again": signature})
    folder = moved(tmp_path / "once more", folder)
    require_answers(folder, expected["again"]["text"].numpy(), tmp_path, signature="again")


def test_of_a_branch_stay_and_are_named(words, tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, "ids")])
    def serve(ids):
        some = tf.size(ids) > 0
        return {"text": tf.cond(some, lambda: tf.io.read_file(str(words)), lambda: "")}

    result = wb.export(serve, tmp_path / "out")
    assert not result.copied_files
    ((path, reason),) = result.left_files.items()
    assert path == str(words)
    assert "If calls; give it a tf.saved_model.Asset" in reason


def test_that_are_assets_already_stay_such(words, tmp_path):
    module = tf.Module()
    module.asset = tf.saved_model.Asset(str(words))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, "ids")])
    def serve(ids):
        text = tf.reshape(tf.io.read_file(module.asset), [-1])
        return {"rows": tf.zeros([tf.size(ids), 4]), "text": text}

    module.serve = serve
    result = wb.export(module, tmp_path / "out")
    assert not result.copied_files and not result.left_files
    folder = moved(tmp_path / "out", words.parent)
    require_answers(folder, np.array([b"one\ntwo\n"], object), tmp_path)


def test_that_cannot_be_known_are_named(words, tmp_path):
    with tf.Graph().as_default():
        given = v1.placeholder(tf.string, [], "given")
        parent = tf.constant(str(words.parent), name="parent")
        outputs = {
            "computed": tf.io.read_file(tf.strings.join([parent, "/words.txt"], name="joined")),
            "none": tf.io.read_file(str(tmp_path / "none.txt")),
            "given": tf.io.read_file(given),
            "text": tf.io.read_file(str(words)),
        }
        with v1.Session() as session:
            result = wb.export(session, tmp_path / "out", inputs={"given": given}, outputs=outputs)
    assert result.copied_files == {str(words): "words.txt"}
    assert result.left_files == {
        "ReadFile": "it computes the path",
        str(tmp_path / "none.txt"): "there is no such file here",
    }
    assert f"Leaves {tmp_path / 'none.txt'} where it is: there is no such file here." in str(result)
    assert f"Copied {words}: asset words.txt." in str(result)


def test_of_one_name_are_apart(words, tmp_path):
    other = tmp_path / "other" / "words.txt"
    other.parent.mkdir()
    other.write_text("three\n")
    with tf.Graph().as_default(), v1.Session() as session:
        ids = v1.placeholder(tf.int64, [None], "ids")
        text = tf.stack([whole(str(words)), whole(str(other)), lines_of([str(other), str(words)])])
        rows = tf.zeros([tf.size(ids), 4])
        expected = session.run(text)
        outputs = {"rows": rows, "text": text}
        result = wb.export(session, tmp_path / "out", inputs={"ids": ids}, outputs=outputs)
    assert len(set(result.copied_files.values())) == 2
    require_answers(moved(tmp_path / "out", words.parent, other.parent), expected, tmp_path)

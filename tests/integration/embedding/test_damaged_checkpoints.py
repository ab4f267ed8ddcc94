"""Checkpoints with a fault: the one before is read, or one sentence says what is wrong."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.builders.damaged_files import damaged_bytes, in_one_sentence, size
from tests.builders.examples import few
from tests.conftest import EXAMPLES
from workbench.errors import DataError
from workbench.experiments.cluster.kept_checkpoints import restoring_saver
from workbench.ops import get_embedding_variable, read_embedding_variable

v1 = tf.compat.v1
COSTLY = few(12, many=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of two checkpoints; the rows of the second are 2, not 1."""
    home: Path = tmp_path_factory.mktemp("whole")
    with tf.Graph().as_default(), v1.Session() as session:
        table = get_embedding_variable("emb", 2, initializer=v1.ones_initializer())
        looked_up = tf.reduce_sum(table.sparse_read([3, 5]))
        train = v1.train.GradientDescentOptimizer(-0.5).minimize(looked_up)
        saver = v1.train.Saver()
        session.run(v1.global_variables_initializer())
        for step in (1, 2):
            session.run(looked_up)
            saver.save(session, str(home / "model"), step)
            session.run([train, train])
    return home


@pytest.fixture
def home(whole, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    text = (copy / "checkpoint").read_text()
    (copy / "checkpoint").write_text(text.replace(str(whole), str(copy)))
    return copy


def newest(home, kind):
    (path,) = home.glob(f"model-2.{kind}*")
    return path


@pytest.mark.parametrize("kind", ["index", "data"])
def test_the_one_before_a_damaged_one_is_read_and_named(home, caplog, kind):
    expected = read_embedding_variable(str(home / "model-1"), "emb")
    path = newest(home, kind)
    path.write_bytes(path.read_bytes()[:20])
    found = read_embedding_variable(str(home), "emb")
    assert found.equals(expected)
    assert "model-2' is damaged: " in caplog.text
    assert f"the one before it is read, {str(home / 'model-1')!r}" in caplog.text


def test_without_a_whole_one_all_are_named_damaged(home):
    for path in home.glob("*.index"):
        path.write_bytes(b"no")
    with pytest.raises(DataError, match=r"model-2': .*the 1 before it are damaged, too"):
        read_embedding_variable(str(home), "emb")


def test_a_variable_that_the_newest_one_lacks_is_not_looked_for_in_others(home):
    with pytest.raises(DataError, match=r"model-2' has no EmbeddingVariable 'nix'"):
        read_embedding_variable(str(home), "nix")


@COSTLY
@given(seed=st.integers(0, 2**32))
def test_a_checkpoint_with_any_fault(home, whole, seed):
    chance = random.Random(seed)
    kind = chance.choice(("index", "data"))
    newest(home, kind).write_bytes(damaged_bytes(newest(whole, kind).read_bytes(), chance))
    with in_one_sentence(size(home)):
        read_embedding_variable(str(home / "model-2"), "emb")
    newest(home, kind).write_bytes(newest(whole, kind).read_bytes())


def saved(home, values):
    """Checkpoints of a variable, one for each of its values."""
    with tf.Graph().as_default(), v1.Session() as session:
        step, weight = v1.train.get_or_create_global_step(), v1.get_variable("weight", 3)
        saver = v1.train.Saver()
        for number, value in enumerate(values):
            session.run(weight.initializer)
            session.run([weight.assign([value] * 3), step.assign(number)])
            saver.save(session, str(home / "model.ckpt"), step)


def restored(home, said):
    """The variable as a chief begins with it."""
    with tf.Graph().as_default():
        v1.train.get_or_create_global_step()
        weight = v1.get_variable("weight", 3)
        scaffold = v1.train.Scaffold(saver=restoring_saver(said.append))
        with v1.train.MonitoredTrainingSession(
            checkpoint_dir=str(home), scaffold=scaffold, save_checkpoint_secs=None
        ) as session:
            return session.run(weight)


@pytest.mark.parametrize("kind", ["index", "data-00000-of-00001"])
def test_training_goes_on_from_the_one_before(tmp_path, kind):
    saved(tmp_path, [1.0, 2.0, 3.0])
    said: list[str] = []
    np.testing.assert_array_equal(restored(tmp_path, said), [3.0] * 3)
    assert said == []
    path = tmp_path / f"model.ckpt-2.{kind}"
    path.write_bytes(path.read_bytes()[:5])
    np.testing.assert_array_equal(restored(tmp_path, said), [2.0] * 3)
    (line,) = said
    assert "model.ckpt-2' is damaged: " in line
    assert line.endswith(f"the one before it is read, {str(tmp_path / 'model.ckpt-1')!r}")


def test_where_all_are_damaged_the_newest_ones_error_stands(tmp_path):
    saved(tmp_path, [1.0, 2.0])
    for path in tmp_path.glob("*.data*"):
        path.write_bytes(path.read_bytes()[:5])
    with pytest.raises((tf.errors.OpError, ValueError)):
        restored(tmp_path, [])

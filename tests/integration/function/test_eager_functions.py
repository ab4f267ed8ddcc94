"""Functions that are to run eagerly: what is staged or fused says that it does not, or cannot."""

from __future__ import annotations

from collections.abc import Iterator

import keras
import pytest
import tensorflow as tf

from tests.builders.functions import pairs
from workbench import ignored
from workbench.core.executor.policy import executor
from workbench.core.function.fused_function import fuse_function
from workbench.core.function.keras_fit import smart_stage_model
from workbench.core.function.keras_fusion import fuse_model
from workbench.core.function.stage import smart_stage_function


@pytest.fixture(autouse=True)
def eager_functions(monkeypatch) -> Iterator[None]:
    monkeypatch.setattr(ignored, "_warned", set())
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def step_as_function():
    @tf.function
    def step(words, numbers):
        return tf.strings.to_number(words) + tf.cast(numbers, tf.float32)

    return step


def stage_a_function() -> None:
    assert len(list(smart_stage_function(step_as_function(), pairs(3)))) == 3


def small_model() -> tuple[keras.Model, tf.data.Dataset]:
    words = keras.Input((1,), dtype="string")
    vectors = keras.layers.Embedding(9, 2)(keras.layers.Hashing(9)(words))
    model = keras.Model(words, keras.layers.Dense(1)(keras.layers.Flatten()(vectors)))
    model.compile("sgd", "mse", jit_compile=False)
    rows = (tf.constant([["a"], ["b"]]), tf.ones([2, 1]))
    return model, tf.data.Dataset.from_tensors(rows)


def stage_a_model() -> None:
    model, data = small_model()
    smart_stage_model(model)
    model.fit(data, verbose=0)


def fuse_a_model() -> None:
    model, data = small_model()
    fuse_model(model)
    model.fit(data, verbose=0)


def fuse_a_function() -> None:
    table = tf.Variable(tf.ones([9, 8]))

    @tf.function
    def lookup(ids):
        return tf.nn.safe_embedding_lookup_sparse(table, ids)

    ids = tf.SparseTensorSpec([None, None], tf.int64)
    function = lookup.get_concrete_function(ids)
    assert fuse_function(function) is not function


def choose_an_executor() -> None:
    with executor("inline"):
        step_as_function()(*next(iter(pairs(1))))


GRAPH = "run_functions_eagerly = True has no effect: a step that is staged, fused or measured runs"
OWN = "fuse_model(model) = 'functional"
POLICY = "executor(policy) = 'inline' has no effect: after tf.config.run_functions_eagerly(True)"


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (stage_a_function, GRAPH),
        (stage_a_model, GRAPH),
        (fuse_a_model, OWN),
        (fuse_a_function, GRAPH),
        pytest.param(choose_an_executor, POLICY, marks=pytest.mark.executors),
    ],
)
def test_it_is_said(use, words, caplog):
    use()
    assert words in caplog.text


def test_nothing_is_said_of_functions_that_run_as_graphs(caplog):
    tf.config.run_functions_eagerly(False)
    stage_a_function()
    fuse_a_model()
    assert "run_functions_eagerly" not in caplog.text

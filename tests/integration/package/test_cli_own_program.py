"""A program of the user's own from the shell: a graph, a Keras model, and what faults are said."""

from __future__ import annotations

import pytest

from tests.builders.command_line import run_command
from workbench.core.trace.trace import load_trace
from workbench.experiments.comparison.results import load_comparison

GRAPH = """
import tensorflow as tf
import workbench as wb

v1 = tf.compat.v1


def build(optimizations):
    data = tf.data.Dataset.range(10**9).map(lambda i: tf.fill([4], tf.cast(i, tf.float32)))
    batch = v1.data.make_one_shot_iterator(data).get_next()
    if optimizations.stage:
        batch = wb.staged(batch, optimizations.stage)
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.sin(batch) - weight))
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss)


def fails(optimizations):
    return wb.Built(train_op=tf.matmul(tf.zeros([2, 3]), tf.zeros([5, 5])))
"""
KERAS = """
import keras
import numpy as np
import tensorflow as tf

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=False)
data = np.random.default_rng(0).random((64, 5)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((data, data[:, :1])).batch(8)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("own")
    (home / "my_model.py").write_text(GRAPH)
    (home / "my_keras.py").write_text(KERAS)
    return home


@pytest.fixture(scope="module")
def compared(folder):
    done = run_command(
        *("compare", "my_model.py:build", "--toggle", "stage", "--budget", "1s"), cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
def test_a_build_function_is_compared(folder, compared):
    assert compared.stdout.startswith("Reading my_model.py:build\nmy_model: ")
    found = load_comparison(folder / "results/comparison")
    assert [variant.label for variant in found.variants] == ["off", "stage"]
    assert [check.passed for check in found.equivalence] == [True]
    assert found.settings["program"] == "my_model.py:build"


@pytest.mark.executors
def test_a_model_and_its_dataset_are_traced(folder):
    done = run_command(
        *("trace", "my_keras.py:model,dataset", "--steps", 3, "--out", "t.parquet"), cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert len(load_trace(folder / "t.parquet").steps()) == 3


def test_an_error_in_the_file_comes_with_its_line(folder):
    done = run_command("trace", "my_model.py:fails", cwd=folder)
    line = 1 + GRAPH.splitlines().index(next(x for x in GRAPH.splitlines() if "matmul" in x))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"workbench: error: `my_model.py`, line {line}: ValueError: Dimensions")


def test_a_name_that_is_not_there_is_a_mistake_in_the_arguments(folder):
    done = run_command("predict", "my_model.py:bild", cwd=folder)
    assert done.returncode == 2
    said = "workbench: error: my_model.py has no 'bild'; did you mean 'build'?"
    assert done.stderr.splitlines()[-1] == said

"""The Keras steps of DLRM and DeepFM: they learn, repeat, and a smart stage changes nothing."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.containers import write_tfrecord
from workbench.core.function.stage import smart_stage_function
from workbench.models import MODELS
from workbench.models.building import criteo_keras
from workbench.models.data.criteo import check_criteo, generate_criteo
from workbench.models.zoo import deepfm_keras, dlrm_keras

STEPS = {"dlrm": dlrm_keras.train_step, "deepfm": deepfm_keras.train_step}


@pytest.fixture(autouse=True)
def graph():
    """Keras trains eagerly made functions: without the graph of the other tests."""
    assert tf.executing_eagerly()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = generate_criteo(tmp_path_factory.mktemp("keras") / "clicks.tsv", rows=8000)
    return check_criteo(path)


@pytest.fixture(params=STEPS)
def name(request):
    return request.param


def losses(name, data, staged=False, **said) -> list[float]:
    options = MODELS[name]().options(data=data, **said)
    step, batches = STEPS[name](options)
    if staged:
        return [float(loss) for loss in smart_stage_function(step, batches)]
    return [float(loss) for loss in map(step, batches)]


@pytest.mark.slow
def test_a_smart_stage_hashes_ahead_and_changes_no_loss(name, data):
    plain = losses(name, data)
    assert len(plain) == 8000 // 512
    assert losses(name, data, staged=True) == plain == losses(name, data)
    step, batches = STEPS[name](MODELS[name]().options(data=data))
    moved = set(smart_stage_function(step, batches).plan.stages[0].moved_ops)
    assert {"DecodeCSV", "StringToHashBucketFast", "Log1p"} <= moved
    gc.collect()
    assert not [t for t in threading.enumerate() if t.name.startswith("smart_stage")]


@pytest.mark.slow
def test_it_learns(name, data):
    found = losses(name, data, batch_size=128, learning_rate={"dlrm": 0.05, "deepfm": 0.002}[name])
    assert np.mean(found[-10:]) < 0.85 * np.mean(found[:5])


@pytest.mark.slow
def test_another_seed_trains_otherwise(name, data):
    few = check_criteo(data.path, rows=512)
    assert losses(name, few) != losses(name, few, seed=2)


@pytest.mark.slow
def test_records_train_the_same(name, data, tmp_path):
    few = check_criteo(data.path, rows=2048)
    written = write_tfrecord(few, tmp_path / "clicks.tfrecord")
    assert losses(name, written) == losses(name, few)


def test_each_row_of_a_gradient_is_named_once():
    twice = tf.IndexedSlices(tf.constant([[1.0], [2.0], [4.0]]), tf.constant([5, 3, 5]), [9, 1])
    once = criteo_keras._each_row_once(twice)
    assert once.indices.numpy().tolist() == [5, 3]
    assert once.values.numpy().tolist() == [[5.0], [2.0]]
    dense = tf.constant([1.0])
    assert criteo_keras._each_row_once(dense) is dense

"""DLRM, DeepFM, Wide & Deep: they train the same twice, learn, can be saved, read any container."""

from __future__ import annotations

import dataclasses
import functools
import pickle

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.containers import write_parquet, write_tfrecord
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.worker.steps.graph_session import ProgramSession
from workbench.models import MODELS
from workbench.models.building.criteo_features import total
from workbench.models.data.criteo import check_criteo, generate_criteo
from workbench.models.zoo import deepfm, dlrm, wdl

v1 = tf.compat.v1
GRAPHS = {"dlrm": dlrm.MODEL, "deepfm": deepfm.MODEL, "wdl": wdl.MODEL}
# Steps of 512 rows after which each knows much, and its learning rate.
LEARNS = {"dlrm": (150, 0.1), "deepfm": (80, 0.001), "wdl": (30, 0.01)}
OFF = Optimizations()


@pytest.fixture(params=GRAPHS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("criteo")


@pytest.fixture(scope="module")
def data(home):
    return check_criteo(generate_criteo(home / "clicks.tsv", rows=2000))


def program_of(name, data, **said):
    model = MODELS[name]()
    return model.program(model.options(data=data, **{"batch_size": 128, **said}))


def losses(name, data, optimizations=OFF, *, steps=8, part="build", fetch="loss", **said):
    session = ProgramSession(program_of(name, data, **said), part, optimizations)
    try:
        return session.run(steps, fetch).values
    finally:
        session.close()


def area_under_curve(clicked, chances):
    """The chance that a row that was clicked has a higher chance than one that was not."""
    ranks = np.empty(len(chances))
    ranks[np.argsort(chances, kind="stable")] = np.arange(1, len(chances) + 1)
    yes = clicked.sum()
    return (ranks[clicked == 1].sum() - yes * (yes + 1) / 2) / (yes * (len(clicked) - yes))


@pytest.fixture(scope="module")
def plain(data):
    """Gives the losses of a model without optimizations; each is trained once."""
    return functools.cache(lambda name: losses(name, data))


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizations",
    [OFF, Optimizations(stage=StageOptions()), Optimizations(smart_stage=SmartStageOptions())],
    ids=["off", "stage", "smart_stage"],
)
def test_runs_from_one_seed_are_bit_equal_with_and_without_stages(name, data, plain, optimizations):
    assert losses(name, data, optimizations).tobytes() == plain(name).tobytes()


@pytest.mark.slow
def test_another_seed_trains_otherwise(name, data, plain):
    assert losses(name, data, steps=1, seed=2)[0] != plain(name)[0]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_every_lookup_can_be_fused_and_trains_the_same(name, data, plain, version):
    program = program_of(name, data)
    session = ProgramSession(program, "build", Optimizations(fused_embeddings=version))
    fused = session.run(8, "loss").values
    session.close()
    np.testing.assert_allclose(fused, plain(name), rtol=1e-5)
    assert session.opened.fused_ops >= {"dlrm": 26, "deepfm": 52, "wdl": 52}[name]


# `test_models` shows that DLRM learns, `test_zoo_taobao` that DIN tells what it has not seen.
@pytest.mark.slow
def test_it_tells_clicks_of_rows_it_has_not_seen(name, home):
    steps, rate = LEARNS[name]
    known = check_criteo(generate_criteo(home / "known.tsv", rows=30_000, seed=3))
    unseen = check_criteo(generate_criteo(home / "unseen.tsv", rows=4000, seed=4))
    options = MODELS[name]().options(data=known, learning_rate=rate)
    model = GRAPHS[name]
    built = model.build(options, OFF)
    others = dataclasses.replace(options, data=unseen, batch_size=1000)
    batch = model.batch(others)
    chances = model.score(others, batch)
    with v1.train.SingularMonitoredSession(config=built.config) as session:
        before = scored(session, batch, chances)
        for _ in range(steps):
            session.run(built.train_op)
        after = scored(session, batch, chances)
    assert before < 0.65
    assert after > 0.70


def scored(session, batch, chances) -> float:
    found = [session.run([batch["label"], chances]) for _ in range(4)]
    clicked, given = (np.concatenate(part) for part in zip(*found, strict=True))
    assert ((given > 0) & (given < 1)).all()
    return area_under_curve(clicked, given)


@pytest.mark.slow
def test_a_restored_checkpoint_goes_on_with_equal_losses(name, data, tmp_path):
    model = GRAPHS[name]
    options = MODELS[name]().options(data=data, batch_size=128)
    rows = model.lines(options)
    built = model.train(options, model.parse(rows))
    saver, save_to = v1.train.Saver(), str(tmp_path / "model")
    start = [v1.global_variables_initializer(), v1.get_collection(v1.GraphKeys.TABLE_INITIALIZERS)]
    with v1.Session(config=built.config) as session:
        session.run(start)
        for _ in range(4):
            session.run(built.train_op)
        saved = saver.save(session, save_to)
        wanted = [session.run([built.loss, built.train_op])[0] for _ in range(4)]
    with v1.Session(config=built.config) as session:
        session.run(start[1])
        saver.restore(session, saved)
        for _ in range(4):
            session.run(rows)
        found = [session.run([built.loss, built.train_op])[0] for _ in range(4)]
        steps = session.run(v1.train.get_global_step())
    assert found == wanted
    assert steps == 8


@pytest.mark.slow
def test_an_epoch_reads_every_row_once(name, data):
    found = losses(name, data, part="build_epoch", fetch="fingerprint", steps=100, batch_size=512)
    assert len(set(found.tolist())) == len(found) == 4


@pytest.mark.slow
def test_the_input_of_the_bound_reads_on_and_builds_no_model(name, data):
    program = program_of(name, data, batch_size=64, input_latency_ms=1.0)
    with tf.Graph().as_default():
        (lines,) = program.build_input(OFF).train_op.outputs
        assert v1.trainable_variables() == []
        v1.train.get_or_create_global_step()
        with v1.train.SingularMonitoredSession() as session:
            read = [line for _ in range(3) for line in session.run(lines)]
    assert read == data.path.read_bytes().splitlines()[: 3 * 64]


@pytest.mark.slow
def test_the_compute_of_the_bound_trains_as_the_model_does(name, data, plain):
    compute = losses(name, data, part="build_compute", input_latency_ms=1.0)
    assert compute.tobytes() == plain(name).tobytes()
    assert len(set(compute.tolist())) == 8


@pytest.mark.slow
def test_any_container_trains_the_same(data, home, plain):
    for write in (write_tfrecord, write_parquet):
        written = write(data, home / f"{write.__name__}.data")
        assert losses("dlrm", written).tobytes() == plain("dlrm").tobytes()


def test_its_program_travels_and_says_its_settings(name, data):
    program = pickle.loads(pickle.dumps(program_of(name, data, batch_size=9)))
    assert program.name == name
    assert program.settings["batch_size"] == 9
    assert program.settings["rows"] == 2000
    assert program.settings["data"] == str(data.path)


@pytest.mark.slow
def test_weights_are_drawn_unlike_each_other(name, data):
    GRAPHS[name].build(MODELS[name]().options(data=data), OFF)
    tables = [
        variable
        for variable in v1.trainable_variables()
        if variable.op.name.endswith("_table") and variable.shape[1] > 1
    ]
    assert len(tables) == 26
    with v1.train.SingularMonitoredSession() as session:
        first = [row[0, 0] for row in session.run(tables)]
    assert len(set(first)) == len(first)


@pytest.mark.slow
def test_scoring_and_training_share_their_weights(name, data):
    model, options = GRAPHS[name], MODELS[name]().options(data=data, batch_size=64)
    model.build(options, OFF)
    count = len(v1.trainable_variables())
    model.score(options, model.batch(options))
    assert len(v1.trainable_variables()) == count


def test_second_order_terms_are_the_products_of_all_pairs():
    vectors = np.random.default_rng(1).normal(size=(3, 4, 2)).astype("float32")
    pairs = [(i, j) for i in range(4) for j in range(i)]
    summed = sum(vectors[:, i] * vectors[:, j] for i, j in pairs)
    dots = np.stack([(vectors[:, i] * vectors[:, j]).sum(axis=1) for i, j in pairs], axis=1)
    with v1.Session() as session:
        np.testing.assert_allclose(
            session.run(deepfm.pairwise(tf.constant(vectors))), summed, rtol=1e-4, atol=1e-5
        )
        found = session.run(dlrm.pairs(tf.constant(vectors)))
        np.testing.assert_allclose(found, dots, rtol=1e-4, atol=1e-5)
        assert session.run(total([tf.ones([2, 3]), tf.ones([2, 1])])).tolist() == [[4.0], [4.0]]

"""DLRM reads what users have, trains the same twice, and learns."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.grids import rest_slow
from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.core.session.prefetch_hook import make_prefetch_hook
from workbench.models.data.criteo import CATEGORIES, NUMBERS, check_criteo, generate_criteo
from workbench.models.zoo import dlrm
from workbench.models.zoo.options import DlrmOptions

v1 = tf.compat.v1
OFF = Optimizations()
STAGED = Optimizations(stage=StageOptions())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return check_criteo(generate_criteo(tmp_path_factory.mktemp("log") / "clicks.tsv", rows=3000))


def values(build, options, optimizations, *, steps=None, fetch="loss") -> np.ndarray:
    """What the steps of a build function give, until the data ends when steps is None."""
    with tf.Graph().as_default():
        built = build(options, optimizations)
        v1.train.get_or_create_global_step()
        found = []
        with v1.train.MonitoredTrainingSession(hooks=[make_prefetch_hook()]) as session:
            while not session.should_stop() and len(found) != steps:
                found.append(session.run([built.train_op, getattr(built, fetch)])[1])
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("lookups", rest_slow([3, len(CATEGORIES)], 3))
def test_two_runs_have_bit_equal_losses_and_a_stage_changes_none(data, lookups, monkeypatch):
    monkeypatch.setattr(dlrm, "CATEGORIES", CATEGORIES[:lookups])
    options = DlrmOptions(data=data, batch_size=128)
    once, twice, staged = (
        values(dlrm.build, options, made, steps=8) for made in (OFF, OFF, STAGED)
    )
    assert once.tobytes() == twice.tobytes() == staged.tobytes()


@pytest.mark.slow
def test_another_seed_trains_otherwise(data):
    one, two = (
        values(dlrm.build, DlrmOptions(data=data, seed=seed), OFF, steps=1) for seed in (1, 2)
    )
    assert one[0] != two[0]


@pytest.mark.slow
def test_it_learns(data):
    losses = values(dlrm.build, DlrmOptions(data=data, batch_size=256), OFF, steps=60)
    assert losses[-10:].mean() < 0.9 * losses[:3].mean()


@pytest.mark.slow
def test_variables_are_initialised_unlike_each_other(data):
    with tf.Graph().as_default():
        dlrm.build(DlrmOptions(data=data), OFF)
        tables = [v for v in v1.trainable_variables() if v.name.endswith("_table:0")]
        assert len(tables) == len(CATEGORIES)
        with v1.train.SingularMonitoredSession() as session:
            first = [row[0, 0] for row in session.run(tables)]
    assert len(set(first)) == len(first)


def test_an_epoch_reads_every_row_once(data):
    options = DlrmOptions(data=data, batch_size=512)
    found = values(dlrm.build_epoch, options, OFF, fetch="fingerprint")
    assert len(set(found.tolist())) == len(found) == 6


def test_several_threads_deliver_the_same_batches(data):
    options = DlrmOptions(data=data, batch_size=64)
    stage = Optimizations(stage=StageOptions(num_threads=4, capacity=3))
    off = values(dlrm.build_epoch, options, OFF, fetch="fingerprint")
    staged = values(dlrm.build_epoch, options, stage, fetch="fingerprint")
    assert sorted(off.tolist()) == sorted(staged.tolist())


def test_only_the_chosen_rows_are_read(data):
    few = check_criteo(data.path, rows=100)
    options = DlrmOptions(data=few, batch_size=64)
    assert len(values(dlrm.build_epoch, options, OFF, fetch="fingerprint")) == 2


def test_the_input_of_the_bound_only_waits_for_lines(data):
    options = DlrmOptions(data=data, batch_size=64, input_latency_ms=1.0)
    with tf.Graph().as_default():
        built = dlrm.build_input(options, OFF)
        assert v1.trainable_variables() == []
        v1.train.get_or_create_global_step()
        with v1.train.SingularMonitoredSession() as session:
            first, second = (session.run(built.train_op.outputs[0]) for _ in range(2))
    assert len(first) == len(second) == 64
    assert first.tolist() != second.tolist()


@pytest.mark.slow
def test_the_compute_of_the_bound_trains_as_the_model_does(data):
    options = DlrmOptions(data=data, batch_size=64)
    whole, compute = (
        values(build, options, OFF, steps=3) for build in (dlrm.build, dlrm.build_compute)
    )
    assert compute[0] == whole[0]
    assert len(set(compute.tolist())) == 3


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_fields_arrive_as_they_are_written(tmp_path, end):
    numbers = ["", "-1", "19", *["2"] * 9, "35"]
    categories = ["05db9164", "", *["68fd1e64"] * 23, '"a']
    path = tmp_path / "clicks.tsv"
    path.write_bytes("\t".join(["1", *numbers, *categories]).encode() + end)
    data = check_criteo(path)
    with tf.Graph().as_default():
        batch = dlrm.parse(dlrm.next_lines(DlrmOptions(data=data, batch_size=2)))
        with v1.train.SingularMonitoredSession() as session:
            found = session.run(batch)
    assert found["label"].tolist() == [1.0, 1.0]
    assert [found[name][0] for name in NUMBERS[:3]] == [0.0, -1.0, 19.0]
    assert found["I13"][1] == 35.0
    assert [found[name][0] for name in ("C1", "C2", "C26")] == [b"05db9164", b"", b'"a']

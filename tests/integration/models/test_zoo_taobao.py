"""DSSM, DIN and DIEN read what users have, train the same twice, learn, and can be saved."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.session.prefetch_hook import make_prefetch_hook
from workbench.core.smart_stage import prepare_config
from workbench.models.building.graph_model import GraphModel
from workbench.models.data.taobao import (
    DSSM_TABLE,
    SEQUENCE_NEGATIVE_TABLE,
    check_dssm,
    check_sequences,
    generate_dssm,
    generate_sequences,
)
from workbench.models.zoo import dien, din, dssm
from workbench.models.zoo.options import DienOptions, DinOptions, DssmOptions
from workbench.models.zoo.programs import din_program
from workbench.ops.lookup.fusion import fused_embeddings

v1 = tf.compat.v1
OFF = Optimizations()
STAGED = Optimizations(stage=StageOptions())
FUSED_LOOKUPS = (
    "WorkbenchGroupedLookUp",
    "WorkbenchLocalLookUp",
    "WorkbenchPostLookUp",
    "WorkbenchPostLookUpV2",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A model, its data, and in how many steps of how many rows it learns."""

    model: GraphModel
    options: Callable[..., Any]
    generate: Callable[..., Any]
    check: Callable[..., Any]
    label: str
    tables: int
    steps: int


CASES = {
    "dssm": Case(
        model=dssm.MODEL,
        options=DssmOptions,
        generate=generate_dssm,
        check=check_dssm,
        label="clk",
        tables=17,
        steps=100,
    ),
    "din": Case(
        model=din.MODEL,
        options=DinOptions,
        generate=lambda path, **said: generate_sequences(path, negatives=False, **said),
        check=lambda path, **said: check_sequences(path, negatives=False, **said),
        label="CLICKED",
        tables=3,
        steps=60,
    ),
    "dien": Case(
        model=dien.MODEL,
        options=DienOptions,
        generate=generate_sequences,
        check=check_sequences,
        label="CLICKED",
        tables=3,
        steps=60,
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Gives a checked log for a model, of some rows and a seed; each is generated once."""
    home = tmp_path_factory.mktemp("logs")

    def log(case, rows=2000, seed=1):
        path = home / f"{case.model.name}-{rows}-{seed}"
        return case.check(case.generate(path, rows=rows, seed=seed))

    return log


def values(build, options, optimizations=OFF, *, steps=None, fetch="loss"):
    """What the steps of a build function give, until the data ends when steps is None."""
    with tf.Graph().as_default() as graph:
        built = build(options, optimizations)
        v1.train.get_or_create_global_step()
        config = None
        if optimizations.smart_stage:
            targets = [built.train_op, getattr(built, fetch)]
            config, _ = prepare_config(graph, None, optimizations.smart_stage, targets=targets)
        found = []
        hooks = [make_prefetch_hook()]
        with v1.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
            while not session.should_stop() and len(found) != steps:
                found.append(session.run([built.train_op, getattr(built, fetch)])[1])
    return np.array(found)


def area_under_curve(clicked, chances):
    """The chance that a row that was clicked has a higher chance than one that was not."""
    ranks = np.empty(len(chances))
    ranks[np.argsort(chances, kind="stable")] = np.arange(1, len(chances) + 1)
    ones = int(clicked.sum())
    below = ranks[clicked > 0].sum() - ones * (ones + 1) / 2
    return below / (ones * (len(clicked) - ones))


@pytest.mark.slow
def test_two_runs_have_bit_equal_losses_and_a_stage_changes_none(case, logs):
    options = case.options(data=logs(case), batch_size=64)
    once, twice, staged = (
        values(case.model.build, options, made, steps=8) for made in (OFF, OFF, STAGED)
    )
    assert np.isfinite(once).all()
    assert once.tobytes() == twice.tobytes() == staged.tobytes()
    other = values(case.model.build, dataclasses.replace(options, seed=2), steps=1)
    assert other[0] != once[0]


@pytest.mark.slow
def test_a_smart_stage_changes_no_loss_and_runs_hashing_ahead(case, logs):
    options = case.options(data=logs(case), batch_size=64)
    smart = Optimizations(smart_stage=SmartStageOptions(num_threads=1))
    off, ahead = (values(case.model.build, options, made, steps=8) for made in (OFF, smart))
    assert off.tobytes() == ahead.tobytes()
    with tf.Graph().as_default() as graph:
        built = case.model.build(options, OFF)
        _, plan = prepare_config(
            graph, None, smart.smart_stage, targets=[built.train_op, built.loss]
        )
        moved = {graph.get_operation_by_name(name).type for name in plan.stages[-1].moved}
    assert {"StringToHashBucketFast", "StringSplitV2"} <= moved
    assert not {"VariableV2", "While", "StatelessWhile"} & moved


@pytest.mark.slow
def test_fused_lookups_train_the_same(case, logs):
    options = case.options(data=logs(case), batch_size=64)

    def build(version, options, optimizations):
        with fused_embeddings(version):
            built = case.model.build(options, optimizations)
        types = [op.type for op in v1.get_default_graph().get_operations()]
        fused = sum(kind in FUSED_LOOKUPS for kind in types)
        assert any(kind.startswith("SparseSegment") for kind in types) == (version is None)
        assert fused == (case.tables if version else 0)
        return built

    plain, one, two = (
        values(functools.partial(build, version), options, steps=8)
        for version in (None, "v1", "v2")
    )
    np.testing.assert_allclose(one, plain, rtol=1e-5)
    np.testing.assert_allclose(two, plain, rtol=1e-5)


@pytest.mark.slow
def test_it_learns_what_rows_it_has_not_seen_say(case, logs):
    options = case.options(data=logs(case, rows=40_000), batch_size=256)
    unseen = case.options(data=logs(case, rows=8192, seed=2), batch_size=2048)
    with tf.Graph().as_default():
        built = case.model.build(options, OFF)
        weights = len(v1.trainable_variables())
        batch = case.model.parse(case.model.lines(unseen))
        scored = [batch[case.label], case.model.score(unseen, batch)]
        assert len(v1.trainable_variables()) == weights
        with v1.train.MonitoredTrainingSession() as session:

            def area():
                found = [session.run(scored) for _ in range(4)]
                return area_under_curve(*map(np.concatenate, zip(*found, strict=True)))

            before = area()
            for _ in range(case.steps):
                session.run(built.train_op)
            after = area()
    assert before < 0.6
    assert after > 0.7


@pytest.mark.slow
def test_the_chances_it_scores_are_those_it_is_trained_on(case, logs):
    options = case.options(data=logs(case, rows=128), batch_size=128)
    with tf.Graph().as_default():
        built = case.model.build(options, OFF)
        batch = case.model.parse(case.model.lines(options))
        fetches = [built.loss, batch[case.label], case.model.score(options, batch)]
        with v1.train.SingularMonitoredSession() as session:
            loss, clicked, chances = session.run(fetches)
    entropy = -np.log(np.where(clicked > 0, chances, 1 - chances)).mean()
    # DIEN's loss has another part: the next click and its negative, at first two tosses of a coin.
    rest = 2 * np.log(2) if case.model.name == "dien" else 0.0
    assert loss - entropy == pytest.approx(rest, rel=0.2, abs=1e-5)


@pytest.mark.slow
def test_a_restored_checkpoint_goes_on_with_equal_losses(case, logs, tmp_path):
    # The log is one batch, so that every step sees the same rows, wherever the reading begins.
    options = case.options(data=logs(case, rows=128), batch_size=128)
    saved = str(tmp_path / "model")

    def go_on(restore):
        with tf.Graph().as_default():
            built = case.model.build(options, OFF)
            saver, step = v1.train.Saver(), v1.train.get_or_create_global_step()
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                session.run(v1.tables_initializer())
                if restore:
                    saver.restore(session, saved)
                else:
                    for _ in range(4):
                        session.run(built.train_op)
                    saver.save(session, saved)
                found = [session.run([built.train_op, built.loss])[1] for _ in range(4)]
                return np.array(found), session.run(step)

    (kept, steps), (restored, steps_again) = go_on(False), go_on(True)
    assert kept.tobytes() == restored.tobytes()
    assert steps == steps_again == 8
    assert len(set(kept.tolist())) == 4


@pytest.mark.slow
def test_weights_begin_unlike_each_other_and_all_are_trained(case, logs):
    with tf.Graph().as_default():
        built = case.model.build(case.options(data=logs(case), batch_size=64), OFF)
        weights = {v.op.name: v for v in v1.trainable_variables()}
        with v1.train.SingularMonitoredSession() as session:
            before = session.run(weights)
            for _ in range(3):
                session.run(built.train_op)
            after = session.run(weights)
    assert [name for name in weights if (before[name] == after[name]).all()] == []
    drawn = [weight[0, 0] for weight in before.values() if weight.ndim == 2]
    assert len(set(drawn)) == len(drawn) > case.tables


@pytest.mark.slow
def test_an_epoch_reads_every_row_once_and_threads_deliver_the_same_batches(case, logs):
    options = case.options(data=logs(case, rows=1000), batch_size=64)
    several = Optimizations(stage=StageOptions(num_threads=4, capacity=3))
    off, staged = (
        values(case.model.build_epoch, options, made, fetch="fingerprint")
        for made in (OFF, several)
    )
    assert len(set(off.tolist())) == len(off) == 16
    assert sorted(off.tolist()) == sorted(staged.tolist())


@pytest.mark.slow
def test_the_input_of_the_bound_reads_on_and_builds_no_model(case, logs):
    data = logs(case)
    options = case.options(data=data, batch_size=64, input_latency_ms=1.0)
    with tf.Graph().as_default():
        (lines,) = case.model.build_input(options, OFF).train_op.outputs
        assert v1.trainable_variables() == []
        v1.train.get_or_create_global_step()
        with v1.train.SingularMonitoredSession() as session:
            read = [line for _ in range(3) for line in session.run(lines)]
    assert read == data.path.read_bytes().splitlines()[: 3 * 64]


@pytest.mark.slow
def test_the_compute_of_the_bound_trains_as_the_model_does(case, logs):
    options = case.options(data=logs(case), batch_size=64, input_latency_ms=1.0)
    whole, compute = (
        values(build, options, steps=4) for build in (case.model.build, case.model.build_compute)
    )
    assert compute.tobytes() == whole.tobytes()
    assert len(set(compute.tolist())) == 4


def batch_of(case, tmp_path, rows, layout):
    """A log with these rows, some columns of an ordinary row changed, as one batch's options."""
    usual = {column.name: "1" for column in layout.columns}
    separator = layout.separator.decode()
    lines = [separator.join((usual | row).values()) for row in rows]
    path = tmp_path / "log"
    path.write_text("\n".join(lines) + "\n")
    return case.options(data=case.check(path), batch_size=len(rows))


@pytest.mark.slow
def test_rows_without_tags_and_values_train(tmp_path):
    case = CASES["dssm"]
    empty = {column.name: "" for column in DSSM_TABLE.columns[2:]}
    options = batch_of(case, tmp_path, [empty, empty], DSSM_TABLE)
    for version in (None, "v1", "v2"):
        with fused_embeddings(version):
            assert np.isfinite(values(case.model.build, options, steps=3)).all()


@pytest.mark.slow
def test_no_tag_is_unlike_a_tag_and_their_order_does_not_count(tmp_path):
    case = CASES["dssm"]
    rows = [{"tag_brand_list": tags} for tags in ("", "7|8", "8|7", "7")]
    # Batch normalisation would leave nothing of a batch that has one advertisement.
    others = [{"adgroup_id": str(i), "brand": str(i)} for i in range(4)]
    options = batch_of(case, tmp_path, rows + others, DSSM_TABLE)
    with tf.Graph().as_default():
        batch = case.model.parse(case.model.lines(options))
        chances = case.model.score(options, batch)
        with v1.train.SingularMonitoredSession() as session:
            none, both, turned, one = session.run(chances).tolist()[:4]
    assert both == pytest.approx(turned, abs=1e-6)
    assert len({round(chance, 5) for chance in (none, both, one)}) == 3


@pytest.mark.slow
def test_a_batch_of_first_clicks_trains(tmp_path):
    case = CASES["dien"]
    options = batch_of(case, tmp_path, [{"CLICKED": "0"}, {}], SEQUENCE_NEGATIVE_TABLE)
    assert np.isfinite(values(case.model.build, options, steps=3)).all()


@pytest.mark.slow
def test_the_end_of_a_history_counts_for_what_comes_behind_it(tmp_path):
    """Interests are those behind the last click, whatever the length of the history."""
    histories = ["1\x022\x023", "3\x022\x021", "1\x022\x023\x024"]
    names = [c.name for c in SEQUENCE_NEGATIVE_TABLE.columns if "HISTORY" in c.name]
    rows = [dict.fromkeys(names, history) for history in histories]
    case = CASES["dien"]
    options = batch_of(case, tmp_path, rows, SEQUENCE_NEGATIVE_TABLE)
    with tf.Graph().as_default():
        chances = case.model.score(options, case.model.parse(case.model.lines(options)))
        with v1.train.SingularMonitoredSession() as session:
            found = session.run(chances).tolist()
    assert len({round(chance, 6) for chance in found}) == 3


@pytest.mark.slow
def test_din_reads_a_log_with_negatives_as_one_without(logs):
    without, having = (logs(CASES[name], rows=500) for name in ("din", "dien"))
    one, other = (
        values(din.MODEL.build, DinOptions(data=data, batch_size=64), steps=4)
        for data in (without, having)
    )
    assert one.tobytes() == other.tobytes()


def test_fields_arrive_as_they_are_written(tmp_path):
    case = CASES["dien"]
    row = {"CLICKED": "1", "UID": 'A"1', "HISTORY_ITEM": "b\x02c", "HISTORY_CATEGORY": "d\x02e"}
    row |= {"NOCLK_HISTORY_ITEM": "f\x02g", "NOCLK_HISTORY_CATEGORY": "h\x02i"}
    options = batch_of(case, tmp_path, [row], SEQUENCE_NEGATIVE_TABLE)
    with tf.Graph().as_default():
        batch = case.model.parse(case.model.lines(options))
        with v1.train.SingularMonitoredSession() as session:
            found = session.run(batch)
    assert found.pop("CLICKED").tolist() == [1.0]
    texts = {name: value[0].decode() for name, value in found.items()}
    del row["CLICKED"]
    assert texts == {"ITEM": "1", "CATEGORY": "1", **row}


@pytest.mark.slow
def test_a_program_travels_and_builds_its_parts(logs):
    options = DinOptions(data=logs(CASES["din"]), batch_size=64)
    program = pickle.loads(pickle.dumps(din_program(options)))
    assert program.name == "din"
    assert program.settings["table_learning_rate"] == options.table_learning_rate
    assert program.build(OFF).loss.shape == []
    assert program.build_epoch(OFF).fingerprint.dtype == tf.int64

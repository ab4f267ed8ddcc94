"""Stale lookups in sessions: how stale they are, and that what trains is what was declared."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.stale_models import (
    LOOKUPS,
    NOTE,
    TABLE,
    StaleModel,
    counter,
    delayed_losses,
    regression,
)
from workbench import ops
from workbench.core import smart_stage
from workbench.core.fusion.plan import plan_fusion
from workbench.core.options import SmartStageOptions
from workbench.core.session.prefetch_hook import make_prefetch_hook, prefetching

v1 = tf.compat.v1
BATCHES = 14


def config_of(model: StaleModel, steps: int, config=None, **wishes):
    """A config with enough threads for waits on both sides, and the plan in it."""
    config = config or v1.ConfigProto()
    config.inter_op_parallelism_threads = 4
    options = SmartStageOptions(stale_lookups=steps, move=(NOTE,), **wishes)
    return smart_stage.prepare_config(
        v1.get_default_graph(), config, options, targets=[model.train, model.loss]
    )


def staleness(model: StaleModel, steps: int, target: str = "", **wishes) -> list[int]:
    """Of each step how many updates its rows lack that were there when it began."""
    config, _ = config_of(model, steps, **wishes)
    with v1.Session(target, config=config) as session:
        model.initialize(session)
        with prefetching(session):
            rows = [session.run([model.rows, model.train])[0] for _ in range(BATCHES)]
    return [step - int(row[0, 0]) for step, row in enumerate(rows)]


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_rows_are_as_stale_as_was_asked_where_the_step_takes_longer_than_its_reads(graph, steps):
    # A step updates when all that may be read ahead of its update was: rows of the next `steps`.
    model = counter(BATCHES, lambda step, reads: reads.wait_for(step + steps + 1))
    assert staleness(model, steps) == [min(step, steps) for step in range(BATCHES)]


def test_without_the_option_no_row_is_stale(graph):
    model = counter(BATCHES, lambda step, reads: None)
    assert staleness(model, 0) == [0] * BATCHES
    with tf.Graph().as_default():
        model = counter(BATCHES, lambda step, reads: reads.wait_for(step + 1))
        assert staleness(model, 0, capacity=4) == [0] * BATCHES


@pytest.mark.parametrize("examples", [8, pytest.param(60, marks=pytest.mark.slow)])
def test_rows_are_never_staler_than_was_asked(examples):
    waits = st.lists(st.integers(0, 6), min_size=BATCHES, max_size=BATCHES)
    drawn = given(steps=st.integers(1, 4), capacity=st.integers(1, 3), waits=waits)
    settings(max_examples=examples, deadline=None)(drawn(require_staleness))()


def require_staleness(steps, capacity, waits):
    """Rows are as stale as was asked after a step that waits for all reads, and never staler."""

    def before_update(step, reads):
        # Some steps update at once, others when reads have gone on as far as they can.
        reads.wait_for(step + min(waits[step], steps + 1))

    with tf.Graph().as_default():
        found = staleness(counter(BATCHES, before_update), steps, capacity=capacity)
    assert all(0 <= each <= min(step, steps) for step, each in enumerate(found))
    for step, wait in enumerate(waits[: -steps - 1]):
        if wait > steps:
            assert found[step + steps] == steps


def test_a_stage_of_the_users_own_stays_before_it(graph):
    def go(steps, **wishes):
        model = counter(BATCHES, lambda step, reads: reads.wait_for(step + steps + 1), own=True)
        _, plan = config_of(model, steps, **wishes)
        assert [stage.name for stage in plan.stages] == ["smart_stage_lookups"]
        return staleness(model, steps, **wishes)

    assert go(2) == [min(step, 2) for step in range(BATCHES)]


def test_several_stages_before_it_change_nothing(graph):
    wishes = {"capacity": 3, "num_threads": 2, "reorder": True}
    model = counter(BATCHES, lambda step, reads: reads.wait_for(step + 2), wide=True)
    _, plan = config_of(model, 1, **wishes)
    assert [(each.name, each.options.num_threads) for each in plan.stages] == [
        ("smart_stage_input", 1),
        ("smart_stage", 2),
        ("smart_stage_lookups", 1),
    ]
    assert staleness(model, 1, **wishes) == [min(step, 1) for step in range(BATCHES)]


def test_the_data_begin_again_with_what_was_trained_so_far(graph):
    model = counter(1 << 20, lambda step, reads: None)
    config, _ = config_of(model, 2)
    with v1.Session(config=config) as session:
        model.initialize(session)
        with prefetching(session):
            for epoch in range(3):
                for step in range(5):
                    rows, _ = session.run([model.rows, model.train])
                    done = 5 * epoch + step
                    # Nothing that was read before the restart is delivered after it.
                    assert max(done - 2, 5 * epoch) <= rows[0, 0] <= done
                session.run(model.initializer)


def test_the_end_of_the_data_comes_after_every_batch(graph, tmp_path):
    model = counter(7, lambda step, reads: reads.wait_for(step + 3))
    config, _ = config_of(model, 2)
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, model.initializer)
    v1.train.get_or_create_global_step()
    seen = []
    with (
        v1.train.MonitoredTrainingSession(
            config=config, hooks=[make_prefetch_hook()], checkpoint_dir=str(tmp_path)
        ) as session,
        contextlib.suppress(tf.errors.OutOfRangeError),
    ):
        for _ in range(20):
            seen.append(session.run([model.rows, model.train])[0][0, 0])
    assert seen == [0, 0, 0, 1, 2, 3, 4]


def test_an_error_of_a_lookup_reaches_the_step_that_wanted_its_rows(graph):
    ids = np.asarray([[0], [1], [9], [0]])
    model = regression(ids, LOOKUPS["stock"], 0, v1.train.GradientDescentOptimizer(0.1))
    config, _ = config_of(model, 1)
    with v1.Session(config=config) as session:
        model.initialize(session)
        with prefetching(session):
            session.run(model.train)
            session.run(model.train)
            with pytest.raises(tf.errors.OpError, match=r"smart_stage_lookups.*= 9 is not in"):
                session.run(model.train)


def test_sessions_on_a_server_are_as_stale(graph):
    server = tf.distribute.Server.create_local_server()
    model = counter(BATCHES, lambda step, reads: reads.wait_for(step + 3))
    assert staleness(model, 2, target=server.target) == [min(step, 2) for step in range(BATCHES)]


def test_clients_at_once_add_the_steps_that_run_beside_theirs(graph, clients):
    model, steps = counter(1 << 20, lambda step, reads: None), 2
    config, _ = config_of(model, steps)
    ended: list[None] = []
    with v1.Session(config=config) as session:
        model.initialize(session)
        with prefetching(session):

            def missing(_):
                before = len(ended)
                rows, _ = session.run([model.rows, model.train])
                ended.append(None)
                return before - rows[0, 0]

            found = list(clients.map(missing, range(60)))
    # The 8 clients' steps that ran when the step `steps` before took its rows, and those after it.
    assert max(found) <= steps - 1 + 8


# The others differ from one of these in how the table is held or read.
QUICK = ("stock", "stock, sparse and safe", "v1", "v2", "grouped")
IDS = np.random.default_rng(3).integers(0, 6, [BATCHES, 4])


def losses(model: StaleModel, steps: int, config=None) -> list[float]:
    config, plan = config_of(model, steps, config)
    assert [stage.stale_lookups for stage in plan.stages][-1] == steps
    with v1.Session(config=config) as session:
        model.initialize(session)
        with prefetching(session):
            return [float(session.run([model.loss, model.train])[0]) for _ in IDS]


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in LOOKUPS],
)
def test_what_trains_is_the_gradient_of_stale_rows_on_the_table_of_now(graph, name):
    model = regression(IDS, LOOKUPS[name], 2, v1.train.GradientDescentOptimizer(0.1))
    expected = delayed_losses(IDS, TABLE, 2, 0.1)
    assert expected != delayed_losses(IDS, TABLE, 0, 0.1)
    np.testing.assert_allclose(losses(model, 2), expected, rtol=1e-5)


def test_lookups_that_are_fused_in_the_graph_may_be_stale(graph):
    model = regression(
        IDS, LOOKUPS["stock, sparse and safe"], 1, v1.train.GradientDescentOptimizer(0.1)
    )
    config = v1.ConfigProto()
    fusion = plan_fusion(graph)
    assert fusion.of("lookup")
    smart_stage.apply(fusion, config)
    expected = delayed_losses(IDS, TABLE, 1, 0.1)
    np.testing.assert_allclose(losses(model, 1, config), expected, rtol=1e-5)


def test_an_embedding_variable_counts_each_batch_once_and_trains_its_rows(graph, tmp_path):
    def look_up(ids):
        option = ops.EmbeddingVariableOption(filter_option=ops.CounterFilter(filter_freq=3))
        table = ops.get_embedding_variable(
            "emb", 2, initializer=tf.constant_initializer(0.5), ev_option=option
        )
        return tf.nn.embedding_lookup(table, ids)

    model = regression(IDS, look_up, 1, v1.train.GradientDescentOptimizer(0.1))
    config, plan = config_of(model, 1)
    assert "1 lookup reads its table" in plan.describe()
    saver = v1.train.Saver()
    with v1.Session(config=config) as session:
        model.initialize(session)
        with prefetching(session):
            for _ in IDS:
                session.run(model.train)
        found = ops.read_embedding_variable(saver.save(session, str(tmp_path / "model")), "emb")
    keys, counts = np.unique(IDS, return_counts=True)
    by_key = dict(zip(found["key"].tolist(), found["freq"].tolist(), strict=True))
    assert by_key == dict(zip(keys.tolist(), counts.tolist(), strict=True))


def test_a_grouped_lookup_of_an_embedding_variable_hands_its_rows_to_a_later_update(graph):
    def look_up(ids):
        table = ops.get_embedding_variable("emb", 2, initializer=tf.constant_initializer(0.5))
        (rows,) = ops.grouped_embedding_lookup([table], [ids])
        return rows

    model = regression(IDS, look_up, 1, ops.GradientDescentOptimizer(0.1))
    config, plan = config_of(model, 1)
    assert "1 lookup reads its table" in plan.describe()
    assert "WorkbenchEmbeddingGroupedApply" in {op.type for op in graph.get_operations()}
    expected = delayed_losses(IDS, np.full_like(TABLE, 0.5), 1, 0.1)
    np.testing.assert_allclose(losses(model, 1, config), expected, rtol=1e-5)

"""Trailing updates: tables on a parameter server that a later run than the step writes."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.core.framework import attr_value_pb2

from tests.builders.servers import Servers
from tests.builders.stale_models import (
    LOOKUPS,
    NOTE,
    TABLE,
    StaleModel,
    counter,
    delayed_losses,
    regression,
    shard,
)
from workbench.core import smart_stage
from workbench.core.options import SmartStageOptions
from workbench.core.session.pack_transfers import pack_transfers
from workbench.core.session.prefetch_hook import make_prefetch_hook, prefetching

v1 = tf.compat.v1
BATCHES = 12
_NUMBERS = itertools.count()
IDS = np.random.default_rng(3).integers(0, 6, [BATCHES, 4])


@pytest.fixture(scope="module")
def servers():
    return Servers({"ps": 1, "worker": 1})


@contextlib.contextmanager
def placed(servers):
    """A graph whose variables are on the parameter server, and not those of a test before."""
    with tf.Graph().as_default() as graph, servers.placed(), graph.container(_own_name()):
        yield


def _own_name() -> str:
    return f"test{next(_NUMBERS)}"


def config_of(model: StaleModel, steps: int, *, trails: bool = True, packed: bool = False):
    config = v1.ConfigProto(inter_op_parallelism_threads=4, operation_timeout_in_ms=60_000)
    options = SmartStageOptions(stale_lookups=steps, move=(NOTE,))
    config, plan = smart_stage.prepare_config(
        v1.get_default_graph(), config, options, targets=[model.train, model.loss]
    )
    assert bool(plan.stages[-1].trailing) == trails, plan.describe()
    return pack_transfers(config) if packed else config


@contextlib.contextmanager
def session_of(servers, model: StaleModel, steps: int = 1, **wishes):
    with v1.Session(servers.target, config=config_of(model, steps, **wishes)) as session:
        model.initialize(session)
        with prefetching(session):
            yield session


def at_once(batches: int) -> StaleModel:
    """A counter whose steps wait for nothing."""
    return counter(batches, lambda step, reads: None)


def staleness(servers, model: StaleModel, steps: int, **wishes) -> list[int]:
    with session_of(servers, model, steps, **wishes) as session:
        rows = [session.run([model.rows, model.train])[0] for _ in range(BATCHES)]
    return [step - int(row[0, 0]) for step, row in enumerate(rows)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_rows_are_as_stale_as_was_asked(servers, steps, packed):
    with placed(servers):
        model = counter(BATCHES, lambda step, reads: reads.wait_for(step + steps + 1))
        found = staleness(servers, model, steps, packed=packed)
    assert found == [min(step, steps) for step in range(BATCHES)]


@pytest.mark.parametrize("examples", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_rows_are_never_staler_than_was_asked(servers, examples):
    waits = st.lists(st.integers(0, 5), min_size=BATCHES, max_size=BATCHES)

    def check(steps, waits):
        def before_update(step, reads):
            reads.wait_for(step + min(waits[step], steps + 1))

        with placed(servers):
            found = staleness(servers, counter(BATCHES, before_update), steps)
        assert all(0 <= each <= min(step, steps) for step, each in enumerate(found))

    drawn = given(steps=st.integers(1, 3), waits=waits)
    settings(max_examples=examples, deadline=None)(drawn(check))()


KINDS = (
    "stock",
    "stock of a ref variable",
    "stock of two shards",
    "gather of a whole read",
    "v2",
    "grouped, of a ref variable",
)


@pytest.mark.parametrize("name", KINDS)
def test_what_trains_is_the_gradient_of_stale_rows_on_the_table_of_now(servers, name):
    with placed(servers):
        model = regression(IDS, LOOKUPS[name], 2, v1.train.GradientDescentOptimizer(0.1))
        with session_of(servers, model, 2, packed=True) as session:
            found = [float(session.run([model.loss, model.train])[0]) for _ in IDS]
    np.testing.assert_allclose(found, delayed_losses(IDS, TABLE, 2, 0.1), rtol=1e-5)


def decayed(_):
    step = v1.train.get_or_create_global_step()
    return v1.train.AdagradOptimizer(v1.train.exponential_decay(0.1, step, 3, 0.9))


@pytest.mark.parametrize(
    ("optimizer", "look_up"),
    [
        (v1.train.AdagradOptimizer, "stock of a ref variable"),
        (decayed, "stock of a ref variable"),
        (lambda rate: v1.train.MomentumOptimizer(rate, 0.9), "stock of a ref variable"),
        (v1.train.FtrlOptimizer, "stock"),
        # Its slots decay in the step, which returns the new ones.
        (v1.train.AdamOptimizer, "stock"),
    ],
)
def test_slots_are_as_without_trailing(servers, optimizer, look_up):
    def trained(target, trails):
        model = regression(IDS, LOOKUPS[look_up], 1, optimizer(0.1))
        config = config_of(model, 1, trails=trails)
        with v1.Session(target, config=config) as session:
            model.initialize(session)
            with prefetching(session):
                for _ in IDS:
                    session.run(model.train)
                return session.run(v1.global_variables())

    with placed(servers):
        trailing = trained(servers.target, True)
    with tf.Graph().as_default():
        local = trained("", False)
    for one, other in zip(trailing, local, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_two_inputs_each_have_updates_that_trail(servers):
    with placed(servers):
        numbers = tf.data.Dataset.range(1 << 20).batch(1)
        inputs = [v1.data.make_initializable_iterator(numbers) for _ in range(2)]
        ids = [each.get_next() for each in inputs]
        names = ("one", "other", "both")
        tables = [shard(np.zeros([1, 1], np.float32), name) for name in names]
        # Each step adds 1 to its row of each table, and 2 where both inputs look it up.
        rows = [tf.nn.embedding_lookup(tables[t], ids[i] % 1) for t, i in ((0, 0), (1, 1))]
        rows += [tf.nn.embedding_lookup(tables[2], each % 1) for each in ids]
        loss = -tf.add_n([tf.reduce_sum(each) for each in rows])
        train = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
        config, plan = smart_stage.prepare_config(
            v1.get_default_graph(),
            None,
            SmartStageOptions(stale_lookups=1, starts=tuple(each.op.name for each in ids)),
            targets=[train, loss],
        )
        trailing = [stage.trailing.variables for stage in plan.stages if stage.trailing]
        assert trailing == [("one",), ("other",)]
        with v1.Session(servers.target, config=config) as session:
            session.run([v1.global_variables_initializer(), *(i.initializer for i in inputs)])
            with prefetching(session):
                for step in range(30):
                    session.run(train)
                    found = [value.item() for value in session.run(tables)]
                    assert found == [step + 1, step + 1, 2 * step + 2]


def test_a_step_that_trains_nothing_holds_nobody_up(servers):
    with placed(servers):
        model = at_once(1 << 20)
        with session_of(servers, model, 2) as session:
            trained = 0
            for step in range(30):
                train = step % 3 == 0
                rows = session.run([model.rows, model.train] if train else [model.rows])[0]
                assert trained - 2 <= rows[0, 0] <= trained
                trained += train
            for _ in range(4):
                session.run(model.rows)
            assert session.run(model.rows)[0, 0] == trained


@pytest.mark.parametrize("resource", [True, False])
def test_whole_reads_lack_no_update(servers, resource):
    with placed(servers):
        v1.get_variable_scope().set_use_resource(resource)
        model = at_once(1 << 20)
        (table,) = v1.global_variables()
        with session_of(servers, model, 2) as session:
            for step in range(20):
                session.run(model.train)
                assert session.run(table)[0, 0] == step + 1
            # As is a value that is assigned.
            session.run(table.initializer)
            assert session.run(table)[0, 0] == 0


def test_checkpoints_have_every_update_and_the_end_comes_after_every_batch(servers, tmp_path):
    with placed(servers):
        model = at_once(7)
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, model.initializer)
        step = v1.train.get_or_create_global_step()
        model = dataclasses.replace(model, train=tf.group(model.train, v1.assign_add(step, 1)))
        with (
            v1.train.MonitoredTrainingSession(
                servers.target,
                config=config_of(model, 2),
                hooks=[make_prefetch_hook()],
                checkpoint_dir=str(tmp_path),
            ) as session,
            contextlib.suppress(tf.errors.OutOfRangeError),
        ):
            for _ in range(20):
                session.run(model.train)
        saved = tf.train.load_checkpoint(str(tmp_path)).get_tensor("table")
    assert saved[0, 0] == 7


def test_a_stop_waits_for_what_steps_returned(servers):
    with placed(servers):
        model = at_once(1 << 20)
        (table,) = v1.global_variables()
        with v1.Session(servers.target, config=config_of(model, 3)) as session:
            model.initialize(session)
            for run in range(5):
                with prefetching(session) as stages:
                    for _ in range(4):
                        session.run(model.train)
                # None waits for what no longer comes, so that nobody lost patience with it.
                assert not any(thread.is_alive() for each in stages for thread in each.threads)
                assert session.run(table)[0, 0] == 4 * (run + 1)


def test_the_data_begin_again_with_what_was_trained_so_far(servers):
    with placed(servers):
        model = at_once(1 << 20)
        with session_of(servers, model, 2) as session:
            for epoch in range(4):
                for step in range(5):
                    rows, _ = session.run([model.rows, model.train])
                    done = 5 * epoch + step
                    assert done - 2 <= rows[0, 0] <= done
                session.run(model.initializer)


def test_steps_that_fail_train_nothing_and_hold_nobody_up(servers):
    def fail_once(step, reads):
        if step == 3:
            raise ValueError("the step fails")

    with placed(servers):
        model = counter(1 << 20, fail_once)
        (table,) = v1.global_variables()
        with session_of(servers, model, 1) as session:
            for step in range(10):
                with pytest.raises(tf.errors.OpError) if step == 3 else contextlib.nullcontext():
                    session.run(model.train)
            assert session.run(table)[0, 0] == 9


def test_clients_at_once_apply_each_update_once(servers, clients):
    with placed(servers):
        model = at_once(1 << 20)
        (table,) = v1.global_variables()
        with session_of(servers, model, 2) as session:
            list(clients.map(lambda _: session.run(model.train), range(60)))
            assert session.run(table)[0, 0] == 60


def test_an_error_of_a_lookup_reaches_the_step_that_wanted_its_rows(servers):
    ids = np.asarray([[0], [1], [9], [0]])
    with placed(servers):
        model = regression(ids, LOOKUPS["stock"], 0, v1.train.GradientDescentOptimizer(0.1))
        with session_of(servers, model, 1) as session:
            session.run(model.train)
            session.run(model.train)
            with pytest.raises(
                tf.errors.InvalidArgumentError, match=r"(?s)smart_stage_lookups.*= 9 is not in"
            ):
                session.run(model.train)


def _returned(model):
    """Where a step computes which rows it updates, and by what."""
    graph = v1.get_default_graph()
    (update,) = (op for op in graph.get_operations() if op.type == "ResourceScatterAdd")
    gradient = update.inputs[2].op.inputs[0].op.inputs[0]
    return update.inputs[1], gradient


def test_a_step_with_its_batch_fed_is_refused(servers):
    with placed(servers):
        model = regression(IDS, LOOKUPS["stock"], 0, v1.train.GradientDescentOptimizer(0.1))
        places, gradient = _returned(model)
        with (
            session_of(servers, model, 1) as session,
            pytest.raises(tf.errors.FailedPreconditionError, match="took no batch from it"),
        ):
            session.run(
                model.train, {gradient: np.zeros([4, 2], np.float32), places: np.zeros(4, int)}
            )


def _trail(config):
    (optimizer,) = (
        each
        for each in config.graph_options.rewrite_options.custom_optimizers
        if each.name == "WorkbenchStagePlan"
    )
    (trail,) = optimizer.parameter_map["stages"].list.func[-1].attr["trail"].list.func
    return trail


def _without(key):
    return lambda trail: trail.attr.pop(key)


def _texts(key, *values):
    encoded = [each.encode() for each in values]
    return lambda trail: trail.attr[key].list.CopyFrom(
        attr_value_pb2.AttrValue.ListValue(s=encoded)
    )


def _text(key, value):
    def change(trail):
        trail.attr[key].s = value

    return change


UPDATE = "GradientDescent/update_table/ResourceScatterAdd"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without("updates"), "trailing updates: parameter 'updates' is missing"),
        (_without("settle"), "trailing updates: parameter 'settle' is missing"),
        (_texts("moved_ops", "Neg"), "'moved' has 3 names, 'moved_ops' 1; expected as many"),
        (_texts("updates", "table"), "update 'table' is not among the trailing nodes"),
        (_text("begin", b"x"), "begin 'x' is not among the stage's own nodes"),
        (
            _text("await", b"smart_stage_lookups_buffer/begin"),
            "is a WorkbenchBufferBegin; expected a WorkbenchBufferAwait",
        ),
        (_texts("variables", "gone"), "variable 'gone' is not in the session's graph"),
        (_texts("moved_ops", "Neg", "Mul", "Neg"), "is a ResourceScatterAdd in the session's"),
        (
            _texts("from", *["GradientDescent/update_table/mul:0"] * 3),
            "trailing node 'GradientDescent/update_table/mul' is returned too",
        ),
        (_texts("from", "gone:0", "table:0", "table:0"), "gone"),
        (_texts("from", "table:0", "table:0", "table:0"), "twice"),
    ],
)
def test_a_damaged_plan_is_refused(servers, change, message):
    with placed(servers):
        model = regression(IDS, LOOKUPS["stock"], 0, v1.train.GradientDescentOptimizer(0.1))
        config = config_of(model, 1)
        assert UPDATE.encode() in _trail(config).attr["updates"].list.s
        change(_trail(config))
        with (
            v1.Session(servers.target, config=config) as session,
            pytest.raises(tf.errors.InvalidArgumentError, match=message),
        ):
            model.initialize(session)


def test_a_stage_that_starts_again_says_that_its_batches_are_dropped(servers, caplog):
    with placed(servers):
        model = at_once(BATCHES)
        with v1.Session(servers.target, config=config_of(model, 1)) as session:
            model.initialize(session)
            for _ in range(2):
                assert "is started again" not in caplog.text
                with prefetching(session):
                    for _ in range(3):
                        session.run(model.train)
    assert "is started again in its session: batches that it had read ahead" in caplog.text

"""A stage that is to have threads of its own gets them in the program's session."""

from __future__ import annotations

import os

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.grids import every_value
from tests.builders.pool_threads import pools_are
from workbench.experiments.worker.steps.graph_session import ProgramSession

v1 = tf.compat.v1
CORES = len(os.sched_getaffinity(0))
OWN = wb.StageOptions(use_stage_subgraph_thread_pool=True)
SMART = wb.SmartStageOptions(use_stage_subgraph_thread_pool=True)


def program(config=None):
    def build(optimizations):
        data = tf.data.Dataset.counter().map(lambda i: tf.cast(i, tf.float32))
        batch = v1.data.make_one_shot_iterator(data).get_next() + 1.0
        if optimizations.stage:
            batch = wb.staged(batch, optimizations.stage)
        weight = v1.get_variable("w", [], initializer=v1.zeros_initializer())
        loss = tf.identity(batch)
        train_op = v1.assign_add(weight, tf.sign(batch))
        return wb.Built(train_op=train_op, loss=loss, config=config)

    return wb.Program(name="counting", build=build)


def session_of(optimizations, config=None, **named):
    return ProgramSession(program(config), "build", optimizations, **named)


def inter_op_pools(session):
    return [p.num_threads for p in session._session._tf_sess()._config.session_inter_op_thread_pool]


@pytest.mark.executors
@every_value(
    executor=[None, *wb.ExecutorPolicy],
    stage=[{"stage": OWN}, {"smart_stage": SMART}],
    recorded=[False, True],
)
def test_a_stage_has_threads_of_its_own_under_every_executor(executor, stage, recorded):
    session = session_of(wb.Optimizations(**stage, executor=executor), recorded=recorded)
    try:
        assert session.run(4, "loss").values.tolist() == [1.0, 2.0, 3.0, 4.0]
        assert inter_op_pools(session) == [0, 0]
        assert pools_are(stage_0_intra=1)
    finally:
        session.close()
    assert pools_are()


@pytest.mark.executors
@pytest.mark.parametrize("left", [1, 2])
def test_inside_ops_it_has_the_cores_that_the_step_leaves(left, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    session = session_of(wb.Optimizations(stage=OWN, intra_op_threads=6 - left))
    try:
        session.run(2, "loss")
        assert pools_are(stage_0_intra=left)
    finally:
        session.close()


def test_a_pool_of_the_program_is_the_one_that_is_used():
    config = v1.ConfigProto()
    wb.add_stage_pools(config, [wb.ThreadPoolOptions(inter_op_threads_num=3)])
    session = session_of(wb.Optimizations(stage=OWN), config)
    try:
        session.run(2, "loss")
        assert inter_op_pools(session) == [0, 3]
        assert pools_are()
    finally:
        session.close()


@pytest.mark.executors
def test_there_are_as_many_pools_as_the_highest_number_asks_for():
    options = wb.StageOptions(use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=2)
    session = session_of(wb.Optimizations(stage=options))
    try:
        session.run(2, "loss")
        assert inter_op_pools(session) == [0, 0, 0, 0]
        assert pools_are(stage_2_intra=1)
    finally:
        session.close()


def test_without_a_stage_that_asks_there_is_none_and_the_programs_config_stays_as_it_was():
    config = v1.ConfigProto(inter_op_parallelism_threads=1)
    before = config.SerializeToString()
    for stage in (wb.StageOptions(), OWN):
        optimizations = wb.Optimizations(stage=stage, intra_op_threads=1)
        session = session_of(optimizations, config)
        try:
            assert len(inter_op_pools(session)) == (2 if stage is OWN else 0)
        finally:
            session.close()
        assert config.SerializeToString() == before

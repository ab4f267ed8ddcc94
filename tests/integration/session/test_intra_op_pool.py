"""Threads inside the ops of a stage's runs, in real sessions: names, numbers, work, ends."""

from __future__ import annotations

import gc

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.grids import rest_slow
from tests.builders.pool_threads import pools_are, threads
from workbench.compat import training
from workbench.compat.config import ConfigProto
from workbench.core import smart_stage
from workbench.core.session.running import intra_op_pool, thread_pool
from workbench.core.session.running.stage_run import live_runs
from workbench.core.session.session_facts import records_ops

v1 = tf.compat.v1
pytestmark = pytest.mark.executors
# An idle thread of a pool has used far less, what a heavy op leaves to it far more.
WORKED_S = 0.005
OWN_POOL = wb.StageOptions(use_stage_subgraph_thread_pool=True)


@pytest.fixture(autouse=True)
def _warnings_afresh():
    thread_pool._warned.clear()


def config_of(*pools, executor: str = "", **fields):
    config = v1.ConfigProto(**fields)
    config.experimental.executor_type = executor
    wb.add_stage_pools(config, pools)
    return config


def pool(threads: int = 2, name: str = "mine"):
    return wb.ThreadPoolOptions(
        inter_op_threads_num=1, intra_op_threads_num=threads, global_name=name
    )


def numbers():
    """0, 1, 2, … as long as anybody asks."""
    dataset = tf.data.Dataset.counter()
    return tf.cast(v1.data.make_one_shot_iterator(dataset).get_next(), tf.float32)


def heavy(number):
    """A product of matrices that every thread of a pool gets a part of; exact for small numbers."""
    matrix = tf.fill([600, 600], number)
    return tf.reduce_max(tf.matmul(matrix, matrix))


def staged(options=OWN_POOL, **kwargs):
    return wb.staged(heavy(numbers()), options, **kwargs)


def monitored(config):
    return v1.train.MonitoredTrainingSession(config=config, hooks=[wb.make_prefetch_hook()])


@pytest.mark.parametrize(
    "executor", rest_slow(["", "DEFAULT", *wb.ExecutorPolicy], "", wb.ExecutorPolicy.COST_MODEL)
)
def test_the_ops_of_a_stage_work_on_its_own_threads_under_every_executor(executor):
    asked = executor
    if executor in set(wb.ExecutorPolicy):
        asked = wb.executor_options(executor).experimental.executor_type
    config = config_of(pool(3), executor=asked)
    back = staged()
    with monitored(config) as session:
        got = [float(session.run(back)) for _ in range(20)]
        assert pools_are(mine_0_intra=3)
        assert sum(threads()["mine_0_intra"]) > WORKED_S
    assert pools_are()
    plain = heavy(numbers())
    with v1.Session() as session:
        assert got == [session.run(plain) for _ in range(20)]


def test_what_is_not_staged_works_on_the_sessions_threads():
    back = wb.staged(numbers(), OWN_POOL)
    step = heavy(back)
    with monitored(config_of(pool(2))) as session:
        for _ in range(20):
            session.run(step)
        assert pools_are(mine_0_intra=2)
        assert sum(threads()["mine_0_intra"]) < WORKED_S


def test_every_pool_has_its_own_number_of_threads_and_a_name_the_kernel_can_show():
    long = "a_name_of_many_characters"
    config = config_of(pool(2, long), pool(1, ""), pool(0, "none"), pool(3, "unused"))
    takes = [
        staged(
            wb.StageOptions(use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=k)
        )
        for k in range(3)
    ]
    with monitored(config) as session:
        session.run(takes)
        assert pools_are(racters_0_intra=2, stage_1_intra=1)


def test_two_stages_share_a_pool_of_their_session_and_the_last_to_end_ends_it():
    takes = [staged(), staged()]
    with v1.Session(config=config_of(pool(2))) as session, wb.prefetching(session) as runs:
        session.run(takes)
        assert pools_are(mine_0_intra=2)
        runs[0].stop()
        assert pools_are(mine_0_intra=2)
        session.run(takes[1])
        runs[1].stop()
        assert pools_are()


def test_sessions_share_no_threads_though_their_pools_have_one_name():
    back = staged()
    config = config_of(pool(2))
    with v1.Session(config=config) as one, wb.prefetching(one):
        one.run(back)
        with tf.Graph().as_default():
            other_back = staged()
            with v1.Session(config=config) as other, wb.prefetching(other):
                other.run(other_back)
                assert pools_are(mine_0_intra=4)
        assert pools_are(mine_0_intra=2)
    assert pools_are()


def test_a_session_that_is_forgotten_gives_its_threads_up():
    back = staged()
    session = v1.Session(config=config_of(pool(2)))
    hook = wb.make_prefetch_hook()
    hook.begin()
    with session, wb.prefetching(session):
        session.run(back)
        assert live_runs(session)
    del session, hook
    gc.collect()
    assert pools_are()
    assert len(intra_op_pool._POOLS) == 0


def test_values_that_are_fed_to_a_stage_are_computed_on_its_threads_too():
    fed = v1.placeholder(tf.float32, [])
    back = wb.staged(tf.identity(fed), OWN_POOL, feed_dict={fed: heavy(numbers())})
    with monitored(config_of(pool(3))) as session:
        for _ in range(20):
            session.run(back)
        assert sum(threads()["mine_0_intra"]) > WORKED_S


def test_a_smart_stage_has_its_own_threads():
    step = tf.identity(
        heavy(numbers()) * v1.get_variable("w", [], initializer=v1.ones_initializer())
    )
    options = wb.SmartStageOptions(use_stage_subgraph_thread_pool=True)
    config, plan = smart_stage.prepare_config(
        v1.get_default_graph(), config_of(pool(3)), options, targets=[step]
    )
    assert any("MatMul" in stage.moved for stage in plan.stages)
    with monitored(config) as session:
        for _ in range(20):
            session.run(step)
        assert pools_are(mine_0_intra=3)
        assert sum(threads()["mine_0_intra"]) > WORKED_S


def test_a_python_function_that_fails_leaves_nothing_behind():
    def fail():
        raise ValueError("no more")

    back = wb.staged(v1.py_func(fail, [], tf.float32), OWN_POOL)
    with (
        pytest.raises(tf.errors.OpError, match="no more"),
        monitored(config_of(pool(2))) as session,
    ):
        session.run(back)
    assert pools_are()


def test_an_executor_that_cannot_give_threads_to_a_stage_warns_once(caplog):
    config = config_of(pool(2), executor="SINGLE_THREADED_EXECUTOR")
    assert config.experimental.executor_type == "SINGLE_THREADED_EXECUTOR"
    config.experimental.executor_type = ""
    with v1.Session(config=config) as session:
        for _ in range(2):
            assert thread_pool.intra_op_pool(session, "input", OWN_POOL) is None
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "stage 'input': thread pool 0 has 2 intra-op threads" in said[0]
    assert "leave ConfigProto.experimental.executor_type empty" in said[0]


def test_a_server_warns_and_its_session_gets_no_threads(caplog):
    server = v1.train.Server.create_local_server()
    config = ConfigProto()
    config.session_stage_subgraph_thread_pool.add(intra_op_threads_num=2)
    back = staged()
    hooks = [wb.make_prefetch_hook()]
    with training.MonitoredTrainingSession(server.target, config=config, hooks=hooks) as session:
        session.run(back)
        assert pools_are()
    said = [record.getMessage() for record in caplog.records if record.name == "workbench"]
    assert len(said) == 1 and "runs on the server's own threads" in said[0]


def test_pools_that_are_added_later_keep_the_numbers_of_the_earlier_ones():
    config = config_of(pool(0, "first"))
    assert config.experimental.executor_type == ""
    wb.add_stage_pools(config, [pool(2, "second")])
    assert config.experimental.executor_type == "WORKBENCH_STOCK"
    wb.add_stage_pools(config, [pool(0, "third")])
    wb.add_stage_pools(config, [pool(1, "fourth")])
    assert thread_pool._kept(config) == [("", 0), ("second", 2), ("", 0), ("fourth", 1)]
    assert not records_ops(config)


def test_deeprecs_config_asks_for_them():
    config = ConfigProto()
    config.session_stage_subgraph_thread_pool.add()
    config.session_stage_subgraph_thread_pool[0].intra_op_threads_num = 2
    config.session_stage_subgraph_thread_pool[0].global_name = "mine"
    back = staged()
    with monitored(config.to_stock()) as session:
        session.run(back)
        assert pools_are(mine_0_intra=2)

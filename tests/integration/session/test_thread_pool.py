"""The pools and threads that a stage runs on, in real sessions."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from workbench.compat.config import ConfigProto
from workbench.errors import OptionError

v1 = tf.compat.v1


def monitored(**kwargs):
    return v1.train.MonitoredTrainingSession(hooks=[wb.make_prefetch_hook()], **kwargs)


class TestThreadPools:
    def _config(self, pools: int):
        config = v1.ConfigProto()
        options = [wb.ThreadPoolOptions(inter_op_threads_num=1) for _ in range(pools)]
        wb.add_stage_pools(config, options)
        return config

    def _threads_of(self, pool: int, config) -> tuple[set[int], set[int]]:
        """OS threads that ran the staged side, and those that ran the step."""
        seen: tuple[set[int], set[int]] = (set(), set())

        def note(side: int):
            seen[side].add(threading.get_native_id())
            return np.int64(0)

        source = v1.py_func(lambda: note(0), [], tf.int64)
        back = wb.staged(
            source,
            wb.StageOptions(
                use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=pool
            ),
        )
        with tf.control_dependencies([back]):
            step = v1.py_func(lambda: note(1), [], tf.int64)
        with monitored(config=config) as session:
            for _ in range(20):
                session.run([back, step])
        return seen

    def test_a_stage_runs_on_its_own_pool(self):
        staged_threads, step_threads = self._threads_of(1, self._config(2))
        assert staged_threads
        assert not staged_threads & step_threads

    @pytest.mark.parametrize(
        ("pools", "says"), [(0, r"no stage thread pool; add one: wb\.add_stage"), (2, r"\[0, 1\]")]
    )
    def test_a_bad_id_names_the_valid_range(self, pools, says):
        back = wb.staged(
            tf.constant(1),
            wb.StageOptions(use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=2),
        )
        with (
            pytest.raises(OptionError, match=says),
            monitored(config=self._config(pools)) as session,
        ):
            session.run(back)

    @pytest.mark.parametrize(
        ("config", "pools", "says"),
        [
            (None, [wb.ThreadPoolOptions()], "config is None of type NoneType; expected a tf.com"),
            (ConfigProto(), [], r"has the field session_stage_subgraph_thread_pool\)"),
            (v1.ConfigProto(), [2], r"pools are \[2\]; expected a list of wb.ThreadPoolOptions"),
            (v1.ConfigProto(), wb.ThreadPoolOptions(), "expected a list of wb.ThreadPoolOptions"),
        ],
    )
    def test_other_things_are_refused(self, config, pools, says):
        with pytest.raises(OptionError, match=says):
            wb.add_stage_pools(config, pools)

    def test_a_step_that_runs_in_its_caller_does_not_borrow_the_producers_thread(self):
        seen: tuple[set[int], set[int]] = (set(), set())

        def note(side: int):
            seen[side].add(threading.get_native_id())
            time.sleep(0.002 * (1 - side))
            return np.int64(0)

        back = wb.staged(v1.py_func(lambda: note(0), [], tf.int64))
        with tf.control_dependencies([back]):
            step = v1.py_func(lambda: note(1), [], tf.int64)
        config = v1.ConfigProto(inter_op_parallelism_threads=-1)
        with v1.Session(config=config) as session, wb.prefetching(session):
            for _ in range(20):
                session.run(step)
        assert not seen[0] & seen[1]

"""The threads of a child process are those that the setting of its first session asks for."""

from __future__ import annotations

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.threads_of_process import threads_of_process
from workbench.errors import RunError
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import Close, Open, RunSteps


def build(_optimizations: wb.Optimizations) -> wb.Built:
    # A function of a pipeline makes the threads before the session is there.
    data = tf.data.Dataset.from_tensors(1.0).map(lambda one: one + 1.0).repeat()
    batch = tf.compat.v1.data.make_one_shot_iterator(data).get_next()
    counted = tf.numpy_function(threads_of_process, [], tf.float32)
    counted.set_shape([])
    return wb.Built(train_op=batch.op, loss=counted)


PROGRAM = wb.Program(name="counting threads", build=build)


def test_ops_of_a_graph_have_the_intra_op_threads_of_the_toggle():
    settings = [wb.Optimizations(intra_op_threads=count) for count in (2, 62)]
    with started_workers([(each.label(), PROGRAM) for each in settings]) as workers:
        few, many = [], []
        for worker, setting, found in zip(workers, settings, (few, many), strict=True):
            worker.call(Open(session="main", optimizations=setting))
            found += worker.call(RunSteps(session="main", steps=3, fetch="loss")).values.tolist()
    # How many others a process has differs by a few, by chance.
    assert 54 <= many[-1] - few[-1] <= 66


def test_another_number_comes_too_late_for_a_process():
    with started_workers([("worker", PROGRAM)]) as (worker,):
        for again in range(2):
            setting = wb.Optimizations(intra_op_threads=2)
            worker.call(Open(session=f"{again}", optimizations=setting))
            worker.call(Close(session=f"{again}"))
        worker.call(Open(session="as it is", optimizations=wb.Optimizations()))
        with pytest.raises(RunError, match="3 intra-op threads: this process runs ops on"):
            worker.call(Open(session="late", optimizations=wb.Optimizations(intra_op_threads=3)))

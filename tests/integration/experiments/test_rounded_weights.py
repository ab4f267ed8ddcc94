"""What equal losses are held against: the same program from weights one rounding away."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.core.optimizations import Optimizations
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import Close, Open, RunSteps


def build(optimizations, resource=False):
    """A table, a matrix and an integer, trained on a few rows; the graph is finished."""
    import tensorflow as tf

    v1 = tf.compat.v1
    data = tf.data.Dataset.range(1000).batch(8, drop_remainder=True)
    ids = v1.data.make_one_shot_iterator(data).get_next() % 10
    with v1.variable_scope("", use_resource=resource):
        table = v1.get_variable("table", [10, 4])
        weight = v1.get_variable("weight", [4, 1])
        v1.get_variable("count", [], tf.int64, initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.gather(table, ids), weight) - 1.0))
    step = v1.train.get_or_create_global_step()
    train = v1.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
    return Built(train_op=train, loss=loss)


def build_with_resources(optimizations):
    return build(optimizations, resource=True)


def make():
    """The same as a function."""
    import tensorflow as tf

    weight = tf.Variable(tf.random.normal([4, 1], seed=1))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) - 1.0))
        weight.assign_sub(0.01 * tape.gradient(loss, weight))
        return loss

    rows = tf.constant([[0.1, 0.2, 0.3, 0.5], [0.7, 0.1, 0.3, 0.2]])
    data = tf.data.Dataset.range(1000).map(lambda i: tf.cast(i % 7 + 1, tf.float32) * rows)
    return step, data


PROGRAMS = {
    "references": lambda: Program(name="tiny", build=build),
    "resources": lambda: Program(name="tiny", build=build_with_resources),
    "function": lambda: FunctionProgram(name="tiny", make=make),
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_losses_begin_a_rounding_apart_and_no_more(kind):
    losses = {}
    with started_workers([("all off", PROGRAMS[kind]())]) as (worker,):
        for name, rounding in (("plain", 0), ("again", 0), ("one way", 1), ("farther", 8)):
            worker.call(Open(session=name, optimizations=Optimizations(), rounding=rounding))
            losses[name] = worker.call(RunSteps(session=name, steps=5, fetch="loss")).values
            worker.call(Close(session=name))
    assert losses["again"].tolist() == losses["plain"].tolist()
    assert len({tuple(losses[name].tolist()) for name in ("plain", "one way", "farther")}) == 3
    for name in ("one way", "farther"):
        np.testing.assert_allclose(losses[name][:2], losses["plain"][:2], rtol=1e-4)

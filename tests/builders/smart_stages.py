"""A small model on a counted input, and its session's config with a smart stage."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from workbench.core import smart_stage
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.session.staged import staged

v1 = tf.compat.v1


def counted(count: int = 1000) -> tuple[tf.data.Iterator, list[int]]:
    """An iterator of [i, i + 1] as int64, and the list of what was read so far."""
    read: list[int] = []

    def note(i):
        read.append(int(i))
        return np.asarray([i, i + 1], np.int64)

    data = tf.data.Dataset.range(count).map(
        lambda i: tf.ensure_shape(tf.numpy_function(note, [i], tf.int64), [None])
    )
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    plain.autotune.enabled = False
    return v1.data.make_initializable_iterator(data.with_options(plain)), read


@dataclasses.dataclass
class Model:
    initializer: tf.Operation
    batch: tf.Tensor
    features: tf.Tensor
    size: tf.Tensor
    loss: tf.Tensor
    train: tf.Operation
    read: list[int]

    @property
    def targets(self):
        return [self.train, self.loss]


def model(own_stage: bool = False, use_resource: bool = True, **options) -> Model:
    iterator, read = counted()
    batch = iterator.get_next()
    if own_stage:
        batch = staged(batch, StageOptions(**options))
    features = tf.cast(batch * 2, tf.float32, name="features")
    weights = v1.get_variable(
        "w", [2], initializer=tf.ones_initializer(), use_resource=use_resource
    )
    loss = tf.reduce_sum(weights * features, name="loss")
    step = v1.train.get_or_create_global_step()
    train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return Model(iterator.initializer, batch, features, tf.size(batch), loss, train, read)


def initialize(session) -> None:
    session.run([v1.global_variables_initializer(), v1.tables_initializer()])


def prepared(built: Model, options=None, **wishes):
    return smart_stage.prepare_config(
        v1.get_default_graph(), None, options or SmartStageOptions(**wishes), targets=built.targets
    )

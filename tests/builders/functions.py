"""Steps of a tf.function and their datasets, run plainly and with a smart stage."""

from __future__ import annotations

import threading
import time

import numpy as np
import tensorflow as tf

from workbench.core.function.stage import smart_stage_function

STAGE = "smart_stage"


def producers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith(STAGE)]


def values(result):
    """A step's result in NumPy, composites taken apart."""
    flat = tf.nest.flatten(result, expand_composites=True)
    return [None if leaf is None else np.asarray(leaf).tolist() for leaf in flat]


def plain(step, dataset, spread=True) -> list:
    return [step(*x) if spread else step(x) for x in dataset]


def require_same(step, dataset, *, reset=lambda: None, spread=True, options=None):
    """Both loops give the same, step by step, and the staged one twice over."""
    reset()
    wanted = plain(step, dataset, spread)
    stage = smart_stage_function(step, dataset, options)
    for _ in range(2):
        reset()
        found = list(stage)
        for one, other in zip(wanted, found, strict=True):
            tf.nest.assert_same_structure(one, other, expand_composites=True)
            assert values(one) == values(other)
    return stage


def moved(stage) -> list[str]:
    return list(stage.plan.stages[0].moved_ops)


def pairs(count: int = 6) -> tf.data.Dataset:
    """Batches of (words, numbers)."""
    words = tf.constant([["1", "2"], ["3", "4"], ["5", "6"]] * count)[:count]
    return tf.data.Dataset.from_tensor_slices((words, np.arange(2.0 * count).reshape(count, 2)))


@tf.function
def parse(words, numbers):
    return tf.strings.to_number(words, name="parse")


def with_known_runner(stage):
    """The runner that the stage's next epoch takes."""
    runner = stage._build()
    stage._runners._idle.append(runner)
    return runner


def wait_for(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert condition()

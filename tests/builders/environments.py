"""`python -m tests.builders.environments NAME`: one situation in a process of its own.

Prints what came out; an error of ours is its text. Functions by name, below.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def make() -> tuple[Any, Any]:
    import tensorflow as tf

    total = tf.Variable(0.0)

    @tf.function
    def step(x: Any) -> Any:
        words = tf.strings.as_string(x)
        total.assign_add(tf.reduce_sum(tf.cast(tf.strings.length(words), tf.float32)))
        return total.read_value()

    return step, tf.data.Dataset.range(64).batch(4)


def legacy_keras() -> Any:
    """A function and a Keras 3 model where TensorFlow finds no tf_keras."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf

    import workbench as wb
    from workbench import ops

    steps = len(list(wb.smart_stage(*make())))
    import keras

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    stage = wb.smart_stage(model)
    model.fit(tf.data.Dataset.from_tensors((tf.ones([2, 1]), tf.ones([2, 1]))), verbose=0)
    return steps, stage.plan is not None, issubclass(ops.GroupedEmbedding, keras.layers.Layer)


def no_stderr() -> Any:
    import workbench as wb

    with wb.quiet_start():
        import tensorflow  # noqa: F401
    return compared()


def removed_folder() -> Any:
    import workbench.errors

    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
    try:
        return compared()
    except workbench.errors.RunError as error:
        return error


def spawned() -> Any:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(compared)


def compared() -> Any:
    import workbench as wb

    program = wb.FunctionProgram(name="mine", make=make)
    quick = {"budget_s": 1, "trace_steps": 0, "equivalence_steps": 0}
    return [each.label for each in wb.compare(program, ["smart_stage"], **quick).variants]


SITUATIONS: dict[str, Callable[[], Any]] = {
    each.__name__: each for each in (legacy_keras, no_stderr, removed_folder, spawned)
}

if __name__ == "__main__":
    print(SITUATIONS[sys.argv[1]]())

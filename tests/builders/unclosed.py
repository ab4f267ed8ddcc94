"""Scripts that end without closing what runs ahead, each a process of its own.

`python -m tests.builders.unclosed NAME` is one of them, ending with the code that CODES says.
`python -m tests.builders.unclosed COUNT NAMES` runs so many of these in turn, forked where
TensorFlow is imported but not used yet, and prints how often each ended with which code.
"""

from __future__ import annotations

import collections
import itertools
import multiprocessing
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

import workbench as wb

v1 = tf.compat.v1
AT_A_TIME = 3
LIMIT_SECONDS = 120
TWO = wb.StageOptions(num_threads=2, capacity=2)
# What is never closed, as the globals of a script are not.
KEPT: list[Any] = []


def run_one(name: str, output: str) -> None:
    """Runs a script in this process, which is a fork, and ends it as a script ends."""
    written = os.open(output, os.O_WRONLY)
    os.dup2(written, 1)
    os.dup2(written, 2)
    signal.alarm(LIMIT_SECONDS)
    SCRIPTS[name]()
    sys.exit(0)


def run_many(count: int, names: Sequence[str]) -> bool:
    """Runs `count` of these scripts in turn; whether all ended as they have to."""
    waiting = list(itertools.islice(itertools.cycle(names), count))
    running: dict[int, tuple[str, pathlib.Path]] = {}
    ended: collections.Counter[tuple[str, int]] = collections.Counter()
    while waiting or running:
        while waiting and len(running) < AT_A_TIME:
            name, output = waiting.pop(0), tempfile.mkstemp()[1]
            pid = os.fork()
            if pid == 0:
                run_one(name, output)
            running[pid] = name, pathlib.Path(output)
        pid, status = os.wait()
        name, said = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        ended[name, code] += 1
        if code != CODES.get(name, 0):
            print(name, "ended with", code, said.read_text()[-3000:], flush=True)
        said.unlink()
    for (name, code), times in sorted(ended.items()):
        print(f"{name}: {times} times {code}")
    return all(code == CODES.get(name, 0) for name, code in ended)


def numbers() -> Any:
    return v1.data.make_one_shot_iterator(tf.data.Dataset.range(1 << 40)).get_next()


def slow_numbers(seconds: float) -> Any:
    def wait(x: Any) -> Any:
        time.sleep(seconds)
        return x

    return tf.py_function(wait, [numbers()], tf.int64)


def begin(x: Any, options: Any = TWO) -> tuple[v1.Session, Any]:
    """A session whose stage runs and is never stopped, and what to fetch."""
    fetch = wb.staged([x, x + 1], options)
    session = v1.Session()
    KEPT.append(wb.prefetching(session))
    KEPT[-1].__enter__()
    return session, fetch


def monitored() -> None:
    with tf.Graph().as_default():
        fetch = wb.staged([numbers(), numbers()], TWO)
        v1.train.get_or_create_global_step()
        session = v1.train.MonitoredTrainingSession(hooks=[wb.make_prefetch_hook()])
        for _ in range(20):
            session.run(fetch)


def monitored_ends_by_sys_exit() -> None:
    monitored()
    sys.exit(3)


def plain_session() -> None:
    with tf.Graph().as_default():
        session, fetch = begin(numbers(), wb.StageOptions(num_threads=8, capacity=2))
        KEPT.append(session)
        for _ in range(20):
            session.run(fetch)


def session_that_is_dropped() -> None:
    """Nothing but the producers refers to the session."""
    with tf.Graph().as_default():
        session, fetch = begin(numbers())
        session.run(fetch)
    KEPT.clear()


def blocked_in_put() -> None:
    with tf.Graph().as_default():
        KEPT.append(begin(numbers(), wb.StageOptions(num_threads=4, capacity=1)))
        time.sleep(0.1)


def blocked_in_a_queue() -> None:
    """Nothing is ever put into what the producers read."""
    with tf.Graph().as_default():
        queue = tf.queue.FIFOQueue(4, tf.int64, shapes=[()])
        KEPT.append(begin(queue.dequeue()))
        time.sleep(0.3)


def blocked_in_take() -> None:
    """A user's own thread waits for a batch, its producer for a longer time for another."""
    with tf.Graph().as_default():
        session, fetch = begin(slow_numbers(1.0))
        for _ in range(4):
            threading.Thread(target=quietly, args=(session.run, fetch), daemon=True).start()
        time.sleep(0.1)
        KEPT.append(session)


def quietly(run: Any, *values: Any) -> None:
    while True:
        try:
            run(*values)
        except (tf.errors.OpError, RuntimeError):
            return


def chained_stages() -> None:
    with tf.Graph().as_default():
        session, fetch = begin(wb.staged(slow_numbers(0.05), TWO))
        session.run(fetch)
        KEPT.append(session)


def slow_producer() -> None:
    with tf.Graph().as_default():
        session, fetch = begin(slow_numbers(0.3))
        session.run(fetch)
        KEPT.append(session)


def stuck_producer() -> None:
    """Sleeps longer than an exit waits for it, which is six seconds."""
    with tf.Graph().as_default():
        KEPT.append(begin(slow_numbers(9.0)))
        time.sleep(0.1)


@tf.function
def step(x: Any) -> Any:
    return tf.strings.to_number(tf.strings.as_string(x)) + 1.0


def function_stage() -> None:
    """Left in the middle, with a slow reader in Python and several threads."""
    dataset = tf.data.Dataset.range(1 << 40).map(
        lambda x: tf.ensure_shape(tf.numpy_function(slowly, [x], tf.int64), [])
    )
    options = wb.SmartStageOptions(num_threads=2, reorder=True)
    KEPT.append(iter(wb.smart_stage(step, dataset, options)))
    next(KEPT[-1])


def slowly(x: Any) -> Any:
    time.sleep(0.02)
    return x


def fit(end: Any) -> None:
    model = keras.Sequential([keras.layers.Rescaling(0.5), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    data = tf.data.Dataset.from_tensors((np.ones([8, 4], "f4"), np.ones([8, 1], "f4"))).repeat()
    wb.smart_stage(model)
    callback = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: end(batch))
    model.fit(data, steps_per_epoch=100, verbose=0, callbacks=[callback])


def keras_fails() -> None:
    def end(batch: int) -> None:
        if batch == 3:
            raise ZeroDivisionError

    fit(end)


def keras_sys_exit() -> None:
    fit(lambda batch: sys.exit(3) if batch == 3 else None)


def forked_child() -> None:
    """The child inherits the parent's stages, but none of their threads."""
    function_stage()
    plain_session()
    child = multiprocessing.get_context("fork").Process(target=print, args=("child",))
    child.start()
    child.join(60)
    if child.exitcode != 0:
        sys.exit(f"the child ended with {child.exitcode}")
    pid = os.fork()
    if pid == 0:
        KEPT[1].__exit__(None, None, None)
        KEPT[0].close()
        sys.exit(0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            sys.exit(os.waitstatus_to_exitcode(status))
        time.sleep(0.05)
    os.kill(pid, 9)
    sys.exit("the child did not end")


SCRIPTS = {
    script.__name__: script
    for script in (
        monitored,
        monitored_ends_by_sys_exit,
        plain_session,
        session_that_is_dropped,
        blocked_in_put,
        blocked_in_a_queue,
        blocked_in_take,
        chained_stages,
        slow_producer,
        stuck_producer,
        function_stage,
        keras_fails,
        keras_sys_exit,
        forked_child,
    )
}
# What others show too: an end by itself of what ends by sys.exit, another wait of the same kind,
# the parent of a forked child.
ALIKE = ("monitored", "plain_session", "slow_producer", "function_stage", "keras_sys_exit")
CODES = {"monitored_ends_by_sys_exit": 3, "keras_fails": 1, "keras_sys_exit": 3}

if __name__ == "__main__":
    said = sys.argv[1]
    if said in SCRIPTS:
        SCRIPTS[said]()
    elif not run_many(int(said), sys.argv[2:]):
        sys.exit("a script ended with another code than it has to")

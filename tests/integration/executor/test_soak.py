"""Many clients on one session, with cancellations, limits of time and errors: nothing may be left.

`WORKBENCH_SOAK_EXECUTOR_SECONDS` sets how long each policy runs (`make soak-executor`: 10 minutes).
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import sys
import threading
import time
from collections import Counter

import numpy as np
import psutil
import pytest
import tensorflow as tf

from tests.builders.executors import (
    config_of,
    control_flow,
    each_policy,
    plain,
)

v1 = tf.compat.v1
SECONDS = float(os.environ.get("WORKBENCH_SOAK_EXECUTOR_SECONDS", "2"))
CLIENTS = 32
# A step that takes longer hangs.
STUCK_S = 60.0
# What allocators may keep for themselves after the first third of the time, and what a run leaves:
# stock's own executor leaves 170 bytes of each here.
ALLOWED_BYTES = 24 << 20
ALLOWED_BYTES_PER_RUN = 256


class Graph:
    """What clients run: each fetch with what it must give, and some that fail or wait for ever."""

    def __init__(self) -> None:
        self.x = x = v1.placeholder(tf.float32, [8])
        self.bad = v1.placeholder_with_default(tf.constant(False), [])
        w = v1.get_variable("w", [8], initializer=v1.ones_initializer(), use_resource=False)
        r = v1.get_variable("r", [8], initializer=v1.ones_initializer(), use_resource=True)
        queue = v1.FIFOQueue(1_000_000, [tf.float32], shapes=[[]])

        def called(value, bad):
            if bad:
                raise ValueError("injected")
            return value * np.float32(2)

        doubled = tf.ensure_shape(v1.py_func(called, [x, self.bad], tf.float32), [8])
        # an op that is fed with bad input: 9 is no index of x
        picked = tf.gather(x, tf.where(self.bad, 9, 3))

        @tf.function(experimental_attributes={"_noinline": True})
        def function(value):
            for i in tf.range(3):
                value = tf.sin(value) + tf.cast(i, tf.float32)
            return value

        def loop(start):
            def body(i, a):
                return i + 1, tf.cond(i % 2 > 0, lambda: a + picked, lambda: tf.cos(a))

            return tf.while_loop(lambda i, a: i < 6, body, [0, start])[1]

        with control_flow(1):
            old_loop = loop(x)
        with control_flow(2):
            new_loop = loop(x)
        with tf.device("/cpu:1"):
            there = tf.exp(tf.tanh(old_loop)) * w
        wide = tf.add_n([tf.sin(x * float(i)) for i in range(30)])
        block = tf.reduce_sum(tf.matmul(tf.fill([64, 64], x[0]), tf.ones([64, 64])))
        # Every run puts one item for the one that it takes; what failed in between leaves one.
        self.left = queue.size()
        self.drain = queue.dequeue_many(100)
        with tf.control_dependencies([queue.enqueue(x[0] * 0.0 + 5.0)]):
            taken = queue.dequeue() + picked
        self.right = {
            "wide": [wide, block],
            "variables": [tf.identity(w) + r, doubled],
            "old loop": [old_loop, there],
            "new loop": [new_loop, function(x)],
            "queue": [taken, wide],
            "all": [wide, there, new_loop, doubled, function(x), taken],
        }
        # A queue for each client: stock's deadlock where two steps that wait for one are cancelled.
        self.waiting = [self._wait(number, wide, there, taken) for number in range(CLIENTS)]

    def _wait(self, number: int, wide, there, taken) -> list[tf.Tensor]:
        empty = v1.FIFOQueue(100, [tf.float32], shapes=[[]], name=f"empty_{number}")
        if number % 4 == 0:
            return [empty.dequeue()]
        if number % 4 == 1:
            return [empty.dequeue() * 2.0, wide, there]
        if number % 4 == 2:
            return [tf.add_n([empty.dequeue() for _ in range(5)]), taken]

        def body(i, a):
            return i + 1, a + empty.dequeue()

        with control_flow(1 + number // 4 % 2):
            return [tf.while_loop(lambda i, a: i < 3, body, [0, 0.0])[1]]


class Soak:
    """The clients of one session and what became of their runs."""

    def __init__(self, graph: Graph, session: v1.Session, expected: dict) -> None:
        self.graph, self.session, self.expected = graph, session, expected
        self.batches = expected["batches"]
        self.wrong: list = []
        self.seen: Counter[str] = Counter()
        self.ended = threading.Event()
        self.since = [time.monotonic()] * CLIENTS
        self._mu = threading.Lock()

    def client(self, number: int) -> None:
        rng = np.random.default_rng(number)
        try:
            while not self.ended.is_set():
                self.since[number] = time.monotonic()
                what = self._step(number, rng)
                with self._mu:
                    self.seen[what] += 1
        except BaseException as error:  # A thread's error would go unseen.
            self.wrong.append(error)
        finally:
            self.since[number] = float("inf")

    def _step(self, number: int, rng: np.random.Generator) -> str:
        chosen, which = rng.random(), int(rng.integers(len(self.batches)))
        feeds = {self.graph.x: self.batches[which]}
        name = str(rng.choice(list(self.graph.right)))
        if chosen < 0.75:
            limit = v1.RunOptions(timeout_in_ms=120_000) if chosen < 0.15 else None
            found = self.session.run(self.graph.right[name], feeds, options=limit)
            if [np.asarray(f).tobytes() for f in found] != self.expected[name, which]:
                self.wrong.append((name, which))
            return "right"
        if chosen < 0.85:
            try:
                self.session.run(self.graph.right[name], {**feeds, self.graph.bad: True})
                if name != "wide":
                    self.wrong.append((name, "no error"))
            except tf.errors.InvalidArgumentError as error:
                if "injected" not in error.message and "is not in [0, 8)" not in error.message:
                    self.wrong.append((name, error.message))
            return "error"
        if chosen < 0.95:
            waiting = self.graph.waiting[number]
            limit = v1.RunOptions(timeout_in_ms=int(rng.integers(1, 60)))
            with pytest.raises(tf.errors.DeadlineExceededError):
                self.session.run(waiting, feeds, options=limit)
            return "limit of a wait"
        # a limit that some runs keep and others do not
        limit = v1.RunOptions(timeout_in_ms=int(rng.integers(1, 5)))
        with contextlib.suppress(tf.errors.DeadlineExceededError):
            self.session.run(self.graph.right[name], feeds, options=limit)
        return "limit of work"

    def watch(self) -> None:
        """Takes what failed steps left. Ends the process, with all stacks, when a client hangs."""
        while not self.ended.wait(1.0):
            # Those that run now keep what is theirs.
            if self.session.run(self.graph.left) > 100 + CLIENTS:
                self.session.run(self.graph.drain)
            if time.monotonic() - min(self.since) > STUCK_S:
                faulthandler.dump_traceback(file=sys.__stderr__, all_threads=True)
                os._exit(70)


def expected_values(graph: Graph) -> dict:
    rng = np.random.default_rng(7)
    batches = rng.normal(size=(6, 8)).astype(np.float32)
    values: dict = {"batches": batches}
    with v1.Session(config=plain(device_count={"CPU": 2})) as stock:
        stock.run(v1.global_variables_initializer())
        for name, fetches in graph.right.items():
            for which, batch in enumerate(batches):
                found = stock.run(fetches, {graph.x: batch})
                values[name, which] = [np.asarray(f).tobytes() for f in found]
    return values


def close_while_they_run(graph: Graph, config: v1.ConfigProto) -> None:
    """A session is closed while clients wait and work: all must end, with an error that says so."""
    session = v1.Session(config=config)
    session.run(v1.global_variables_initializer())
    wrong: list = []
    feeds = {graph.x: np.ones(8, np.float32)}

    def client(fetches) -> None:
        try:
            while True:
                session.run(fetches, feeds)
        except (tf.errors.CancelledError, tf.errors.AbortedError):
            pass
        except RuntimeError as error:
            if "closed Session" not in str(error):
                wrong.append(error)
        except BaseException as error:
            wrong.append(error)

    each = [*graph.waiting[:8], *graph.right.values()]
    threads = [threading.Thread(target=client, args=(f,), daemon=True) for f in each]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    session.close()
    for thread in threads:
        thread.join(STUCK_S)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


@pytest.mark.slow
@each_policy
@pytest.mark.timeout(SECONDS + 200)
def test_clients_cancel_and_fail_and_nothing_is_left(policy):
    graph = Graph()
    expected = expected_values(graph)
    config = config_of(policy, plain(device_count={"CPU": 2}))
    initialize = v1.global_variables_initializer()
    v1.get_default_graph().finalize()
    process = psutil.Process()
    with v1.Session(config=config) as session:
        session.run(initialize)
        soak = Soak(graph, session, expected)
        threads = [threading.Thread(target=soak.client, args=(i,)) for i in range(CLIENTS)]
        watcher = threading.Thread(target=soak.watch, daemon=True)
        for thread in (*threads, watcher):
            thread.start()
        time.sleep(SECONDS / 3)
        gc.collect()
        warm, warm_runs = process.memory_info().rss, soak.seen.total()
        time.sleep(SECONDS * 2 / 3)
        gc.collect()
        grown, runs = process.memory_info().rss - warm, soak.seen.total() - warm_runs
        soak.ended.set()
        for thread in (*threads, watcher):
            thread.join(STUCK_S)
        assert not any(thread.is_alive() for thread in threads)
        assert soak.wrong == []
        assert min(soak.seen.values()) > 0
        print(f"{policy}: {dict(soak.seen)}, {grown / 1e6:+.1f} MB", file=sys.stderr)
    allowed = ALLOWED_BYTES + runs * ALLOWED_BYTES_PER_RUN
    assert grown <= allowed, f"{grown / 1e6:.1f} MB grown in {runs} runs"


@each_policy
def test_sessions_closed_while_clients_run(policy):
    graph = Graph()
    v1.global_variables_initializer()
    config = config_of(policy, plain(device_count={"CPU": 2}))
    for _ in range(3):
        close_while_they_run(graph, config)

"""Steps on the threads of their clients: how often they have to wait for their turn, counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import tensorflow as tf

from tests.builders.executors import (
    config_of,
    plain,
)
from workbench import _native

v1 = tf.compat.v1
CLIENTS, STEPS = 16, 12
THINKS_S = 0.002  # Several times what a turn is kept for a client who does not call.


@pytest.fixture
def loop():
    """A session that runs a loop inline, and what to run."""
    with tf.Graph().as_default() as graph:
        fed = v1.placeholder(tf.float32, [])
        v1.disable_control_flow_v2()
        try:
            looped = tf.while_loop(lambda i, x: i < 20, lambda i, x: (i + 1, x * 1.5), [0, fed])
        finally:
            v1.enable_control_flow_v2()
        assert any(op.type == "Enter" for op in graph.get_operations())
        with v1.Session(config=config_of("inline", plain())) as session:
            yield lambda: session.run(looped[1], {fed: 1.0})


def counted(run: Callable[[], object]) -> tuple[int, int]:
    """How often clients asked for a turn meanwhile, and kept one between two calls."""
    calls = _native.calls()
    asked, kept = calls.workbench_turns_asked(), calls.workbench_turns_kept()
    run()
    return calls.workbench_turns_asked() - asked, calls.workbench_turns_kept() - kept


def together(client: Callable[[], None]) -> None:
    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_step_with_a_loop_asks_for_its_turn_once(loop):
    loop()
    assert counted(lambda: [loop() for _ in range(STEPS)])[0] == STEPS


def test_clients_that_think_between_their_steps_keep_no_turn(loop):
    def client() -> None:
        for _ in range(STEPS):
            loop()
            time.sleep(THINKS_S)

    loop()
    assert counted(lambda: together(client)) == (CLIENTS * STEPS, 0)


def test_clients_that_call_again_at_once_ask_once_a_step(loop):
    def client() -> None:
        for _ in range(STEPS):
            loop()

    loop()
    assert counted(lambda: together(client))[0] == CLIENTS * STEPS


@pytest.mark.parametrize("behind", [False, True])
def test_a_step_that_waited_asks_again_only_for_what_is_left_to_run(behind):
    with tf.Graph().as_default():
        queue = tf.queue.FIFOQueue(1, [tf.float32], shapes=[[]])
        enqueued, taken = queue.enqueue(3.0), queue.dequeue()
        fetched = taken.op if not behind else taken * 2.0
        with v1.Session(config=config_of("inline", plain())) as session:

            def wait_for_a_value() -> None:
                client = threading.Thread(target=session.run, args=(fetched,))
                client.start()
                time.sleep(0.1)  # It waits now; where it came late it asks less.
                session.run(enqueued)
                client.join()

            wait_for_a_value()
            asked = counted(wait_for_a_value)[0]
    assert asked in ((2, 3) if behind else (2,))

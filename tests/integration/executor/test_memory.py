"""Memory that steps needed goes back: after a peak, and with the last session."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap

import pytest

# Runs steps of some size in a session, then says what the process holds, in MB.
_CHILD = """
    import gc, sys, threading
    import numpy as np, psutil
    import tensorflow as tf
    from tests.builders.executors import config_of, plain

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    x = v1.placeholder(tf.float32, [None, 1024])
    y = x
    for _ in range(12):
        y = tf.stack([tf.reduce_sum(tf.exp(y), 1), tf.reduce_sum(y, 1)], 1) @ tf.ones([2, 1024])
    total = tf.reduce_sum(y)

    def held():
        gc.collect()
        return psutil.Process().memory_info().rss / 1e6

    def steps(rows, count, threads=1):
        def run():
            call, values = session.make_callable(total, [x]), np.zeros([rows, 1024], np.float32)
            for _ in range(count):
                call(values)
        clients = [threading.Thread(target=run) for _ in range(threads)]
        for client in clients: client.start()
        for client in clients: client.join()

    def new_session():
        return v1.Session(config=config_of(sys.argv[1], plain(inter_op_parallelism_threads=2)))
"""


def child(policy: str, code: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_CHILD) + textwrap.dedent(code), policy],
        # oneDNN, on by itself where a CPU has AVX-512, keeps a work space for each of its threads.
        env=os.environ | {"PYTHONPATH": os.getcwd(), "TF_ENABLE_ONEDNN_OPTS": "0"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [float(number) for number in done.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("policy", [pytest.param("inline", marks=pytest.mark.slow), "cost_model"])
def test_the_last_session_gives_its_memory_back(policy):
    # Blocks of over 32 MiB: each is mapped by itself. Of smaller ones the C library keeps the last
    # one of each of its arenas, on stock's executor even more than on this one.
    before, peak, after = child(
        policy,
        """
    session = new_session()
    steps(10, 2)
    print(held())
    steps(9_000, 2, threads=4)
    print(held())
    session.close()
    del session
    print(held())
    """,
    )
    assert peak > before + 100
    assert after < before + (peak - before) * 0.1


@pytest.mark.slow
def test_a_hundred_sessions_need_what_twenty_need():
    twenty, hundred = child(
        "inline",
        """
    for i in range(100):
        session = new_session()
        steps(200, 2)
        session.close()
        if i in (19, 99): print(held())
    """,
    )
    gc.collect()
    assert hundred < twenty + 40

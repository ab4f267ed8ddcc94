"""What stock TensorFlow's executor and devices read from the environment, Workbench's heed too."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from tests.builders.executors import POLICIES, each_policy
from tests.builders.scripts import run_script

_ORDER = """
    import os, random, sys
    import tensorflow as tf
    from tests.builders.executors import config_of, plain, with_threads
    from workbench.core.capture.op_events import Recording

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    # Memory of other sizes moves the edges of the graph to other addresses.
    random.seed(int(sys.argv[2]))
    kept = []
    x = v1.placeholder(tf.float32, [])
    made = []
    for i in range(150):
        kept.append([bytearray(random.randrange(20_000)) for _ in range(random.randrange(5))])
        made.append(tf.identity(x, name=f"many_{i}"))
    total = tf.add_n(made)
    with v1.Session(config=config_of(sys.argv[1], with_threads(plain(), 1))) as session:
        call = session.make_callable(total, [x])
        for _ in range(6):  # The cost model has learned by then.
            call(1.0)
        recording = Recording()
        call(1.0)
        events = recording.stop()
    names = events.nodes["name"].iloc[events.node]
    print(" ".join(name for name in names if name.startswith("many_")))
"""

_LOGGED = """
    import tensorflow as tf
    from tests.builders.executors import POLICIES, config_of, plain

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    x = v1.placeholder(tf.float32, [2])
    for policy in ("stock", *POLICIES):
        with v1.Session(config=config_of(policy, plain())) as session:
            session.run(tf.square(x, name=f"under_{policy}") + 1.0, {x: [3.0, 4.0]})
"""


def output(
    folder: pathlib.Path, code: str, *arguments: str, fresh: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    done = run_script(code, folder, *arguments, fresh=fresh, **variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@each_policy
def test_an_order_that_depends_on_the_graph_alone(policy, tmp_path):
    """With TF_DETERMINISTIC_ORDER nodes run in one order in every process."""
    orders = [
        output(tmp_path, _ORDER, policy, seed, TF_DETERMINISTIC_ORDER="1").stdout.split()
        for seed in ("1", "2")
    ]
    assert len(orders[0]) == 150
    assert orders[0] == orders[1]
    ids = [int(name.rpartition("_")[2]) for name in orders[0]]
    turns = sum((a < b) != (b < c) for a, b, c in zip(ids, ids[1:], ids[2:], strict=False))
    assert turns <= 2  # All but one that its thread keeps run by their number, up or down.


@pytest.mark.slow
def test_a_devices_own_way_to_run_a_kernel_is_kept(tmp_path):
    """TensorFlow's CPU device logs inputs and outputs of the ops that it is told to."""
    variables = {"TF_CPU_DEBUG_OPS_TO_LOG": "Square", "TF_CPP_MIN_LOG_LEVEL": "0"}
    # Fresh: TensorFlow reads what it is to log while it is imported.
    logged = output(tmp_path, _LOGGED, fresh=True, **variables).stderr
    for policy in ("stock", *POLICIES):
        assert f"Inputs for under_{policy}" in logged

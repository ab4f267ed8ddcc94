"""What functions send from task to task is packed into few messages; values are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.scripts import run_script

# Twelve tables on two parameter servers; the step sends ids, and rows and gradients come and go.
STEPS = """
    import os
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.eager import context
    import workbench as wb
    from tests.builders.servers import function_transfers, Servers

    servers = Servers({"ps": 2, "worker": 1})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        servers.cluster, rpc_layer="grpc"
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    start = [np.random.default_rng(k).normal(size=[40, 4]).astype(np.float32) for k in range(12)]
    with strategy.scope():
        tables = [tf.Variable(each) for each in start]

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows = [tf.gather(table, ids + k) for k, table in enumerate(tables)]
            loss = tf.reduce_sum(tf.tanh(tf.concat(rows, 1)))
        for table, slices in zip(tables, tape.gradient(loss, tables)):
            table.scatter_sub(tf.IndexedSlices(0.1 * slices.values, slices.indices))
        return loss

    def trained(call):
        for table, each in zip(tables, start):
            table.assign(each)
        losses = [float(call(tf.constant([k, 2, 3, 2]))) for k in range(3)]
        return losses, np.stack([table.numpy() for table in tables]).tobytes()
"""


def ran(script: str, folder: Path) -> list[str]:
    # A coordinator's threads end with its process only.
    done = run_script(f'{script}\n    print("done", flush=True)\n    os._exit(0)', folder)
    assert done.stdout.endswith("done\n"), done.stderr[-4000:]
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_coordinators_own_step_sends_few_messages(tmp_path: Path) -> None:
    said = ran(
        f"""{STEPS}
    plain, alone = trained(step), function_transfers(lambda: step(tf.constant([1])))
    wb.cluster.pack_function_transfers()
    packed, together = trained(step), function_transfers(lambda: step(tf.constant([1])))
    assert plain == packed
    print(len(alone), len(together), sum("packed/" in each.tensor for each in together))
    """,
        tmp_path,
    )
    alone, together, packed = map(int, said[-2].split())
    assert alone >= 4 * together, said
    assert packed >= 4, said  # ids, rows, gradients, of two servers


def test_scheduled_steps_are_packed_on_their_worker(tmp_path: Path) -> None:
    said = ran(
        f"""{STEPS}
    import glob
    def scheduled(ids):
        return coordinator.schedule(step, args=(ids,)).fetch()

    def packs(folder):
        tf.profiler.experimental.start(folder)
        found = trained(scheduled)
        tf.profiler.experimental.stop()
        (profile,) = glob.glob(f"{{folder}}/**/*.xplane.pb", recursive=True)
        with open(profile, "rb") as file:
            return found, b"WorkbenchPackTensors" in file.read()

    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    plain, without = packs("plain")
    wb.cluster.pack_function_transfers()
    # Threads of the first coordinator go on as they did.
    strategy._cluster_coordinator = None
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    packed, with_packs = packs("packed")
    assert plain == packed
    assert (without, with_packs) == (False, True), (without, with_packs)
    """,
        tmp_path,
    )
    assert said[-1] == "done"

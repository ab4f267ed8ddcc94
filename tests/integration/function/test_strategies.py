"""Smart stages of steps under `tf.distribute`'s strategies: what works, and what is refused."""

from __future__ import annotations

from pathlib import Path

from tests.builders.scripts import run_script

MIRRORED = """
    import tensorflow as tf
    import workbench as wb

    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, 2 * [tf.config.LogicalDeviceConfiguration()])
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = tf.data.Dataset.range(32).batch(4)
    with strategy.scope():
        weight = tf.Variable(1.0)

    def in_replica(batch):
        part = batch[tf.distribute.get_replica_context().replica_id_in_sync_group :: 2]
        mean = tf.reduce_mean(tf.math.log1p(tf.cast(part, tf.float32)))
        weight.assign_add(0.01 * mean)
        return mean * weight

    @tf.function
    def step(batch):
        found = strategy.run(in_replica, [batch])
        return strategy.reduce(tf.distribute.ReduceOp.SUM, found, axis=None)

    def trained(results):
        weight.assign(1.0)
        return [float(value) for value in results]
"""
SERVERS = """
    import os
    import socket
    import tensorflow as tf
    import workbench as wb

    sockets = [socket.create_server(("localhost", 0)) for _ in range(2)]
    places = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    cluster = tf.train.ClusterSpec({"ps": places[:1], "worker": places[1:]})
    servers = [
        tf.distribute.Server(cluster, job_name=job, task_index=0, protocol="grpc")
        for job in ("ps", "worker")
    ]
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weight = tf.Variable(1.0)

    def read():
        return tf.data.Dataset.range(32).batch(4)

    @tf.function
    def step(batch):
        mean = tf.reduce_mean(tf.math.log1p(tf.cast(batch, tf.float32)))
        weight.assign_add(0.01 * mean)
        return mean * weight

    def trained(results):
        weight.assign(1.0)
        return [float(value) for value in results]
"""


def ran(script: str, folder: Path) -> str:
    # A coordinator's threads end with its process only.
    done = run_script(f'{script}\n    print("done", flush=True)\n    os._exit(0)', folder)
    assert done.stdout.endswith("done\n"), done.stderr[-4000:]
    return done.stdout


def test_a_step_of_mirrored_replicas_is_staged(tmp_path: Path) -> None:
    said = ran(
        f"""
    import os
    {MIRRORED}
    staged = wb.smart_stage(step, dataset)
    assert trained(staged) == trained(map(step, dataset))
    print(staged.plan.describe())
    """,
        tmp_path,
    )
    assert "run ahead from 'batch'" in said


def test_a_distributed_dataset_is_refused_and_the_place_of_a_part_named(tmp_path: Path) -> None:
    said = ran(
        f"""
    import os
    {MIRRORED}
    try:
        wb.smart_stage(step, strategy.experimental_distribute_dataset(dataset))
    except wb.WorkbenchError as error:
        print(error)
    """,
        tmp_path,
    )
    assert "dataset is a DistributedDataset, with a value for each replica" in said
    assert "give it the tf.data.Dataset itself, and have the function of strategy.run" in said


def test_a_coordinator_with_variables_on_servers_stages_its_own_steps(tmp_path: Path) -> None:
    same = "assert trained(wb.smart_stage(step, read())) == trained(map(step, read()))"
    ran(f"{SERVERS}\n    {same}", tmp_path)


def test_datasets_of_workers_are_refused_and_what_to_use_named(tmp_path: Path) -> None:
    said = ran(
        f"""{SERVERS}
    try:
        wb.smart_stage(step, coordinator.create_per_worker_dataset(read))
    except wb.WorkbenchError as error:
        print(error)
    """,
        tmp_path,
    )
    assert "PerWorkerDatasetFromDatasetFunction, which other workers read" in said
    assert "put what may run ahead, which wb.find_boundary(train_step) names, into" in said
    assert "or train in the sessions of `workbench cluster`" in said

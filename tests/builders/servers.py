"""TensorFlow's servers in this process, and what a session on them sends from task to task."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.eager import context

v1 = tf.compat.v1


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Servers:
    """A cluster in this process; its servers last as long as that.

    Attributes:
      cluster: its ClusterSpec.
      target: of the first worker.
    """

    def __init__(self, tasks: Mapping[str, int]) -> None:
        ports = iter(free_ports(sum(tasks.values())))
        addresses = {
            job: [f"localhost:{next(ports)}" for _ in range(count)] for job, count in tasks.items()
        }
        self.cluster = tf.train.ClusterSpec(addresses)
        self._servers = {
            (job, index): tf.distribute.Server(self.cluster, job_name=job, task_index=index)
            for job, count in tasks.items()
            for index in range(count)
        }
        self.target = self._servers["worker", 0].target

    def placed(self) -> Any:
        """A device context: variables on parameter servers, all else on the first worker."""
        return v1.device(
            v1.train.replica_device_setter(cluster=self.cluster, worker_device="/job:worker/task:0")
        )


class Received(NamedTuple):
    """A tensor that one task gets from another in each run."""

    tensor: str
    dtype: tf.DType
    sender: str
    receiver: str


def received(session: Any, fetches: Any, feeds: Any = None) -> list[Received]:
    """What tasks send one another in a run, by the graphs that they run."""
    metadata = v1.RunMetadata()
    options = v1.RunOptions(output_partition_graphs=True)
    session.run(fetches, feeds, options=options, run_metadata=metadata)
    return _received(metadata.partition_graphs)


def function_transfers(call: Callable[[], Any]) -> list[Received]:
    """What tasks send one another in the functions that are called, by the graphs that they run."""
    eager = context.context()
    eager.enable_graph_collection()
    call()
    metadata = eager.export_run_metadata()
    eager.disable_graph_collection()
    return _received(
        graph for function in metadata.function_graphs for graph in function.partition_graphs
    )


def _received(graphs: Iterable[Any]) -> list[Received]:
    found = []
    for graph in graphs:
        for node in graph.node:
            if node.op not in ("_Recv", "_HostRecv") or node.attr["client_terminated"].b:
                continue
            ends = [_task(node.attr[f"{end}_device"].s.decode()) for end in ("send", "recv")]
            if ends[0] != ends[1]:
                dtype = tf.as_dtype(node.attr["tensor_type"].type)
                found.append(Received(node.attr["tensor_name"].s.decode(), dtype, *ends))
    return sorted(found)


def _task(device: str) -> str:
    spec = tf.DeviceSpec.from_string(device)
    return f"{spec.job} {spec.task}"

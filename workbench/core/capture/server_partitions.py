"""What workers of a server ran by an executor policy, as their RunMetadata shows it.

Such a worker runs one node instead of a partition: native/executor/server/partition.h. The node has
the partition in an attribute, without large constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

# The op of that node; its name is the policy's executor type.
PARTITION_OP = "WorkbenchPartition"


def whole_partitions(graphs: Iterable[Any]) -> Iterator[Any]:
    """The partitions of a run as their executors ran them.

    Args:
      graphs: GraphDefs, the `partition_graphs` of a RunMetadata.

    Yields:
      A GraphDef for each; one that a policy ran has no values of large constants.
    """
    from tensorflow.core.framework.graph_pb2 import GraphDef

    for graph in graphs:
        wrapped = [node for node in graph.node if node.op == PARTITION_OP]
        if not wrapped:
            yield graph
        for node in wrapped:
            yield GraphDef.FromString(node.attr["nodes"].s)


def policies(runs: Iterable[Any]) -> dict[str, str]:
    """The executor types by which workers ran their parts of steps.

    Args:
      runs: RunMetadata with step stats; None is a run without.

    Returns:
      The type, such as "WORKBENCH_INLINE", by name of the device.
    """
    return {
        device.device: stats.node_name
        for run in runs
        if run is not None
        for device in run.step_stats.dev_stats
        for stats in device.node_stats
        if is_partition(stats)
    }


def is_partition(stats: Any) -> bool:
    """Whether NodeExecStats are of a whole partition, which other stats tell by node."""
    return f"= {PARTITION_OP}(" in stats.timeline_label

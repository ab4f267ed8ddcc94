"""RecvTensor records of step stats → transfers: what one task sent another in a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# What a worker calls the record of a tensor that it got from another task.
RECV = "RecvTensor"
# "[1024B] [8.5Mb/s] edge_12_name from device to device"
_LABEL = re.compile(r"(?:\[[^\]]*\] )+(?P<tensor>.+) from (?P<source>\S+) to (?P<target>\S+)")
_EDGE = re.compile(r"edge_\d+_")
# These records count in microseconds, and so may end a microsecond later than they say.
_US = 1000

# Name, op type and device.
NodeKey = tuple[str, str, str]


def is_transfer(stats: Any) -> bool:
    """Whether this node's stats are the record of a transfer."""
    return stats.node_name == RECV and bool(_LABEL.fullmatch(stats.timeline_label))


def transfer_count(metadata: Any) -> int:
    """How many tensors one task got from another in a run, by its `RunMetadata`."""
    stats = (each for device in metadata.step_stats.dev_stats for each in device.node_stats)
    return sum(map(is_transfer, stats))


def tensor_name(key: str) -> str:
    """Name of the op that made a tensor, by the key that the tensor is sent by."""
    numbered = _EDGE.match(key)
    return key[numbered.end() :] if numbered else key


def transfer_row(
    stats: Any, ran_ops: Mapping[tuple[str, str], tuple[str, int]], nodes: dict[NodeKey, int]
) -> tuple[int, ...]:
    """One transfer, as columns of `TRANSFER_COLUMNS` without the run.

    Args:
      stats: the record.
      ran_ops: by device and name of each op of the run its type, and when it had made its outputs,
        in ns of that device's clock; -1 where it ran several times.
      nodes: rows of nodes; new ones are added.
    """
    found = _LABEL.fullmatch(stats.timeline_label)
    assert found is not None, stats.timeline_label
    tensor, source, target = tensor_name(found["tensor"]), found["source"], found["target"]
    op, sent_ns = ran_ops.get((source, tensor), ("Unknown", -1))
    start_ns = stats.all_start_micros * _US
    length_ns = max(stats.op_end_rel_micros, stats.all_end_rel_micros, 0) * _US
    described = [each.tensor_description.allocation_description for each in stats.output]
    return (
        nodes.setdefault((tensor, RECV, target), len(nodes)),
        nodes.setdefault((tensor, op, source), len(nodes)),
        sum(each.requested_bytes for each in described),
        sent_ns,
        start_ns,
        start_ns + length_ns + _US,
    )

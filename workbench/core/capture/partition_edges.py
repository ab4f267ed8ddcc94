"""Partition graphs of runs on servers → which op fed which, over tasks and through what travels.

Step stats know no edges; the graphs that tasks ran, which a run returns when asked to, have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.capture.step_transfers import RECV, tensor_name

_SENDS = frozenset({"_Send", "_HostSend"})
_RECEIVES = frozenset({"_Recv", "_HostRecv"})


def partition_edges(graphs: Sequence[Any], nodes: pd.DataFrame) -> np.ndarray:
    """The edges between nodes that were seen.

    What one task sends another leads from the op that made it to the tensor where it is received,
    and from there to the ops that read it; what goes from a device to another one of a task, from
    op to op.

    Args:
      graphs: GraphDefs of what the tasks ran, as RunMetadata has them.
      nodes: name, op and device, as `stats_columns` gives them.

    Returns:
      int64 [edges, 3]: source and target, rows of `nodes`, and 1 for a control edge; each once.
    """
    columns = (nodes[name].tolist() for name in ("name", "op", "device"))
    row = {
        (name, device, op == RECV): i
        for i, (name, op, device) in enumerate(zip(*columns, strict=True))
    }
    edges: set[tuple[int, int, int]] = set()
    sent = _sent(graphs, row)
    for graph in graphs:
        received = {
            node.name: row.get(
                (tensor_name(_key(node)[0]), node.device, True), sent.get(_key(node))
            )
            for node in graph.node
            if node.op in _RECEIVES
        }
        for node in graph.node:
            if node.op in _SENDS:
                target = row.get((tensor_name(_key(node)[0]), _key(node)[2], True))
            else:
                target = row.get((node.name, node.device, False))
            for name, control in _inputs(node):
                source = received.get(name, row.get((name, node.device, False)))
                if source is not None and target is not None:
                    edges.add((source, target, control))
    return np.array(sorted(edges), np.int64).reshape(-1, 3)


def _sent(
    graphs: Iterable[Any], row: dict[tuple[str, str, bool], int]
) -> dict[tuple[str, str, str], int]:
    """The op that made what is sent, by `_key`."""
    return {
        _key(node): row[name, node.device, False]
        for graph in graphs
        for node in graph.node
        if node.op in _SENDS
        for name, _ in _inputs(node)
        if (name, node.device, False) in row
    }


def _key(node: Any) -> tuple[str, str, str]:
    """What a send and its receive have in common: the tensor's key, and both devices."""
    tensor, sender, receiver = (
        node.attr[name].s.decode() for name in ("tensor_name", "send_device", "recv_device")
    )
    return tensor, sender, receiver


def _inputs(node: Any) -> Iterator[tuple[str, int]]:
    """Names of the nodes that a node reads or waits for, and 1 for those that it waits for."""
    for each in node.input:
        yield each.removeprefix("^").partition(":")[0], int(each.startswith("^"))

"""A trace, and the graph that ran → the trace with what the rules of fusion would fuse of it."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from workbench.core.fusion.fusable_nodes import fusable_nodes
from workbench.core.trace.trace import Trace

_LOG = logging.getLogger("workbench")


def with_fusable(trace: Trace, graph: Any) -> Trace:
    """Notes what the rules say of a graph. Call it when the capture has ended: it takes a while.

    Args:
      trace: of that graph.
      graph: as of `plan_fusion`.

    Returns:
      The trace; the one handed in, with a warning, where the rules fail.
    """
    try:
        known = fusable_nodes(graph)
    # No error of a rule is worth a trace.
    except Exception as error:
        _LOG.warning(
            "the trace does not say what of its graph could be fused: %s: %s",
            type(error).__name__,
            error,
        )
        return trace
    kinds, parts = [], []
    columns = (trace.nodes[name].tolist() for name in ("name", "op"))
    for name, op in zip(*columns, strict=True):
        node = known.nodes.get(name)
        if node is not None and not node.ran_as(op):
            node = None
        kinds.append(node.kind if node else "")
        parts.append(node.part if node else "")
    return dataclasses.replace(
        trace,
        nodes=trace.nodes.assign(fusable=kinds, fusable_part=parts),
        meta=dataclasses.replace(trace.meta, not_fusable=known.refusals),
    )

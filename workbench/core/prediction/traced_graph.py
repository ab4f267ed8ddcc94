"""Trace → the graph of what ran, where the graph itself is not at hand."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from workbench.core.boundary.boundary import Boundary
from workbench.core.graph import op_types
from workbench.core.graph.graph_view import GraphView, edges
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError


def traced_graph(trace: Trace) -> Boundary:
    """The nodes that ran and the edges among them; what may run ahead is not known.

    Raises:
      TraceError: the trace does not know which node feeds which, or its steps take from a stage.
    """
    if not len(trace.edges) and len(trace.events):
        raise TraceError(
            "the trace does not know which op feeds which, so its steps cannot be simulated; "
            "capture it with Workbench's own tracer, or give the program"
        )
    if (trace.tracks["kind"] == "prefetch").any():
        raise TraceError(
            "the trace has a stage, and where that begins only the program's graph tells; give "
            "the program"
        )
    return uncut(ran_graph(trace))


def ran_graph(trace: Trace) -> GraphView:
    """The nodes of a trace that knows which feeds which, and the edges among them.

    Args:
      trace: of steps with one stage at most, whose puts and takes all its buffer ops are.
    """
    names = trace.nodes["name"].astype(str)
    first = {name: row for row, name in reversed(list(enumerate(names)))}
    kept = np.sort(list(first.values())).astype(np.int64)
    number = np.empty(len(names), np.int64)
    number[kept] = np.arange(len(kept))
    # A node that ran on two devices is one of the graph.
    place = number[[first[name] for name in names]]
    source, target = (place[trace.edges[end].to_numpy(np.int64)] for end in ("source", "target"))
    control = trace.edges["control"].to_numpy(bool)
    nothing = np.zeros(int((~control).sum()), np.int64)
    data = np.stack([source[~control], nothing, target[~control], nothing], axis=1)
    nodes = trace.nodes.iloc[kept]
    return GraphView(
        names=tuple(nodes["name"].astype(str)),
        ops=tuple(nodes["op"].astype(str)),
        devices=tuple(nodes["device"].astype(str)),
        outputs=((),) * len(kept),
        data=edges(data, 4),
        control=edges(np.stack([source[control], target[control]], axis=1), 2),
        shared_names={
            node: "/stage" for node, op in enumerate(nodes["op"]) if op in op_types.BUFFER_OPS
        },
    )


def uncut(view: GraphView, targets: Iterable[str] = ()) -> Boundary:
    """A graph of which nothing is known to run ahead.

    Args:
      view: the graph.
      targets: names of what a step runs; without them all of the graph counts as part of it.
    """
    wanted = [view.number(each) for each in targets]
    return Boundary(
        view=view,
        targets=tuple(view.names[node] for node in wanted),
        sides=(),
        step=view.ancestors(view.mask(wanted)) if wanted else np.ones(len(view), bool),
        blockers={},
        next_hop=np.full(len(view), -1, np.int32),
    )

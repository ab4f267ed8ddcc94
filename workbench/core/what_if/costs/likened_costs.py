"""Fused layers, products and columns of text → the nodes that tell what they take.

They go through tensors of which only the traced steps know how many rows they have. The stock op
that gives the same result goes through as many, and leaves a node of its name.
"""

from __future__ import annotations

from workbench.core.graph.graph_view import GraphView
from workbench.core.graph.workbench_ops import WORKBENCH_OPS, Likened

LIKENED = tuple(op.type for op in WORKBENCH_OPS.values() if op.likened is not Likened.NOT)
_BY_READER = frozenset(op for op in LIKENED if WORKBENCH_OPS[op].likened is Likened.READER)


def like_results(view: GraphView) -> dict[int, str]:
    """By number of each fused op, the name of the node that gave the stock ops' result."""
    results = {
        source: view.names[target]
        for source, output, target, _ in view.data.tolist()
        if view.ops[source] in _BY_READER and output == 0
    }
    reading = {(view.ops[node], read): node for node in results for read in view.inputs(node)}
    stock_results = dict(results)
    for node, op in enumerate(view.ops):
        workbench_op = WORKBENCH_OPS.get(op)
        if workbench_op is not None and workbench_op.likened is Likened.ITSELF:
            stock_results[node] = view.names[node]
            continue
        if workbench_op is None or not workbench_op.forward:
            continue
        inputs = view.inputs(node)
        if workbench_op.likened is Likened.FORWARD:
            forward = [source for source, _ in inputs if view.ops[source] == workbench_op.forward]
        else:
            keys = ((workbench_op.forward, each) for each in inputs)
            forward = [reading[key] for key in keys if key in reading]
        if forward and forward[0] in results:
            stock_results[node] = results[forward[0]]
    return stock_results


def stock_ops(view: GraphView, node: int) -> int:
    """Of how many ops like that node a fused one does the work."""
    return len(view.inputs(node)) if WORKBENCH_OPS[view.ops[node]].per_input else 1

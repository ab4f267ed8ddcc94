"""ReLUs in front of batch normalizations: the gradient of one goes on into that of the other.

    BiasAdd → Relu → normalization
    BiasAddGrad ← ReluGrad ← gradient of x

What stays costs as much as before, so nothing here is a refusal.
"""

from __future__ import annotations

from collections.abc import Collection

from workbench.core.fusion.batch_norms.stock_norm import ReluGradient
from workbench.core.fusion.definition import Definition
from workbench.core.fusion.neighbors import readers_of, run_once_on, waited_for


def relu_gradient(
    graph: Definition, x: str, x_sum: str, device: str, known: Collection[str]
) -> ReluGradient | None:
    """The gradient of the ReLU that gives `x`, where nothing else needs the gradient of `x`.

    Args:
      graph: that holds it.
      x: the tensor that is normalized.
      x_sum: the node that gives its gradient, from the normalization alone.
      device: where the normalization is computed.
      known: names of the nodes of the normalization and of its gradients.
    """
    names = readers_of(graph, x_sum, known)
    node = graph.nodes[names[0]] if len(names) == 1 else None
    if node is None or node.op != "ReluGrad" or not run_once_on(graph, [node.name], device):
        return None
    # The other input is the gradient: one of the two is.
    features = graph.inputs(node)[1]
    if graph.same(features) != graph.same(x) or not _is_alone(graph, x_sum):
        return None
    # A matrix has one data_format, so that all sum columns.
    sums = graph.readers(f"{node.name}:0", "BiasAddGrad")
    bias = [each.name for each in sums if run_once_on(graph, [each.name], device)]
    after = waited_for(graph, (node.name, *bias), {*known, node.name, *bias})
    return ReluGradient(node=node.name, bias=tuple(bias), after=after)


def _is_alone(graph: Definition, x_sum: str) -> bool:
    """Whether nothing waits for a node, nor for Identities of it, and none of these is a result."""
    same = [node.name for node in graph.readers(f"{x_sum}:0") if graph.hands_on(node)]
    # What a function returns is an Identity that nothing reads.
    read = all(graph.readers(f"{name}:0") for name in same)
    return read and not any(map(graph.waiting, (x_sum, *same)))

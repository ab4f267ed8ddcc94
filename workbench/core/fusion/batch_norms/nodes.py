"""The nodes that do batch normalizations, and what takes the place of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.batch_norms.stock_norm import NormGradient, StockNorm
from workbench.core.fusion.definition import Definition
from workbench.core.fusion.fusion_plan import FusedNorm
from workbench.core.fusion.node_defs import (
    OneOpEach,
    free_name,
    hands_on_after,
    scope_around,
    sum_after,
)

# Of a node, in the scope around "moments" and "batchnorm".
_NAME = "fused_batch_norm"


def norm_nodes(graph: Definition, norms: Sequence[StockNorm]) -> OneOpEach[FusedNorm]:
    """The nodes for these normalizations of a graph, each in the scope of what it replaces."""
    found: OneOpEach[FusedNorm] = OneOpEach(fused=(), added=[], replaced=[], bypassed={})
    taken = set(graph.nodes)
    fused = []
    for norm in norms:
        forward = _forward(norm, free_name(taken, scope_around(norm.result, 2), _NAME))
        found.added.append(forward)
        for output, name in enumerate((norm.result, norm.mean, norm.variance)):
            if name:
                tensor = f"{forward.name}:{output}"
                found.replaced.append(hands_on_after(graph, name, tensor, norm.after))
        found.bypassed.update(dict.fromkeys(norm.inside, forward.name))
        for gradient in norm.gradients:
            name = free_name(taken, scope_around(gradient.beta, 3), _NAME, "_grad")
            found.added.append(_gradient(norm, gradient, name, forward.name))
            found.replaced.extend(_of_x(graph, gradient, name))
            for output, replaced in ((1, gradient.gamma), (2, gradient.beta)):
                if replaced:
                    tensor = f"{name}:{output}"
                    found.replaced.append(hands_on_after(graph, replaced, tensor, gradient.after))
            found.bypassed.update(dict.fromkeys(gradient.inside, name))
        made = FusedNorm(
            name=norm.name,
            op=forward.name,
            gradients=len(norm.gradients),
            relus=sum(each.relu is not None for each in norm.gradients),
        )
        fused.append(made)
    return dataclasses.replace(found, fused=tuple(fused))


def _forward(norm: StockNorm, name: str) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(name=name, op="WorkbenchBatchNorm", device=norm.device)
    node.input.extend([norm.x, norm.gamma, norm.beta])
    node.attr["epsilon"].f = norm.epsilon
    return node


def _gradient(
    norm: StockNorm, gradient: NormGradient, name: str, forward: str
) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(name=name, op="WorkbenchBatchNormGrad", device=norm.device)
    node.input.extend([gradient.given, norm.x, norm.gamma, f"{forward}:1", f"{forward}:2"])
    node.attr["epsilon"].f = norm.epsilon
    node.attr["of_relu"].b = gradient.relu is not None
    return node


def _of_x(graph: Definition, gradient: NormGradient, op: str) -> Iterator[node_def_pb2.NodeDef]:
    """What takes the place of the gradient of x, or of that of the ReLU which gives x."""
    relu = gradient.relu
    if relu is not None:
        yield hands_on_after(graph, relu.node, f"{op}:0", relu.after)
        for name in relu.bias:
            yield hands_on_after(graph, name, f"{op}:3", relu.after)
    elif gradient.x_sum:
        tensors = [f"{op}:0", *gradient.others]
        yield sum_after(graph, gradient.x_sum, tensors, gradient.after)

"""The nodes that do batch normalizations, and what takes the place of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.batch_norms.stock_norm import NormGradient, StockNorm
from workbench.core.fusion.definition import Definition
from workbench.core.fusion.fusion_plan import FusedNorm
from workbench.core.fusion.node_defs import stand_in

_FLOAT32 = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class NormNodes:
    """What is done to a graph so that one op does each batch normalization.

    Attributes:
      norms: what is said of each.
      added: nodes that do them.
      replaced: nodes that come in the place of nodes of the same name.
      bypassed: by the name of each node that nothing needs any more, the node that runs instead.
    """

    norms: tuple[FusedNorm, ...]
    added: list[node_def_pb2.NodeDef]
    replaced: list[node_def_pb2.NodeDef]
    bypassed: dict[str, str]


def norm_nodes(graph: Definition, norms: Sequence[StockNorm], scope: str) -> NormNodes:
    """The nodes for these normalizations of a graph, in a scope that nothing else is in."""
    found = NormNodes(
        norms=tuple(
            FusedNorm(name=norm.name, op=f"{scope}/norm_{i}", gradients=len(norm.gradients))
            for i, norm in enumerate(norms)
        ),
        added=[],
        replaced=[],
        bypassed={},
    )
    for norm, fused in zip(norms, found.norms, strict=True):
        found.added.append(_forward(norm, fused.op))
        for output, name in enumerate((norm.result, norm.mean, norm.variance)):
            if name:
                found.replaced.append(_hands_on(graph, name, f"{fused.op}:{output}"))
        found.bypassed.update(dict.fromkeys(norm.inside, fused.op))
        for number, gradient in enumerate(norm.gradients):
            name = f"{fused.op}_gradient_{number}"
            found.added.append(_gradient(norm, gradient, name, fused.op))
            if gradient.x_sum:
                found.replaced.append(_x_sum(graph, gradient, f"{name}:0"))
            for output, replaced in ((1, gradient.gamma), (2, gradient.beta)):
                if replaced:
                    found.replaced.append(_hands_on(graph, replaced, f"{name}:{output}"))
            found.bypassed.update(dict.fromkeys(gradient.inside, name))
    return found


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
    return node


def _x_sum(graph: Definition, gradient: NormGradient, tensor: str) -> node_def_pb2.NodeDef:
    """The sum of the gradient of x and of what comes from elsewhere."""
    old = graph.nodes[gradient.x_sum]
    if not gradient.others:
        return _hands_on(graph, old.name, tensor)
    node = node_def_pb2.NodeDef(name=old.name, op="AddN", device=old.device)
    node.input.extend([tensor, *gradient.others])
    node.attr["N"].i, node.attr["T"].type = len(node.input), _FLOAT32
    return node


def _hands_on(graph: Definition, name: str, tensor: str) -> Any:
    return stand_in(graph.nodes[name], [tensor], [_FLOAT32])

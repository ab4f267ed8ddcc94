"""The nodes that do dot interactions, and what takes the place of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.definition import Definition
from workbench.core.fusion.fusion_plan import FusedInteraction
from workbench.core.fusion.interactions.stock_interaction import StockInteraction
from workbench.core.fusion.node_defs import (
    OneOpEach,
    free_name,
    hands_on_after,
    scope_around,
    sum_after,
)

_NAME = "dot_interaction"


def interaction_nodes(
    graph: Definition, interactions: Sequence[StockInteraction]
) -> OneOpEach[FusedInteraction]:
    """The nodes for these interactions of a graph, each in the scope of what it replaces."""
    found: OneOpEach[FusedInteraction] = OneOpEach(fused=(), added=[], replaced=[], bypassed={})
    taken = set(graph.nodes)
    fused = []
    for each in interactions:
        name = free_name(taken, scope_around(each.result), _NAME)
        found.added.append(_node(each, name, "WorkbenchDotInteraction", [each.x]))
        found.replaced.append(hands_on_after(graph, each.result, f"{name}:0", each.after))
        found.bypassed.update(dict.fromkeys(each.inside, name))
        for gradient in each.gradients:
            own = free_name(taken, scope_around(gradient.product, 2), f"{_NAME}_grad")
            inputs = [gradient.given, each.x]
            found.added.append(_node(each, own, "WorkbenchDotInteractionGrad", inputs))
            tensors = [f"{own}:0", *gradient.others]
            found.replaced.append(sum_after(graph, gradient.x_sum, tensors, gradient.after))
            found.bypassed.update(dict.fromkeys(gradient.inside, own))
        gradients = len(each.gradients)
        fused.append(FusedInteraction(name=each.result, op=name, gradients=gradients))
    return dataclasses.replace(found, fused=tuple(fused))


def _node(
    interaction: StockInteraction, name: str, op: str, inputs: Sequence[str]
) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(name=name, op=op, device=interaction.device)
    node.input.extend(inputs)
    node.attr["vectors"].i = interaction.vectors
    node.attr["pairs"].list.i.extend(interaction.pairs)
    return node

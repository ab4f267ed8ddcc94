"""The nodes that do interactions of vectors, and what takes the place of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.definition import Definition
from workbench.core.fusion.fusion_plan import FusedInteraction
from workbench.core.fusion.interactions.stock_interaction import StockInteraction
from workbench.core.fusion.interactions.template import DOT, FM
from workbench.core.fusion.node_defs import (
    OneOpEach,
    free_name,
    hands_on_after,
    scope_around,
    sum_after,
)

# Of each kind the op, and the name of a node of it.
_OPS = {
    DOT: ("WorkbenchDotInteraction", "dot_interaction"),
    FM: ("WorkbenchFmInteraction", "fm_interaction"),
}


def interaction_nodes(
    graph: Definition, interactions: Sequence[StockInteraction]
) -> OneOpEach[FusedInteraction]:
    """The nodes for these interactions of a graph, each in the scope of what it replaces."""
    found: OneOpEach[FusedInteraction] = OneOpEach(fused=(), added=[], replaced=[], bypassed={})
    taken = set(graph.nodes)
    fused = []
    for each in interactions:
        op, word = _OPS[each.kind]
        name = free_name(taken, scope_around(each.result), word)
        found.added.append(_node(name, op, [each.x], each.attributes, each.device))
        found.replaced.append(hands_on_after(graph, each.result, f"{name}:0", each.after))
        found.bypassed.update(dict.fromkeys(each.inside, name))
        for gradient in each.gradients:
            own = free_name(taken, scope_around(gradient.reader, 2), f"{word}_grad")
            inputs = [gradient.given, each.x]
            attributes = each.gradient_attributes
            found.added.append(_node(own, f"{op}Grad", inputs, attributes, each.device))
            tensors = [f"{own}:0", *gradient.others]
            found.replaced.append(sum_after(graph, gradient.x_sum, tensors, gradient.after))
            found.bypassed.update(dict.fromkeys(gradient.inside, own))
        gradients = len(each.gradients)
        fused.append(
            FusedInteraction(name=each.result, op=name, gradients=gradients, kind=each.kind)
        )
    return dataclasses.replace(found, fused=tuple(fused))


def _node(
    name: str, op: str, inputs: Sequence[str], attributes: Mapping[str, Any], device: str
) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(name=name, op=op, device=device)
    node.input.extend(inputs)
    for attribute, value in attributes.items():
        # A bool is an int too.
        if isinstance(value, bool):
            node.attr[attribute].b = value
        elif isinstance(value, int):
            node.attr[attribute].i = value
        else:
            node.attr[attribute].list.i.extend(value)
    return node

"""Dot interactions of a finished graph, and their gradients.

How DLRM multiplies an example's vectors with each other, [examples, vectors, dim], and takes each
pair once:

    tf.gather(tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, vectors²]), pairs, axis=1)

Its gradient is eighty nodes and more: transposes, a segment sum, two products that are added.
TensorFlow builds them once more by itself (template.py), and what is alike is found in the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.core.fusion.definition import Definition
from workbench.core.fusion.interactions.stock_interaction import (
    InteractionGradient,
    StockInteraction,
)
from workbench.core.fusion.interactions.template import PRODUCT, Template, template
from workbench.core.fusion.match import Match
from workbench.core.fusion.neighbors import computing, require_alone, run_once_on, waited_for
from workbench.core.fusion.refusal import Refusal, RefusedError, require_cpu

_FLOAT32 = 1
# Nodes between a product and what adds it: its sum and its reshape to the shape of the vectors.
_TO_THE_SUM = 3


def find_interactions(
    graph: Definition, *, gpu: bool = False
) -> tuple[list[StockInteraction], list[Refusal]]:
    """The dot interactions of a graph that one op can do each, in its order, and the others.

    Args:
      graph: the graph.
      gpu: whether what names no device may run on a GPU, which has no such op.
    """
    found: list[StockInteraction] = []
    refused: list[Refusal] = []
    taken: set[str] = set()
    for node in graph.ordered:
        alike = _interaction(graph, node)
        if alike is None:
            continue
        try:
            require_cpu(node, gpu=gpu, op="dot interaction")
            interaction = _described(graph, node, *alike)
            if not taken.isdisjoint(interaction.given_by):
                raise RefusedError("its gradient is summed with that of another one")
            taken.update(interaction.given_by)
            found.append(interaction)
        except RefusedError as refusal:
            refused.append(Refusal(name=node.name, reason=str(refusal)))
    return found, refused


def _interaction(graph: Definition, node: Any) -> tuple[Match, Template] | None:
    """What is alike, where a node takes pairs of all dot products."""
    if node.op != "GatherV2" or node.attr["Tparams"].type != _FLOAT32:
        return None
    flat = graph.made_by(graph.inputs(node)[0], "Reshape")
    product = flat and graph.made_by(graph.inputs(flat)[0], PRODUCT)
    if not product:
        return None
    shape = graph.shape(graph.same(graph.inputs(product)[0]))
    pairs = graph.value(graph.inputs(node)[1])
    if shape is None or len(shape) != 3 or min(shape[1:]) < 1 or pairs is None or pairs.ndim != 1:
        return None
    places = shape[1] * shape[1]
    if graph.shape(graph.same(graph.inputs(node)[0])) != (shape[0], places) or not len(pairs):
        return None
    if pairs.min() < 0 or pairs.max() >= places:
        return None
    like = template(None if shape[0] < 0 else shape[0], shape[1], shape[2], pairs)
    # Whatever it says, it gives this shape.
    match = Match(like.graph, graph, any_number=frozenset({like.flat_shape}))
    return (match, like) if match.add(like.y, f"{node.name}:0") else None


def _described(graph: Definition, node: Any, match: Match, like: Template) -> StockInteraction:
    own = match.nodes
    found = list(_gradients(graph, node, match, like))
    everything = own.union(*(nodes for _, nodes in found))
    inside = computing(graph, own - {node.name})
    require_alone(graph, inside, everything)
    if not run_once_on(graph, computing(graph, everything), node.device):
        raise RefusedError("it is in a branch or a loop, or on more than one device")
    return StockInteraction(
        x=match[like.x],
        vectors=like.vectors,
        pairs=like.pairs,
        result=node.name,
        inside=inside,
        gradients=tuple(gradient for gradient, _ in found),
        device=node.device,
        after=waited_for(graph, [node.name], own),
    )


def _gradients(
    graph: Definition, node: Any, match: Match, like: Template
) -> Iterator[tuple[InteractionGradient, set[str]]]:
    """Each gradient of an interaction, and the nodes that belong to it."""
    own = match.nodes
    for product in graph.readers(match[like.x], PRODUCT):
        grown = match.copy()
        if product.name in own or not grown.add(like.x_product, f"{product.name}:0"):
            continue
        x_sum, others = _x_sum(graph, grown, like, product)
        if not graph.leads_to(node.name, graph.source(grown[like.given]).name):
            raise RefusedError("its gradient does not come from what it gave")
        grown.add_computed(like.computed)
        nodes = grown.nodes - own
        inside = computing(graph, nodes - {x_sum})
        nodes.add(x_sum)
        require_alone(graph, inside, own | nodes)
        yield (
            InteractionGradient(
                given=grown[like.given],
                product=product.name,
                x_sum=x_sum,
                others=others,
                inside=inside,
                after=waited_for(graph, [x_sum], own | nodes),
            ),
            nodes,
        )


def _x_sum(
    graph: Definition, match: Match, like: Template, product: Any
) -> tuple[str, tuple[str, ...]]:
    """The node that sums the terms of the gradient of x, and what else it sums."""
    nodes = [product]
    for _ in range(_TO_THE_SUM):
        nodes = [each for node in nodes for each in graph.readers(f"{node.name}:0")]
        for total in nodes:
            others = match.others_in_sum(like.x_terms, total) if total.op == "AddN" else None
            if others is not None:
                return total.name, others
    raise RefusedError("its gradient is not as TensorFlow builds it")

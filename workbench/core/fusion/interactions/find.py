"""Interactions of vectors in a finished graph, and their gradients.

How DLRM multiplies an example's vectors with each other, [examples, vectors, dim], and takes each
pair once:

    tf.gather(tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, vectors²]), pairs, axis=1)

And how factorization machines sum the products of all pairs, twice:

    tf.square(tf.reduce_sum(x, 1)) - tf.reduce_sum(tf.square(x), 1)

The gradient of the first is eighty nodes and more: transposes, a segment sum, two products that are
added. TensorFlow builds them once more by itself (template.py), and what is alike is found in the
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from workbench.core.fusion.definition import Definition
from workbench.core.fusion.interactions.stock_interaction import (
    InteractionGradient,
    StockInteraction,
)
from workbench.core.fusion.interactions.template import (
    SQUARES,
    Template,
    dot_template,
    fm_template,
)
from workbench.core.fusion.match import Match
from workbench.core.fusion.neighbors import computing, require_alone, run_once_on, waited_for
from workbench.core.fusion.placement import Placement
from workbench.core.fusion.refusal import Refusal, RefusedError

_FLOAT32 = 1


def find_interactions(
    graph: Definition, placement: Placement
) -> tuple[list[StockInteraction], list[Refusal]]:
    """The interactions of a graph that one op can do each, in its order, and the others.

    Args:
      graph: the graph.
      placement: where its nodes may run; the op has no kernel for a GPU.
    """
    found: list[StockInteraction] = []
    refused: list[Refusal] = []
    taken: set[str] = set()
    for node in graph.ordered:
        alike = _interaction(graph, node)
        if alike is None:
            continue
        try:
            placement.require_cpu(node, op=f"{alike[1].kind} interactions")
            interaction = _described(graph, node, *alike)
            if not taken.isdisjoint(interaction.given_by):
                raise RefusedError("its gradient is summed with that of another one")
            taken.update(interaction.given_by)
            found.append(interaction)
        except RefusedError as refusal:
            refused.append(Refusal(name=node.name, reason=str(refusal)))
    return found, refused


def _interaction(graph: Definition, node: Any) -> tuple[Match, Template] | None:
    """What is alike, where a node gives the result of an interaction."""
    templated = _TEMPLATES.get(node.op)
    like = templated(graph, node) if templated else None
    if like is None:
        return None
    match = Match(like.graph, graph, any_number=like.any_number)
    return (match, like) if match.add(like.y, f"{node.name}:0") else None


def _dots(graph: Definition, node: Any) -> Template | None:
    """What a node is alike that takes pairs of all dot products."""
    flat = graph.made_by(graph.inputs(node)[0], "Reshape")
    product = flat and graph.made_by(graph.inputs(flat)[0], "BatchMatMulV2")
    if not product or node.attr["Tparams"].type != _FLOAT32:
        return None
    shape = _of_vectors(graph, graph.inputs(product)[0])
    pairs = graph.value(graph.inputs(node)[1])
    if shape is None or pairs is None or pairs.ndim != 1 or not len(pairs):
        return None
    places = shape[1] * shape[1]
    # Whatever the reshape's constant says, it gives this shape.
    known = graph.shape(graph.same(graph.inputs(node)[0]))
    if known is None or len(known) != 2 or known[1] != places or known[0] != (shape[0] or -1):
        return None
    if pairs.min() < 0 or pairs.max() >= places:
        return None
    return dot_template(*shape, pairs.dtype.str, pairs.tobytes())


def _pairs_of_a_machine(graph: Definition, node: Any) -> Template | None:
    """What a node is alike that subtracts the sum of squares from the square of a sum."""
    if node.attr["T"].type != _FLOAT32:
        return None
    first, second = graph.inputs(node)
    square = graph.made_by(first, *SQUARES)
    total = square and graph.made_by(graph.inputs(square)[0], "Sum")
    if not square or not total or not graph.made_by(second, "Sum"):
        return None
    shape = _of_vectors(graph, graph.inputs(total)[0])
    axis = graph.value(graph.inputs(total)[1])
    if shape is None or axis is None or axis.size != 1 or axis.dtype != np.int32:
        return None
    if axis.item() not in (1, -2):
        return None
    keep_dims = total.attr["keep_dims"].b
    return fm_template(*shape, square.op, axis.tobytes(), axis.ndim == 0, keep_dims)


_TEMPLATES: Mapping[str, Callable[[Definition, Any], Template | None]] = {
    "GatherV2": _dots,
    "Sub": _pairs_of_a_machine,
}


def _of_vectors(graph: Definition, tensor: str) -> tuple[int | None, int, int] | None:
    """Static shape of a tensor of some vectors for each example; None of anything else."""
    shape = graph.shape(graph.same(tensor))
    if shape is None or len(shape) != 3 or min(shape[1:]) < 1:
        return None
    return (None if shape[0] < 0 else shape[0]), shape[1], shape[2]


def _described(graph: Definition, node: Any, match: Match, like: Template) -> StockInteraction:
    own = match.nodes
    found = list(_gradients(graph, node, match, like))
    everything = own.union(*(nodes for _, nodes in found))
    inside = computing(graph, own - {node.name})
    require_alone(graph, inside, everything)
    if not run_once_on(graph, computing(graph, everything), node.device):
        raise RefusedError("it is in a branch or a loop, or on more than one device")
    return StockInteraction(
        kind=like.kind,
        attributes=like.attributes,
        gradient_attributes=like.gradient_attributes,
        x=match[like.x],
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
    sums: set[str] = set()
    for reader in graph.readers(match[like.x], like.graph.source(like.x_reader).op):
        grown = match.copy()
        if reader.name in own or not grown.add(like.x_reader, f"{reader.name}:0"):
            continue
        x_sum, others = _x_sum(graph, grown, like, reader)
        # A product with itself has two terms, and both read x.
        if x_sum in sums:
            continue
        sums.add(x_sum)
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
                reader=reader.name,
                x_sum=x_sum,
                others=others,
                inside=inside,
                after=waited_for(graph, [x_sum], own | nodes),
            ),
            nodes,
        )


def _x_sum(
    graph: Definition, match: Match, like: Template, reader: Any
) -> tuple[str, tuple[str, ...]]:
    """The node that sums the terms of the gradient of x, and what else it sums."""
    nodes = [reader]
    for _ in range(like.steps_to_sum):
        nodes = [each for node in nodes for each in graph.readers(f"{node.name}:0")]
        for total in nodes:
            others = match.others_in_sum(like.x_terms, total) if total.op == "AddN" else None
            if others is not None:
                return total.name, others
    raise RefusedError("its gradient is not as TensorFlow builds it")

"""The rule of interactions of vectors, and of their gradients.

How DLRM multiplies an example's vectors with each other, [examples, vectors, dim], and takes each
pair once:

    tf.gather(tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, vectors²]), pairs, axis=1)

And how factorization machines sum the products of all pairs, twice:

    tf.square(tf.reduce_sum(x, 1)) - tf.reduce_sum(tf.square(x), 1)

The gradient of the first is eighty nodes and more: transposes, a segment sum, two products that are
added. TensorFlow builds them once more by itself (interaction_template.py), and what is alike is
found in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from workbench.core.fusion.node_defs import scope_around
from workbench.core.fusion.one_op import NewOp, OpWithGradients, one_op_rule
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.template import Recognized
from workbench.core.fusion.rules.interaction_template import (
    DOT,
    FM,
    KIND,
    SQUARES,
    InteractionTemplate,
    dot_template,
    fm_template,
)
from workbench.core.graph.op_types import FLOAT32

# Of each kind the op, and the name of a node of it.
_OPS = {
    DOT: ("WorkbenchDotInteraction", "dot_interaction"),
    FM: ("WorkbenchFmInteraction", "fm_interaction"),
}
_Interaction = Recognized[InteractionTemplate]


def _like(graph: Definition, node: Any) -> InteractionTemplate | None:
    """The template of a node that gives what may be an interaction."""
    templated = _TEMPLATES.get(node.op)
    return templated(graph, node) if templated else None


def _dots(graph: Definition, node: Any) -> InteractionTemplate | None:
    """What a node is alike that takes pairs of all dot products."""
    flat = graph.made_by(graph.inputs(node)[0], "Reshape")
    product = flat and graph.made_by(graph.inputs(flat)[0], "BatchMatMulV2")
    if not product or node.attr["Tparams"].type != FLOAT32:
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


def _pairs_of_a_machine(graph: Definition, node: Any) -> InteractionTemplate | None:
    """What a node is alike that subtracts the sum of squares from the square of a sum."""
    if node.attr["T"].type != FLOAT32:
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


_TEMPLATES: Mapping[str, Callable[[Definition, Any], InteractionTemplate | None]] = {
    "GatherV2": _dots,
    "Sub": _pairs_of_a_machine,
}


def _of_vectors(graph: Definition, tensor: str) -> tuple[int | None, int, int] | None:
    """Static shape of a tensor of some vectors for each example; None of anything else."""
    shape = graph.shape(graph.same(tensor))
    if shape is None or len(shape) != 3 or min(shape[1:]) < 1:
        return None
    return (None if shape[0] < 0 else shape[0]), shape[1], shape[2]


def _ops(interaction: _Interaction) -> OpWithGradients:
    like, match = interaction.like, interaction.match
    op, word = _OPS[like.of]
    result = interaction.node.name
    return OpWithGradients(
        kind=like.kind,
        forward=NewOp(
            op=op,
            name=f"{scope_around(result)}{word}",
            inputs=(match[like.inputs[0]],),
            attributes=like.attributes,
            gives={result: 0},
            nodes=frozenset(match.nodes),
        ),
        gradients=tuple(_gradients(interaction)),
        device=interaction.node.device,
    )


def _gradients(interaction: _Interaction) -> Iterator[NewOp]:
    """The op of each gradient of an interaction."""
    like = interaction.like
    op, word = _OPS[like.of]
    sums: set[str] = set()
    for first, match in interaction.gradients():
        x_sum, others = interaction.sum_of_terms(first, match)
        # A product with itself has two terms, and both read x.
        if x_sum in sums:
            continue
        sums.add(x_sum)
        nodes = interaction.nodes_of_gradient(match, {x_sum})
        yield NewOp(
            op=f"{op}Grad",
            name=f"{scope_around(first.name, 2)}{word}_grad",
            inputs=(match[like.given], match[like.inputs[0]]),
            attributes=like.gradient_attributes,
            gives={x_sum: 0},
            others=others,
            nodes=frozenset(nodes),
        )


RULE = one_op_rule(KIND, _like, _ops)

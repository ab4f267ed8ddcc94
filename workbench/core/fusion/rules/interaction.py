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

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.node_defs import free_name, hands_on_after, scope_around, sum_after
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.match import Match
from workbench.core.fusion.pattern.neighbors import (
    computing,
    require_alone,
    run_once_on,
    waited_for,
)
from workbench.core.fusion.pattern.placement import Placement
from workbench.core.fusion.rule import (
    Edit,
    Fused,
    Part,
    Refusal,
    RefusedError,
    Rule,
    Surroundings,
)
from workbench.core.fusion.rules.interaction_template import (
    DOT,
    FM,
    SQUARES,
    Template,
    dot_template,
    fm_template,
)
from workbench.number_words import counted

_FLOAT32 = 1
# Of each kind the op, and the name of a node of it.
_OPS = {
    DOT: ("WorkbenchDotInteraction", "dot_interaction"),
    FM: ("WorkbenchFmInteraction", "fm_interaction"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Gradient:
    """A gradient of an interaction.

    Attributes:
      given: the tensor of the gradient of its result.
      reader: a node on the way to it that reads the vectors.
      x_sum: the node that sums what leads to the gradient of `x`.
      others: tensors that this node sums too, from elsewhere.
      inside: names of nodes that nothing needs once one op makes it.
      after: the nodes that were waited for on the way to it, by the name of `x_sum`.
    """

    given: str
    reader: str
    x_sum: str
    others: tuple[str, ...]
    inside: frozenset[str]
    after: Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Interaction:
    """What one op can do with an example's vectors.

    Attributes:
      kind: DOT, the dot products of pairs of them; or FM, twice their sum, column by column.
      attributes: of the op; `gradient_attributes`, of that of its gradient.
      x: the tensor of the vectors, [examples, vectors, dim] float32.
      result: the node that gives the result.
      inside: names of nodes that nothing needs once one op does it.
      gradients: of it.
      device: where it is computed.
      after: the nodes that were waited for on the way to it, by the name of `result`.
    """

    kind: str
    attributes: Mapping[str, Any]
    gradient_attributes: Mapping[str, Any]
    x: str
    result: str
    inside: frozenset[str]
    gradients: tuple[_Gradient, ...]
    device: str
    after: Mapping[str, tuple[str, ...]]

    @property
    def given_by(self) -> tuple[str, ...]:
        """Names of the nodes that give what its ops make."""
        return (self.result, *(each.x_sum for each in self.gradients))


def _find(graph: Definition, placement: Placement) -> tuple[list[Part], list[Refusal]]:
    """The interactions of a graph that one op can do each, in its order, and the others."""
    found: list[Part] = []
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
            found.append(Part(name=interaction.result, match=interaction))
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


def _described(graph: Definition, node: Any, match: Match, like: Template) -> _Interaction:
    own = match.nodes
    found = list(_gradients(graph, node, match, like))
    everything = own.union(*(nodes for _, nodes in found))
    inside = computing(graph, own - {node.name})
    require_alone(graph, inside, everything)
    if not run_once_on(graph, computing(graph, everything), node.device):
        raise RefusedError("it is in a branch or a loop, or on more than one device")
    return _Interaction(
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
) -> Iterator[tuple[_Gradient, set[str]]]:
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
            _Gradient(
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


def _edit(surroundings: Surroundings, parts: Sequence[Part]) -> Edit:
    """The nodes for these interactions, each in the scope of what it replaces."""
    graph, edit = surroundings.graph, Edit()
    taken = set(graph.nodes)
    for part in parts:
        each: _Interaction = part.match
        op, word = _OPS[each.kind]
        name = free_name(taken, scope_around(each.result), word)
        edit.added.append(_node(name, op, [each.x], each.attributes, each.device))
        edit.replace(hands_on_after(graph, each.result, f"{name}:0", each.after), part)
        for inside in each.inside:
            edit.bypass(inside, name, part)
        for gradient in each.gradients:
            own = free_name(taken, scope_around(gradient.reader, 2), f"{word}_grad")
            inputs = [gradient.given, each.x]
            attributes = each.gradient_attributes
            edit.added.append(_node(own, f"{op}Grad", inputs, attributes, each.device))
            tensors = [f"{own}:0", *gradient.others]
            edit.replace(sum_after(graph, gradient.x_sum, tensors, gradient.after), part)
            for inside in gradient.inside:
                edit.bypass(inside, own, part)
        kind = f"{each.kind} interaction"
        edit.fused.append(Fused(kind=kind, name=part.name, op=name, gradients=len(each.gradients)))
    return edit


def _describe(fused: Sequence[Fused]) -> list[str]:
    lines = []
    for kind in sorted({each.kind for each in fused}):
        own = [each for each in fused if each.kind == kind]
        lines.append(f"{counted(len(own), kind)} in one op{' each' if len(own) > 1 else ''}")
        lines += [f"  {each.name}" for each in own]
    return lines


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


RULE = Rule(kind="interaction", find=_find, edit=_edit, describe=_describe)

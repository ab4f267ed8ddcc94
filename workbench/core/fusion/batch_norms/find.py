"""Batch normalizations of a finished graph, and their gradients.

How TensorFlow builds one, by `tf.nn.moments` over the rows and `tf.nn.batch_normalization`:

    Mean, SquaredDifference, Mean → moments; Rsqrt(variance + epsilon) · gamma → scale
    x · scale + (beta - mean · scale)

Its gradients are thirty nodes and more, which differ between versions of TensorFlow and with what
is known of shapes. So TensorFlow builds them once more by itself (template.py), and what is alike
is found in the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from workbench.core.fusion.batch_norms.relu import relu_gradient
from workbench.core.fusion.batch_norms.stock_norm import NormGradient, StockNorm
from workbench.core.fusion.batch_norms.template import Template, template
from workbench.core.fusion.definition import Definition
from workbench.core.fusion.match import Match
from workbench.core.fusion.neighbors import (
    computing,
    readers_of,
    require_alone,
    run_once_on,
    waited_for,
)
from workbench.core.fusion.placement import Placement
from workbench.core.fusion.refusal import Refusal, RefusedError, scope_of
from workbench.core.graph.op_types import READS_WHOLE, VARIABLES

_FLOAT32 = 1


def find_batch_norms(
    graph: Definition, placement: Placement
) -> tuple[list[StockNorm], list[Refusal]]:
    """The batch normalizations of a graph that one op can do each, in its order, and the others.

    Args:
      graph: the graph.
      placement: where its nodes may run; the op has no kernel for a GPU.
    """
    found: list[StockNorm] = []
    refused: list[Refusal] = []
    taken: set[str] = set()
    for node in graph.ordered:
        match, like = _normalization(graph, node)
        if match is None or like is None:
            continue
        try:
            placement.require_cpu(node, op="batch normalizations")
            norm = _norm(graph, node, match, like)
            _require_own(norm, taken)
            taken.update(norm.given_by)
            found.append(norm)
        except RefusedError as refusal:
            refused.append(Refusal(name=scope_of(node.name), reason=str(refusal)))
    return found, refused


def _require_own(norm: StockNorm, taken: AbstractSet[str]) -> None:
    """Raises RefusedError where one node would have to stand for several ops' results."""
    if not taken.isdisjoint(each.x_sum for each in norm.gradients):
        raise RefusedError("its gradient is summed with that of another one")
    if not taken.isdisjoint(norm.given_by):
        raise RefusedError("another one is normalized by the same moments")


def _normalization(graph: Definition, node: Any) -> tuple[Match | None, Template | None]:
    """What is alike, where a node gives a matrix that was normalized."""
    nothing = None, None
    if node.op != "AddV2" or node.attr["T"].type != _FLOAT32:
        return nothing
    product, offset = graph.inputs(node)
    scaled = graph.made_by(product, "Mul")
    if scaled is None or graph.made_by(offset, "Sub") is None:
        return nothing
    shape = graph.shape(graph.same(graph.inputs(scaled)[0]))
    if shape is None or len(shape) != 2 or shape[1] < 1:
        return nothing
    like = template(None if shape[0] < 0 else shape[0], shape[1])
    match = Match(like.graph, graph, any_number=frozenset({like.epsilon}))
    return (match, like) if match.add(like.y, f"{node.name}:0") else nothing


def _norm(graph: Definition, node: Any, match: Match, like: Template) -> StockNorm:
    gamma = graph.inputs(graph.source(match[like.scale]))[1]
    beta = graph.inputs(graph.source(graph.inputs(node)[1]))[0]
    if not _is_read(graph, gamma) or not _is_read(graph, beta):
        raise RefusedError("its gamma or beta is computed in the step")
    own = match.nodes
    pairs = list(_gradients(graph, match, like))
    everything = own.union(*(nodes for _, nodes in pairs))
    moments = [graph.source(match[each]).name for each in (like.mean, like.variance)]
    read = [name if readers_of(graph, name, everything) else "" for name in moments]
    inside = computing(graph, own - {node.name, *filter(None, read)})
    require_alone(graph, inside, everything)
    if not run_once_on(graph, computing(graph, everything), node.device):
        raise RefusedError("it is in a branch or a loop, or on more than one device")
    return StockNorm(
        name=scope_of(node.name),
        x=match[like.x],
        gamma=gamma,
        beta=beta,
        epsilon=float(graph.value(match[like.epsilon])),  # type: ignore[arg-type]
        result=node.name,
        mean=read[0],
        variance=read[1],
        inside=inside,
        gradients=tuple(gradient for gradient, _ in pairs),
        device=node.device,
        after=waited_for(graph, [node.name, *filter(None, read)], own),
    )


def _gradients(
    graph: Definition, match: Match, like: Template
) -> Iterator[tuple[NormGradient, set[str]]]:
    """Each gradient of a normalization, and the nodes that belong to it."""
    own = match.nodes
    for first in graph.readers(match[like.scale], "Mul"):
        if first.name in own:
            continue
        grown = match.copy()
        if not grown.add(like.x_terms[0], f"{first.name}:0"):
            continue
        x_sum, others = _x_sum(graph, grown, like, first)
        gamma = _gamma(graph, grown, like)
        if like.beta_gradient not in grown:
            # What something else multiplies the scale with.
            continue
        grown.add_computed(like.computed)
        nodes = grown.nodes - own
        given = graph.source(grown[like.given]).name
        result = graph.source(match[like.y]).name
        if not graph.leads_to(result, given):
            raise RefusedError("its gradient does not come from what it gave")
        beta = graph.source(grown[like.beta_gradient]).name
        inside = computing(graph, nodes - {gamma, beta, x_sum})
        nodes |= {x_sum} if x_sum else set()
        require_alone(graph, inside, nodes)
        relu = None
        if x_sum and not others:
            device = graph.nodes[result].device
            relu = relu_gradient(graph, match[like.x], x_sum, device, own | nodes)
        yield (
            NormGradient(
                given=grown[like.given],
                x_sum=x_sum,
                others=others,
                gamma=gamma,
                beta=beta,
                relu=relu,
                inside=inside | {x_sum} if relu else inside,
                after=waited_for(graph, filter(None, (x_sum, gamma, beta)), own | nodes),
            ),
            nodes,
        )


def _x_sum(
    graph: Definition, match: Match, like: Template, first: Any
) -> tuple[str, tuple[str, ...]]:
    """The node that sums the terms of the gradient of x, and what else it sums; "" where none does.

    An input of the step has no gradient; the first of the terms is computed all the same.
    """
    if not readers_of(graph, first.name, ()):
        return "", ()
    for total in graph.readers(f"{first.name}:0", "AddN"):
        others = match.others_in_sum(like.x_terms, total)
        if others is not None:
            return total.name, others
    raise RefusedError("its gradient is not as TensorFlow builds it")


def _gamma(graph: Definition, match: Match, like: Template) -> str:
    """The node that gives the gradient of gamma; "" where none does."""
    readers = graph.readers(match[like.inverse], "Mul")
    tensors = (f"{node.name}:0" for node in readers)
    found = next((each for each in tensors if match.add(like.gamma_gradient, each)), None)
    return "" if found is None else graph.source(found).name


def _is_read(graph: Definition, tensor: str) -> bool:
    """Whether a tensor is the value of a variable or a constant, to which nothing leads.

    The moments are computed without it, even in a run that could not compute anything else.
    """
    node = graph.source(tensor)
    if any(text.startswith("^") for text in node.input):
        return False
    read = graph.source(graph.inputs(node)[0]) if node.op in READS_WHOLE else node
    # What a function captures is a placeholder there, here the handle of a variable.
    captured = node.op == "ReadVariableOp" and read.op == "Placeholder"
    return not read.input and (captured or read.op in VARIABLES or read.op == "Const")

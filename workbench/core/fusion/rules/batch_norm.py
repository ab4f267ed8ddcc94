"""The rule of batch normalizations, and of their gradients.

How TensorFlow builds one, by `tf.nn.moments` over the rows and `tf.nn.batch_normalization`:

    Mean, SquaredDifference, Mean → moments; Rsqrt(variance + epsilon) · gamma → scale
    x · scale + (beta - mean · scale)

Its gradients are thirty nodes and more, which differ between versions of TensorFlow and with what
is known of shapes. So TensorFlow builds them once more by itself (batch_norm_template.py), and what
is alike is found in the graph.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion.node_defs import free_name, hands_on_after, scope_around, sum_after
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.match import Match
from workbench.core.fusion.pattern.neighbors import (
    computing,
    readers_of,
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
    scope_of,
)
from workbench.core.fusion.rules.batch_norm_template import Template, template
from workbench.core.graph.op_types import READS_WHOLE, VARIABLES
from workbench.number_words import counted

_KIND = "batch normalization"
_FLOAT32 = 1
# Of a node, in the scope around "moments" and "batchnorm".
_NAME = "fused_batch_norm"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Relu:
    """The gradient of a ReLU that is made with that of the batch normalization behind it.

    Attributes:
      node: that gives it.
      bias: nodes that give the sums of its columns, the gradient of a bias.
      after: by the name of each of these, the nodes that were waited for on the way to it.
    """

    node: str
    bias: tuple[str, ...]
    after: Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Gradient:
    """The gradients of a batch normalization, where they go through it once.

    Attributes:
      given: the tensor of the gradient of its result.
      x_sum: the node that sums what leads to the gradient of `x`; "" where nothing asks for it.
      others: tensors that this node sums too, from elsewhere.
      gamma: the node that gives the gradient of gamma; "" where none does.
      beta: likewise, of beta; it is always computed.
      relu: the gradient of the ReLU that gives `x`, which alone needs `x_sum`; None else.
      inside: names of nodes that nothing needs once one op makes all of these.
      after: by the name of each node that gives one of them, the nodes that were waited for on the
        way to it.
    """

    given: str
    x_sum: str
    others: tuple[str, ...]
    gamma: str
    beta: str
    relu: _Relu | None
    inside: frozenset[str]
    after: Mapping[str, tuple[str, ...]]

    @property
    def given_by(self) -> tuple[str, ...]:
        """Names of the nodes that give what the op makes."""
        return tuple(filter(None, (self.x_sum, self.gamma, self.beta)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Norm:
    """A batch normalization that one op can do. Tensors are named "node:output".

    Attributes:
      name: the scope that it was built in.
      x: [rows, columns] float32.
      gamma, beta: [columns], values of variables, or constants.
      epsilon: what is added to the variance.
      result: the node that gives the normalized matrix.
      mean, variance: nodes that give the moments, where something else reads them; "" else.
      inside: names of nodes that nothing needs once one op does it.
      gradients: of it.
      device: where it is computed.
      after: by the name of each node that gives one of its results, the nodes that were waited for
        on the way to it.
    """

    name: str
    x: str
    gamma: str
    beta: str
    epsilon: float
    result: str
    mean: str
    variance: str
    inside: frozenset[str]
    gradients: tuple[_Gradient, ...]
    device: str
    after: Mapping[str, tuple[str, ...]]

    @property
    def given_by(self) -> tuple[str, ...]:
        """Names of the nodes that give what its ops make."""
        own = filter(None, (self.result, self.mean, self.variance))
        return (*own, *(name for each in self.gradients for name in each.given_by))


def _find(graph: Definition, placement: Placement) -> tuple[list[Part], list[Refusal]]:
    """The batch normalizations of a graph that one op can do each, in its order, and the others."""
    found: list[Part] = []
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
            found.append(Part(name=norm.name, match=norm))
        except RefusedError as refusal:
            refused.append(Refusal(name=scope_of(node.name), reason=str(refusal)))
    return found, refused


def _require_own(norm: _Norm, taken: AbstractSet[str]) -> None:
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


def _norm(graph: Definition, node: Any, match: Match, like: Template) -> _Norm:
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
    return _Norm(
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
) -> Iterator[tuple[_Gradient, set[str]]]:
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
            relu = _relu_gradient(graph, match[like.x], x_sum, device, own | nodes)
        yield (
            _Gradient(
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


def _relu_gradient(
    graph: Definition, x: str, x_sum: str, device: str, known: Collection[str]
) -> _Relu | None:
    """The gradient of the ReLU that gives `x`, where nothing else needs the gradient of `x`.

    BiasAdd → Relu → normalization, and back: BiasAddGrad ← ReluGrad ← gradient of x. What stays
    costs as much as before, so nothing here is a refusal.

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
    return _Relu(node=node.name, bias=tuple(bias), after=after)


def _is_alone(graph: Definition, x_sum: str) -> bool:
    """Whether nothing waits for a node, nor for Identities of it, and none of these is a result."""
    same = [node.name for node in graph.readers(f"{x_sum}:0") if graph.hands_on(node)]
    # What a function returns is an Identity that nothing reads.
    read = all(graph.readers(f"{name}:0") for name in same)
    return read and not any(map(graph.waiting, (x_sum, *same)))


def _edit(surroundings: Surroundings, parts: Sequence[Part]) -> Edit:
    """The nodes for these normalizations, each in the scope of what it replaces."""
    graph, edit = surroundings.graph, Edit()
    taken = set(graph.nodes)
    for part in parts:
        norm: _Norm = part.match
        forward = _forward(norm, free_name(taken, scope_around(norm.result, 2), _NAME))
        edit.added.append(forward)
        for output, name in enumerate((norm.result, norm.mean, norm.variance)):
            if name:
                tensor = f"{forward.name}:{output}"
                edit.replace(hands_on_after(graph, name, tensor, norm.after), part)
        for inside in norm.inside:
            edit.bypass(inside, forward.name, part)
        for gradient in norm.gradients:
            name = free_name(taken, scope_around(gradient.beta, 3), _NAME, "_grad")
            edit.added.append(_backward(norm, gradient, name, forward.name))
            for node in _of_x(graph, gradient, name):
                edit.replace(node, part)
            for output, replaced in ((1, gradient.gamma), (2, gradient.beta)):
                if replaced:
                    tensor = f"{name}:{output}"
                    edit.replace(hands_on_after(graph, replaced, tensor, gradient.after), part)
            for inside in gradient.inside:
                edit.bypass(inside, name, part)
        edit.fused.append(
            Fused(
                kind=_KIND,
                name=norm.name,
                op=forward.name,
                gradients=len(norm.gradients),
                note=_with_relus(sum(each.relu is not None for each in norm.gradients)),
            )
        )
    return edit


def _with_relus(count: int) -> str:
    if count > 1:
        return f"with the gradients of {count} ReLUs in front of it"
    return "with the gradient of the ReLU in front of it" if count else ""


def _describe(fused: Sequence[Fused]) -> list[str]:
    each = " each" if len(fused) > 1 else ""
    said = f"{counted(len(fused), _KIND)} in one op{each}"
    return [said, *(f"  {f.name}{f', {f.note}' if f.note else ''}" for f in fused)]


def _forward(norm: _Norm, name: str) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(name=name, op="WorkbenchBatchNorm", device=norm.device)
    node.input.extend([norm.x, norm.gamma, norm.beta])
    node.attr["epsilon"].f = norm.epsilon
    return node


def _backward(norm: _Norm, gradient: _Gradient, name: str, forward: str) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(name=name, op="WorkbenchBatchNormGrad", device=norm.device)
    node.input.extend([gradient.given, norm.x, norm.gamma, f"{forward}:1", f"{forward}:2"])
    node.attr["epsilon"].f = norm.epsilon
    node.attr["of_relu"].b = gradient.relu is not None
    return node


def _of_x(graph: Definition, gradient: _Gradient, op: str) -> Iterator[node_def_pb2.NodeDef]:
    """What takes the place of the gradient of x, or of that of the ReLU which gives x."""
    relu = gradient.relu
    if relu is not None:
        yield hands_on_after(graph, relu.node, f"{op}:0", relu.after)
        for name in relu.bias:
            yield hands_on_after(graph, name, f"{op}:3", relu.after)
    elif gradient.x_sum:
        tensors = [f"{op}:0", *gradient.others]
        yield sum_after(graph, gradient.x_sum, tensors, gradient.after)


RULE = Rule(kind=_KIND, find=_find, edit=_edit, describe=_describe)

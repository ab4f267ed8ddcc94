"""The rule of batch normalizations, and of their gradients.

How TensorFlow builds one, by `tf.nn.moments` over the rows and `tf.nn.batch_normalization`:

    Mean, SquaredDifference, Mean → moments; Rsqrt(variance + epsilon) · gamma → scale
    x · scale + (beta - mean · scale)

Its gradients are thirty nodes and more, which differ between versions of TensorFlow and with what
is known of shapes. So TensorFlow builds them once more by itself (batch_norm_template.py), and what
is alike is found in the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from workbench.core.fusion.node_defs import scope_around
from workbench.core.fusion.one_op import NewOp, OpWithGradients, one_op_rule
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.match import Match
from workbench.core.fusion.pattern.neighbors import readers_of, run_once_on
from workbench.core.fusion.pattern.template import Recognized
from workbench.core.fusion.rule import RefusedError, scope_of
from workbench.core.fusion.rules.batch_norm_template import KIND, NormTemplate, template
from workbench.core.graph.op_types import FLOAT32, READS_WHOLE, VARIABLES

_OP = "WorkbenchBatchNorm"
# Of a node, in the scope around "moments" and "batchnorm".
_NAME = "fused_batch_norm"
_Norm = Recognized[NormTemplate]


def _like(graph: Definition, node: Any) -> NormTemplate | None:
    """The template of a node that gives a matrix which may be normalized."""
    if node.op != "AddV2" or node.attr["T"].type != FLOAT32:
        return None
    product, offset = graph.inputs(node)
    scaled = graph.made_by(product, "Mul")
    if scaled is None or graph.made_by(offset, "Sub") is None:
        return None
    shape = graph.shape(graph.same(graph.inputs(scaled)[0]))
    if shape is None or len(shape) != 2 or shape[1] < 1:
        return None
    return template(None if shape[0] < 0 else shape[0], shape[1])


def _ops(norm: _Norm) -> OpWithGradients:
    graph, like, match, result = norm.graph, norm.like, norm.match, norm.node.name
    x, gamma = match[like.inputs[0]], graph.read_for(match[like.scale], 1)
    beta = graph.read_for(f"{result}:0", 1, 0)
    if not _is_read(graph, gamma) or not _is_read(graph, beta):
        raise RefusedError("its gamma or beta is computed in the step")
    epsilon = float(graph.value(match[like.epsilon]))  # type: ignore[arg-type]
    gradients = tuple(_gradients(norm, (x, gamma), epsilon))
    everything = match.nodes.union(*(gradient.nodes for gradient in gradients))
    gives = {result: 0}
    for number, moment in enumerate(like.moments, 1):
        name = graph.source(match[moment]).name
        if readers_of(graph, name, everything):
            gives[name] = number
    return OpWithGradients(
        kind=KIND,
        forward=NewOp(
            op=_OP,
            name=f"{scope_around(result, 2)}{_NAME}",
            inputs=(x, gamma, beta),
            attributes={"epsilon": epsilon},
            gives=gives,
            nodes=frozenset(match.nodes),
        ),
        gradients=gradients,
        device=norm.node.device,
        note=_with_relus(sum(gradient.attributes["of_relu"] for gradient in gradients)),
    )


def _gradients(norm: _Norm, inputs: Sequence[str], epsilon: float) -> Iterator[NewOp]:
    """The op of each gradient, for a normalization with these inputs."""
    graph = norm.graph
    _, of_gamma, of_beta = norm.like.gradients
    for first, match in norm.gradients():
        # An input of the step has no gradient; the first of its terms is computed all the same.
        asked = readers_of(graph, first.name, ())
        x_sum, others = norm.sum_of_terms(first, match) if asked else ("", ())
        gamma = _gamma(norm, match, of_gamma)
        if of_beta not in match:
            # What something else multiplies the scale with.
            continue
        beta = graph.source(match[of_beta]).name
        weights = {name: number for name, number in ((gamma, 1), (beta, 2)) if name}
        of_x = {x_sum: 0} if x_sum else {}
        nodes = norm.nodes_of_gradient(match, {*of_x, *weights})
        relu = _of_relu(norm, x_sum, norm.match.nodes | nodes) if x_sum and not others else {}
        yield NewOp(
            op=f"{_OP}Grad",
            name=f"{scope_around(beta, 3)}{_NAME}",
            end="_grad",
            inputs=(match[norm.like.given], *inputs, ":1", ":2"),
            attributes={"epsilon": epsilon, "of_relu": bool(relu)},
            gives={**(relu or of_x), **weights},
            others=others,
            nodes=frozenset(nodes),
        )


def _gamma(norm: _Norm, match: Match, of_gamma: str) -> str:
    """The node that gives the gradient of gamma; "" where none does."""
    readers = norm.graph.readers(match[norm.like.inverse], "Mul")
    names = (node.name for node in readers if match.add(of_gamma, f"{node.name}:0"))
    return next(names, "")


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


def _of_relu(norm: _Norm, x_sum: str, known: Collection[str]) -> dict[str, int]:
    """The gradient of the ReLU that gives `x`, where nothing else needs the gradient of `x`.

    BiasAdd → Relu → normalization, and back: BiasAddGrad ← ReluGrad ← gradient of x. What stays
    costs as much as before, so nothing here is a refusal.

    Args:
      norm: the normalization.
      x_sum: the node that gives the gradient of `x`, from the normalization alone.
      known: names of the nodes of the normalization and of its gradient.

    Returns:
      By the names of the nodes of the gradients, of the ReLU and of biases before it, the outputs
      of the op; empty where it cannot make them.
    """
    graph, device = norm.graph, norm.node.device
    names = readers_of(graph, x_sum, known)
    node = graph.nodes[names[0]] if len(names) == 1 else None
    if node is None or node.op != "ReluGrad" or not run_once_on(graph, [node.name], device):
        return {}
    # The other input is the gradient: one of the two is.
    features, x = graph.inputs(node)[1], norm.match[norm.like.inputs[0]]
    if graph.same(features) != graph.same(x) or not _is_alone(graph, x_sum):
        return {}
    # A matrix has one data_format, so that all sum columns.
    sums = graph.readers(f"{node.name}:0", "BiasAddGrad")
    biases = [each.name for each in sums if run_once_on(graph, [each.name], device)]
    return {node.name: 0, **dict.fromkeys(biases, 3)}


def _is_alone(graph: Definition, x_sum: str) -> bool:
    """Whether nothing waits for a node, nor for Identities of it, and none of these is a result."""
    same = [node.name for node in graph.readers(f"{x_sum}:0") if graph.hands_on(node)]
    # What a function returns is an Identity that nothing reads.
    read = all(graph.readers(f"{name}:0") for name in same)
    return read and not any(map(graph.waiting, (x_sum, *same)))


def _with_relus(count: int) -> str:
    if count > 1:
        return f"with the gradients of {count} ReLUs in front of it"
    return "with the gradient of the ReLU in front of it" if count else ""


RULE = one_op_rule(
    KIND,
    _like,
    _ops,
    name_of=scope_of,
    if_shared="another one is normalized by the same moments",
)

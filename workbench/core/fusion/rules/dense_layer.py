"""Products of matrices that a kernel of Workbench's does faster.

TensorFlow's own on a CPU without AVX-512 takes up to half as long again where a factor lies
transposed, as in the gradients of dense layers. oneDNN's, on a CPU with AVX-512, splits a product
into one part for each thread, and waits for the last one: the other cores stand still then. Not the
node but its op changes: to name another kernel of MatMul is fatal where oneDNN takes over what is a
MatMul.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from workbench import _native
from workbench.core.fusion.node_defs import new_node
from workbench.core.fusion.other_kernel import Swap, other_kernel_rule
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.placement import Placement
from workbench.core.graph.op_types import FLOAT32
from workbench.number_words import counted

_OP = "WorkbenchMatMul"
_KIND = "matrix product"
_TRANSPOSES = ("transpose_a", "transpose_b")
# Of fewer rows or columns TensorFlow's is as fast: both factors are copied, whatever comes of them.
_FEWEST = 32
# What TensorFlow joins with a product and the bias behind it, and the kernel does not.
_JOINED_BY_TENSORFLOW = frozenset({"Elu", "LeakyRelu", "Relu6", "Sigmoid", "Tanh"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class DenseProduct:
    """A product, and what of a dense layer is behind it, which one op does together.

    Attributes:
      nodes: the MatMul, then what adds a bias to it, and a ReLU, where there are these.
      bias: the tensor, or none.
    """

    nodes: tuple[Any, ...]
    bias: tuple[str, ...] = ()


def _products(graph: Definition, placement: Placement) -> Iterator[Swap]:
    """The products of a graph that the kernel is to do; none where TensorFlow's is faster."""
    for node in graph.nodes.values():
        product = _product(graph, node) if _is_large(graph, node, placement) else None
        # Asked last, for it loads the library.
        if product is not None and kernel_is_faster(transposed=_is_transposed(node)):
            yield _with_kernel(product)


def kernel_is_faster(*, transposed: bool) -> bool:
    """Whether the kernel is faster than TensorFlow's on this processor.

    Args:
      transposed: whether a factor lies transposed.
    """
    has_kernel = _native.has_dense_kernels()
    return has_kernel and bool(_native.calls().workbench_matmul_fits(transposed))


def _with_kernel(product: DenseProduct) -> Swap:
    """The node that does a product, in the place of the last of its nodes."""
    multiplies, last = product.nodes[0], product.nodes[-1]
    waits = dict.fromkeys(
        text for part in product.nodes for text in part.input if text.startswith("^")
    )
    inputs = [*multiplies.input[:2], *product.bias, *waits]
    node = new_node(last.name, _OP, last.device, inputs)
    for name, value in last.attr.items():
        if name.startswith("_") and name != "_output_shapes":
            node.attr[name].CopyFrom(value)
    for name in _TRANSPOSES:
        node.attr[name].b = multiplies.attr[name].b
    node.attr["biases"].i = len(product.bias)
    node.attr["relu"].b = last.op == "Relu"
    return Swap(node=node, instead_of=[each.name for each in product.nodes])


def _is_transposed(node: Any) -> bool:
    return any(node.attr[name].b for name in _TRANSPOSES)


def _is_large(graph: Definition, node: Any, placement: Placement) -> bool:
    if node.op != "MatMul" or node.attr["T"].type != FLOAT32 or "_kernel" in node.attr:
        return False
    if placement.may_be_on_gpu(node.device):
        return False
    shape = graph.shape(f"{node.name}:0")
    return shape is None or all(size < 0 or size >= _FEWEST for size in shape)


def _product(graph: Definition, multiplies: Any) -> DenseProduct | None:
    """The product of a MatMul; None where TensorFlow joins more with it than the kernel does."""
    nodes: tuple[Any, ...] = (multiplies,)
    bias: tuple[str, ...] = ()
    behind = _only_reader(graph, multiplies)
    if behind is not None and (added := _bias(graph, multiplies, behind)):
        nodes, bias = (multiplies, behind), (added,)
        behind = _only_reader(graph, behind)
    if behind is not None and behind.op == "Relu":
        nodes = (*nodes, behind)
    elif bias and behind is not None and behind.op in _JOINED_BY_TENSORFLOW:
        return None
    return DenseProduct(nodes=nodes, bias=bias)


def _only_reader(graph: Definition, node: Any) -> Any | None:
    """The node that is all that needs another one, where it can be done together with that."""
    readers = graph.readers(f"{node.name}:0")
    if len(readers) != 1 or graph.waiting(node.name):
        return None
    (found,) = readers
    return found if found.device == node.device and "_kernel" not in found.attr else None


def _bias(graph: Definition, multiplies: Any, added: Any) -> str | None:
    """What a node adds to each row of a product; None where it does something else."""
    of_product = f"{multiplies.name}:0"
    if added.op not in ("BiasAdd", "AddV2"):
        return None
    inputs = graph.inputs(added)
    others = [tensor for tensor in inputs if tensor != of_product]
    if len(others) != 1 or (added.op == "BiasAdd" and inputs[0] != of_product):
        return None
    shape, columns = graph.shape(others[0]), graph.shape(of_product)
    # An AddV2 may also repeat one number, or a column.
    is_row = shape is not None and columns is not None and shape == columns[1:] and shape[0] > 1
    return others[0] if is_row or added.op == "BiasAdd" else None


RULE = other_kernel_rule(
    _KIND, _products, lambda count: f"{counted(count, _KIND)} by Workbench's kernel"
)

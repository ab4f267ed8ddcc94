"""Products of matrices, one of them transposed, that a kernel of Workbench's does faster.

TensorFlow's own on a CPU without AVX-512 takes up to half as long again there, where rows lie
a power of two apart. The gradients of dense layers are such products. The node stays a MatMul, and
an attribute of it names the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorflow.core.framework import graph_pb2

from workbench import _native
from workbench.core.fusion import node_defs
from workbench.core.fusion.definition import Definition
from workbench.core.fusion.placement import Placement

_FLOAT32 = 1
_KERNEL, _LABEL = "_kernel", b"workbench"
# Of fewer rows or columns TensorFlow's is as fast: both factors are copied, whatever comes of them.
_FEWEST = 32


def find_matmuls(graph: Definition, placement: Placement) -> tuple[str, ...]:
    """The names of the products of a graph that the kernel is to do, in its order.

    None where the processor is one for which TensorFlow's kernel is faster.

    Args:
      graph: the graph.
      placement: where its nodes may run; a GPU has no such kernel.
    """
    found = tuple(node.name for node in graph.nodes.values() if _gains(graph, node, placement))
    # Asked last, for it loads the library.
    return found if found and kernel_is_faster() else ()


def kernel_is_faster() -> bool:
    """Whether the kernel is made for this processor: one with AVX2 and without AVX-512."""
    return bool(_native.calls().workbench_matmul_fits_processor())


def choose_kernels(graph: Definition, names: Iterable[str], replaced: graph_pb2.GraphDef) -> None:
    """Has products run Workbench's kernel.

    Args:
      graph: that has them.
      names: of their nodes.
      replaced: what comes in the place of nodes of the graph; to change, and to add to.
    """
    known = {node.name: node for node in replaced.node}
    for name in names:
        if name not in known:
            replaced.node.append(node_defs.waiting(graph.nodes[name], {}))
            known[name] = replaced.node[-1]
        known[name].attr[_KERNEL].s = _LABEL


def has_kernel(node: Any) -> bool:
    """Whether a node of a GraphDef is a product that Workbench's kernel does."""
    # Not read where it is not: that would set it.
    chooses = node.op == "MatMul" and _KERNEL in node.attr
    return bool(chooses and node.attr[_KERNEL].s == _LABEL)


def _gains(graph: Definition, node: Any, placement: Placement) -> bool:
    if node.op != "MatMul" or node.attr["T"].type != _FLOAT32 or has_kernel(node):
        return False
    if not (node.attr["transpose_a"].b or node.attr["transpose_b"].b):
        return False
    if placement.may_be_on_gpu(node.device):
        return False
    shape = graph.shape(f"{node.name}:0")
    return shape is None or all(size < 0 or size >= _FEWEST for size in shape)

"""Products of matrices, one of them transposed, that a kernel of Workbench's does faster.

TensorFlow's own on a CPU without AVX-512 takes up to half as long again there, where rows lie
a power of two apart. The gradients of dense layers are such products. Not the node but its op
changes: to name another kernel of MatMul is fatal where oneDNN takes over what is a MatMul.
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
_OP = "WorkbenchMatMul"
_ATTRIBUTES = ("transpose_a", "transpose_b")
# Of fewer rows or columns TensorFlow's is as fast: both factors are copied, whatever comes of them.
_FEWEST = 32


def find_matmuls(graph: Definition, placement: Placement) -> tuple[str, ...]:
    """The names of the products of a graph that the kernel is to do, in its order.

    None where TensorFlow's kernel is faster.

    Args:
      graph: the graph.
      placement: where its nodes may run; a GPU has no such kernel.
    """
    found = tuple(node.name for node in graph.nodes.values() if _gains(graph, node, placement))
    # Asked last, for it loads the library.
    return found if found and kernel_is_faster() else ()


def kernel_is_faster() -> bool:
    """Whether the kernel is made for what is here: AVX2 without AVX-512, and without oneDNN."""
    return bool(_native.calls().workbench_matmul_fits())


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
        _have_kernel(known[name])


def _have_kernel(node: Any) -> None:
    node.op = _OP
    for name in [name for name in node.attr if name not in _ATTRIBUTES and name[0] != "_"]:
        del node.attr[name]


def _gains(graph: Definition, node: Any, placement: Placement) -> bool:
    if node.op != "MatMul" or node.attr["T"].type != _FLOAT32 or "_kernel" in node.attr:
        return False
    if not (node.attr["transpose_a"].b or node.attr["transpose_b"].b):
        return False
    if placement.may_be_on_gpu(node.device):
        return False
    shape = graph.shape(f"{node.name}:0")
    return shape is None or all(size < 0 or size >= _FEWEST for size in shape)

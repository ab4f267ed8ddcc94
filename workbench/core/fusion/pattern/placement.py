"""Where nodes of a graph may run, as far as is known before TensorFlow places them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from workbench import _native
from workbench.core.fusion.rule import RefusedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Placement:
    """What is known of where nodes of a graph run.

    Attributes:
      gpu: whether what names no device may run on a GPU.
      kernels: whether the kernels of lookups for GPUs are loaded.
      captured: the devices of what placeholders of a function stand for, by the placeholders'
        names. TensorFlow runs what reads a variable where that is.
      empty: of these placeholders the ones of variables without rows.
    """

    gpu: bool = False
    kernels: bool = False
    captured: Mapping[str, str] = dataclasses.field(default_factory=dict)
    empty: frozenset[str] = frozenset()

    def may_be_on_gpu(self, *devices: str) -> bool:
        """Whether a node may run on a GPU, of which these devices are known; the first one counts.

        One that names a GPU may, also where this machine has none: another one may run the graph.
        """
        kinds = (tf.DeviceSpec.from_string(each).device_type for each in devices)
        kind = next(filter(None, kinds), None)
        return self.gpu if kind is None else kind != "CPU"

    def require_cpu(self, node: Any, *, op: str) -> None:
        """Raises RefusedError where a node may run on a GPU, which lacks what would do its work.

        Args:
          node: of a GraphDef.
          op: what would do it, in words.
        """
        if self.may_be_on_gpu(node.device):
            raise RefusedError(
                f"it may run on a GPU, and Workbench's op of {op} has a kernel for CPUs alone"
            )


def names_gpu(device: str) -> bool:
    """Whether the name of a device, which may be empty, says that it is a GPU."""
    return bool(tf.DeviceSpec.from_string(device).device_type == "GPU")


def placement_of(graph: Any) -> Placement:
    """What is known of a graph, a function or a GraphDef in this process."""
    own = getattr(graph, "graph", graph)
    captures = own.captures if isinstance(own, FuncGraph) else ()
    return Placement(
        gpu=bool(tf.config.list_physical_devices("GPU")),
        kernels=_native.has_gpu_kernels(),
        captured={inside.op.name: outside.device or "" for outside, inside in captures},
        empty=frozenset(inside.op.name for outside, inside in captures if _has_no_rows(outside)),
    )


def _has_no_rows(captured: Any) -> bool:
    """Whether a function captures a variable whose first dimension is 0."""
    known = getattr(captured, "_handle_data", None)
    shapes = known.shape_and_type if known is not None and known.is_set else ()
    return any(each.shape.dim and each.shape.dim[0].size == 0 for each in shapes)

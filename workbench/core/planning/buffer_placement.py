"""Where a planned stage runs, where its buffer is, and what of an item stays on the host there."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import numpy as np

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.graph.graph_view import Bools
from workbench.core.options import SmartStageOptions

# "/device:GPU:0", "/gpu:0", "/GPU:0"
_KIND = re.compile(r"/(?:device:)?(?P<kind>[CcGg][Pp][Uu])(?P<number>:\d+|:\*)?")
_CPU = "/device:CPU:0"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComputeDevice:
    """Where TensorFlow puts the compute side's nodes that name no device.

    Attributes:
      name: of the device.
      cpu_ops: op types that have no kernel there, and go to the CPU.
    """

    name: str = _CPU
    cpu_ops: frozenset[str] = frozenset()


ON_CPU = ComputeDevice()


def staged_device(options: SmartStageOptions) -> str:
    """The device that all of a stage is put on; "" leaves each node where it would be anyway.

    With `on_cpu` it is the CPU, so that no kernel of the stage is in the step's way on a GPU. One
    with a stream of its own is not in the way there, and leaves its nodes where they are.
    """
    return _CPU if options.on_cpu and not options.stage_subgraph_stream_id else ""


def buffer_device(
    boundary: Boundary, side: Side, moved: Bools, compute: ComputeDevice, *, on_cpu: bool
) -> str:
    """The device of a stage's buffer.

    It is on the CPU of the task that reads the input; or, with `on_cpu` and where the step takes
    from it, on the device of the compute side's nodes that read what travels: the GPU of most of
    those that are on a GPU, where any is.

    Args:
      boundary, side, moved: the cut.
      compute: where the compute side's nodes are that name no device.
      on_cpu: whether what travels is to be moved to the compute side's device by the put.
    """
    view = boundary.view
    task = _KIND.sub("", view.devices[side.start.nodes[0]])
    if side.start.is_stage and not on_cpu:
        # A widened buffer is where it was.
        asked = view.devices[side.start.nodes[0]]
        return asked if _KIND.search(asked) else f"{asked}{_CPU}"
    if on_cpu:
        readers = np.unique(boundary.cut_edges(side, moved)[:, 2]).tolist()
        asked_by = Counter(_placed(boundary, node, compute) for node in readers)
        # A buffer on a GPU serves a CPU as well, from host memory.
        asked_by = Counter({each: asked_by[each] for each in asked_by if is_gpu(each)}) or asked_by
        if asked_by:
            return task + asked_by.most_common(1)[0][0]
    return f"{task}{_CPU}"


def is_gpu(device: str) -> bool:
    """Whether a device string names a GPU."""
    return _kind(device).startswith("/device:GPU")


def stays_on_host(
    boundary: Boundary, side: Side, moved: Bools, node: int, compute: ComputeDevice
) -> bool:
    """Whether a carried node's outputs stay in host memory when the buffer is on a GPU.

    Strings have to; so does what the step reads on a CPU alone, or not at all: the raw batch is
    carried for fetches.
    """
    if "string" in boundary.view.outputs[node]:
        return True
    edges = boundary.cut_edges(side, moved)
    readers = edges[edges[:, 0] == node, 2].tolist()
    return not any(is_gpu(_placed(boundary, reader, compute)) for reader in readers)


def _placed(boundary: Boundary, node: int, compute: ComputeDevice) -> str:
    """Kind and number of the device where TensorFlow would put a node of the compute side."""
    view = boundary.view
    asked = _kind(view.devices[node])
    if view.ops[node] in compute.cpu_ops:
        return asked if asked and not is_gpu(asked) else _CPU
    return asked or compute.name


def _kind(device: str) -> str:
    """The kind and number of a device string, as "/device:GPU:0"; "" without one."""
    found = _KIND.search(device)
    if not found:
        return ""
    return f"/device:{found['kind'].upper()}{found['number'] or ':0'}"

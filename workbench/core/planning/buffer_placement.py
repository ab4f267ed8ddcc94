"""Where a planned stage's buffer is, and what of an item stays in host memory there."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.graph.graph_view import Bools

# "/device:GPU:0", "/gpu:0", "/GPU:0"
_KIND = re.compile(r"/(?:device:)?(?P<kind>[CcGg][Pp][Uu])(?P<number>:\d+|:\*)?")


def buffer_device(
    boundary: Boundary, side: Side, moved: Bools, compute_device: str, *, on_cpu: bool
) -> str:
    """The device of a stage's buffer.

    It is on the CPU of the task that reads the input; or, with `on_cpu` and where the step takes
    from it, on the device of the compute side's nodes that read what travels.

    Args:
      boundary, side, moved: the cut.
      compute_device: where the compute side's nodes that name no device are; "" is the CPU.
      on_cpu: whether what travels is to be moved to the compute side's device by the put.
    """
    view = boundary.view
    task = _KIND.sub("", view.devices[side.start.nodes[0]])
    if side.start.is_stage and not on_cpu:
        # A widened buffer is where it was.
        asked = view.devices[side.start.nodes[0]]
        return asked if _KIND.search(asked) else f"{asked}/device:CPU:0"
    if on_cpu:
        readers = np.unique(boundary.cut_edges(side, moved)[:, 2]).tolist()
        asked_by = Counter(_kind(view.devices[node]) or compute_device for node in readers)
        if asked_by:
            return task + (asked_by.most_common(1)[0][0] or "/device:CPU:0")
    return f"{task}/device:CPU:0"


def is_gpu(device: str) -> bool:
    """Whether a device string names a GPU."""
    return _kind(device).startswith("/device:GPU")


def stays_on_host(boundary: Boundary, side: Side, moved: Bools, node: int) -> bool:
    """Whether a carried node's outputs stay in host memory when the buffer is on a GPU.

    Strings have to; the raw batch does unless the step itself reads it: it is carried for fetches.
    """
    if "string" in boundary.view.outputs[node]:
        return True
    read = node in boundary.cut_edges(side, moved)[:, 0]
    return node in side.start.nodes and not read


def _kind(device: str) -> str:
    """The kind and number of a device string, as "/device:GPU:0"; "" without one."""
    found = _KIND.search(device)
    if not found:
        return ""
    return f"/device:{found['kind'].upper()}{found['number'] or ':0'}"

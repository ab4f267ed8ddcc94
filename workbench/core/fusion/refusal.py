"""Why something of a graph stays as it is."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refusal:
    """A lookup, batch normalization or interaction that stays as it is.

    Attributes:
      name: what users call it: the scope that it was built in; of dense ids and dots the node
        itself.
      reason: why, a clause.
    """

    name: str
    reason: str


class RefusedError(Exception):
    """Something stays; the text is the reason."""


def may_be_on_gpu(node: Any, *, gpu: bool) -> bool:
    """Whether a node of a GraphDef may run on a GPU; `gpu` says so of one that names no device."""
    return gpu and "CPU" not in node.device.upper()


def require_cpu(node: Any, *, gpu: bool, op: str) -> None:
    """Raises RefusedError where a node may run on a GPU, which lacks what would do its work.

    Args:
      node: of a GraphDef.
      gpu: whether what names no device may run there.
      op: what would do it, in words.
    """
    if may_be_on_gpu(node, gpu=gpu):
        raise RefusedError(f"it may run on a GPU, which has no {op}")


def scope_of(name: str) -> str:
    """The scope of a node; its own name at the top."""
    return name.rpartition("/")[0] or name

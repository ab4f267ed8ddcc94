"""Which puts fill the buffer that a take reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.core.graph.op_types import STAGE_PUT


def puts_of(take: Any, nodes: Iterable[Any]) -> list[Any]:
    """The nodes that put into the buffer of a take, among the nodes of its graph."""
    return [node for node in nodes if node.op == STAGE_PUT and _buffer(node) == _buffer(take)]


def _buffer(node: Any) -> tuple[bytes, bytes]:
    return node.attr["container"].s, node.attr["shared_name"].s

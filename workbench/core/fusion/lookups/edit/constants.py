"""Constants that nodes of a plan read."""

from __future__ import annotations

from typing import Any

from tensorflow.core.framework import node_def_pb2

from workbench.core.fusion import node_defs


class Constants:
    """Constants of a scope, each once on a device."""

    def __init__(self, scope: str, added: list[node_def_pb2.NodeDef]) -> None:
        """Adds what is asked for to `added`."""
        self._scope, self._added = scope, added
        self._names: dict[Any, str] = {}

    def __call__(self, value: Any, device: str) -> str:
        """The tensor of a NumPy value; the same one for equal values."""
        key = value.dtype.name, value.shape, value.tobytes(), device
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = f"{self._scope}/constant_{len(self._names)}"
            self._added.append(node_defs.constant_node(known, value, device))
        return f"{known}:0"

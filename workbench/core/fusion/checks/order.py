"""Which nodes of a graph come before which, of those that matter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from workbench.core.fusion.pattern.definition import tensor_name
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_types import LOOPS_BACK


def cyclic(inputs: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Names of nodes that lie on a cycle, or between two.

    Args:
      inputs: by the name of each node the names of those that it depends on.
    """
    left = {name: set(sources) for name, sources in inputs.items()}
    for _ in range(2):
        order = set(_sorted(left))
        left = {name: sources - order for name, sources in left.items() if name not in order}
        # What remains and leads to no cycle goes in the other direction.
        behind: dict[str, set[str]] = {name: set() for name in left}
        for name, sources in left.items():
            for source in sources:
                behind[source].add(name)
        left = behind
    return frozenset(left)


def inputs_of(nodes: Mapping[str, Any]) -> dict[str, list[str]]:
    """By the name of each node those that it depends on, but for loops' way back."""
    return {
        name: [
            source for text in node.input if nodes[source := node_name(text)].op not in LOOPS_BACK
        ]
        for name, node in nodes.items()
    }


def needed_by(
    names: Iterable[str], nodes: Mapping[str, Any], fed: Collection[str] = ()
) -> dict[str, None]:
    """Names of nodes that some depend on, themselves among them, where tensors are fed."""
    needed = dict.fromkeys(names)
    waiting = list(needed)
    while waiting:
        for text in nodes[waiting.pop()].input:
            name = node_name(text)
            is_fed = text[0] != "^" and tensor_name(text) in fed
            if not is_fed and name not in needed:
                needed[name] = None
                waiting.append(name)
    return needed


class Order:
    """Which of some nodes each node of a graph without cycles depends on."""

    def __init__(self, inputs: Mapping[str, Sequence[str]], marked: Iterable[str]) -> None:
        """Follows the graph once.

        Args:
          inputs: as `inputs_of` gives them.
          marked: names of the nodes that are asked about.
        """
        self._bits = {name: 1 << i for i, name in enumerate(dict.fromkeys(marked))}
        self._names = list(self._bits)
        self._before: dict[str, int] = {}
        for name in _sorted(inputs):
            found = 0
            for source in inputs[name]:
                found |= self._before[source] | self._bits.get(source, 0)
            self._before[name] = found

    def is_before(self, marked: str, name: str) -> bool:
        """Whether a node depends on one of those that are asked about."""
        return bool(self._before[name] & self._bits[marked])

    def lost(self, name: str, other: Order) -> list[str]:
        """The marked nodes that a node depends on here, and not in another order of the same."""
        missing = self._before[name] & ~other._before[name]
        return [each for each in self._names if missing & self._bits[each]]


def _sorted(inputs: Mapping[str, Collection[str]]) -> list[str]:
    """The nodes so that each comes behind those that it depends on; none of cycles, nor behind."""
    readers: dict[str, list[str]] = {}
    left: dict[str, int] = {}
    for name, sources in inputs.items():
        left[name] = len(sources)
        for source in sources:
            readers.setdefault(source, []).append(name)
    order = [name for name, count in left.items() if not count]
    for name in order:
        for reader in readers.get(name, ()):
            left[reader] -= 1
            if not left[reader]:
                order.append(reader)
    return order

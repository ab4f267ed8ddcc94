"""Definition: the nodes of a GraphDef, found by what they read and by what reads them."""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.core.graph.graph_view import Shape, node_name

# What follows these may not run in a step, or run more than once; after the others it runs once.
_ENTERS = frozenset({"Enter", "RefEnter"})
_MAY_NOT_RUN = frozenset({*_ENTERS, "Switch", "RefSwitch", "_SwitchN"})
_RUNS_ONCE = frozenset({"Exit", "RefExit", "Merge", "RefMerge"})
# Arithmetic of which equal inputs have equal results, and reads with nothing to wait for.
_COMPUTES = frozenset({"Sub", "Mul", "RealDiv", "Sqrt", "Pow", "AddV2", "Cast", "ReadVariableOp"})
_LOOPS_BACK = frozenset({"NextIteration", "RefNextIteration"})


def tensor_name(text: str) -> str:
    """A node's input as "node:output"."""
    return text if ":" in text else f"{text}:0"


# Where several gradients of an op wait for one another, which changes none of them.
_GATE = re.compile(r"/tuple/control_dependency(_\d+)?$")


class Definition:
    """The nodes of a GraphDef that was made with shapes, and how they hang together."""

    def __init__(self, nodes: Iterable[Any], functions: Iterable[Any] = ()) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.functions = {each.signature.name: each for each in functions}

    def inputs(self, node: Any) -> list[str]:
        """The tensors that a node reads, as "node:output"."""
        return [tensor_name(text) for text in node.input if not text.startswith("^")]

    def source(self, tensor: str) -> Any:
        """The node whose output a tensor is."""
        return self.nodes[node_name(tensor)]

    def read_for(self, tensor: str, *path: int) -> str:
        """The tensor that a tensor's node reads as input of that number, and so on along a path."""
        for number in path:
            tensor = self.inputs(self.source(tensor))[number]
        return tensor

    def hands_on(self, node: Any) -> bool:
        """Whether a node gives what it reads, and nothing is waited for in it that matters."""
        if len(node.input) > 1 and not _GATE.search(node.name):
            return False
        return node.op == "Identity" or (node.op == "EnsureShape" and self._never_fails(node))

    def _never_fails(self, ensures: Any) -> bool:
        """Whether an EnsureShape asks for nothing that is not known of its input anyway."""
        asked, known = ensures.attr["shape"].shape, self.shape(self.inputs(ensures)[0])
        if asked.unknown_rank:
            return True
        return known is not None and all(
            size.size in (-1, own) for size, own in zip(asked.dim, known, strict=True)
        )

    def same(self, tensor: str) -> str:
        """What Identities only hand on."""
        while self.hands_on(self.source(tensor)):
            (tensor,) = self.inputs(self.source(tensor))
        return tensor

    def made_by(self, tensor: str, *ops: str, output: int = 0) -> Any | None:
        """The node behind Identities that makes a tensor, where it is of one of these ops."""
        found = self.same(tensor)
        node = self.source(found)
        return node if node.op in ops and found.endswith(f":{output}") else None

    def value(self, tensor: str) -> np.ndarray | None:
        """The value of a constant; None of anything else."""
        node = self.made_by(tensor, "Const")
        return None if node is None else tf.make_ndarray(node.attr["value"].tensor)

    def is_value(self, tensor: str, expected: Any) -> bool:
        """Whether a tensor is a constant of that value."""
        found = self.value(tensor)
        return found is not None and np.array_equal(found, np.asarray(expected, found.dtype))

    def is_zeros(self, tensor: str) -> bool:
        """Whether all values of a tensor are known to be 0."""
        if self.made_by(tensor, "ZerosLike") is not None:
            return True
        fill = self.made_by(tensor, "Fill")
        found = self.value(tensor if fill is None else self.inputs(fill)[1])
        return found is not None and not found.any()

    def shape(self, tensor: str) -> Shape:
        """Static shape of a tensor, -1 for a size that is not known; None where the rank is not."""
        node, output = self.source(tensor), int(tensor.rpartition(":")[2])
        shapes = node.attr["_output_shapes"].list.shape
        if output >= len(shapes) or shapes[output].unknown_rank:
            return None
        return tuple(each.size for each in shapes[output].dim)

    def readers(self, tensor: str, *ops: str) -> list[Any]:
        """The nodes that read a tensor, through Identities too; with `ops` those of these types."""
        found, waiting = [], [tensor]
        while waiting:
            for node in self._readers.get(waiting.pop(), ()):
                found.append(node)
                if self.hands_on(node):
                    waiting.append(f"{node.name}:0")
        return [node for node in found if not ops or node.op in ops]

    def waiting(self, name: str) -> list[Any]:
        """The nodes that a control edge leads to from a node."""
        return self._waiting.get(name, [])

    def leads_to(self, first: str, last: str) -> bool:
        """Whether a node depends on another one, by data or control."""
        seen, waiting = {last}, [last]
        while waiting:
            for text in self.nodes[waiting.pop()].input:
                name = node_name(text)
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)
        return first in seen

    def expression(self, tensor: str) -> Hashable:
        """What a number is computed from: equal for tensors that are equal in every run.

        Made for the numbers of optimizers, which each table's update computes for itself.
        """
        tensor = self.same(tensor)
        node = self.source(tensor)
        known = self.value(tensor)
        if known is not None:
            return known.dtype.name, known.shape, known.tobytes()
        if node.op not in _COMPUTES or any(text.startswith("^") for text in node.input):
            return tensor
        to = node.attr["DstT"].type if node.op == "Cast" else 0
        return node.op, to, node.device, *map(self.expression, self.inputs(node))

    def leaves(self, tensor: str) -> set[str]:
        """The tensors from which `expression` computes a number, without constants."""
        tensor = self.same(tensor)
        node = self.source(tensor)
        if self.value(tensor) is not None:
            return set()
        if node.op not in _COMPUTES or any(text.startswith("^") for text in node.input):
            return {tensor}
        return {leaf for each in self.inputs(node) for leaf in self.leaves(each)}

    @functools.cached_property
    def _waiting(self) -> dict[str, list[Any]]:
        waiting: dict[str, list[Any]] = {}
        for node in self.nodes.values():
            for name in {text[1:] for text in node.input if text.startswith("^")}:
                waiting.setdefault(name, []).append(node)
        return waiting

    @functools.cached_property
    def _readers(self) -> dict[str, list[Any]]:
        readers: dict[str, list[Any]] = {}
        for node in self.nodes.values():
            for tensor in dict.fromkeys(self.inputs(node)):
                readers.setdefault(tensor, []).append(node)
        return readers

    @functools.cached_property
    def ordered(self) -> Sequence[Any]:
        """The nodes so that each comes after those that it depends on, but for loops' way back."""
        before = {
            name: {
                node_name(text)
                for text in node.input
                if self.nodes[node_name(text)].op not in _LOOPS_BACK
            }
            for name, node in self.nodes.items()
        }
        behind: dict[str, list[str]] = {}
        for name, sources in before.items():
            for source in sources:
                behind.setdefault(source, []).append(name)
        left = {name: len(sources) for name, sources in before.items()}
        order = [name for name, count in left.items() if not count]
        for name in order:
            for reader in behind.get(name, ()):
                left[reader] -= 1
                if not left[reader]:
                    order.append(reader)
        return [self.nodes[name] for name in order]

    @functools.cached_property
    def computed(self) -> tuple[str, ...]:
        """The first results of nodes that read something, each behind what it reads."""
        nodes = (node for node in self.ordered if self.inputs(node) and not self.hands_on(node))
        return tuple(f"{node.name}:0" for node in nodes)

    @functools.cached_property
    def conditional(self) -> frozenset[str]:
        """Nodes of branches and loops, which may not run in a step, or run more than once."""
        names: set[str] = set()
        for node in self.ordered:
            sources = [node_name(text) for text in node.input]
            loops = any(self.nodes[source].op in _ENTERS for source in sources)
            if node.op in _RUNS_ONCE and not loops:
                continue
            inside = any(source in names for source in sources)
            if inside or node.op in _MAY_NOT_RUN:
                names.add(node.name)
        return frozenset(names)

"""GraphView: the shape of a graph as frozen flat arrays; needs no TensorFlow.

Nodes are numbered; every set of nodes is a bool array over them. What an op means is not known
here, only how nodes hang together.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from workbench.core.graph.op_types import STAGE_PUT, STAGE_TAKE
from workbench.core.options import StageOptions
from workbench.errors import PlanError, cut

Bools = np.ndarray
Ints = np.ndarray
# A static shape: -1 for a size that is not known, None where the rank is not.
Shape = tuple[int, ...] | None
# Kinds of what a function captures, in `GraphView.captures`.
CAPTURED_VARIABLE, CAPTURED_TABLE = "variable", "table"
CAPTURED_RESOURCE, CAPTURED_VALUE = "resource", "value"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeenStage:
    """A stage that is in a graph already.

    Attributes:
      name: of the stage, in messages.
      options: its options, as far as they are known.
    """

    name: str
    options: StageOptions


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GraphView:
    """A graph, or the body of a function.

    Attributes:
      names: name of each node, unique.
      ops: op type of each node.
      devices: requested device of each node, "" for none.
      outputs: dtype names of each node's outputs, such as "float32", "resource", "int64_ref".
      data: int32 [edges, 4]: source node, its output, destination node, its input.
      control: int32 [edges, 2]: source node, destination node.
      stateful_ops: the op types whose OpDef is stateful.
      shared_names: for nodes that make or name a resource: "container/shared_name", the node's own
        name where the op has none.
      shapes: for nodes of which they are known: the static shapes of their outputs.
      functions: for nodes that call functions: their names.
      library: body of every function by name.
      captures: for the nodes through which a function reads what it captures: the kind, one of
        CAPTURED_*.
      captured_shapes: for those that are variables: the static shape of what they hold.
      stages: for put nodes of stages: what is known of their stage.
    """

    names: tuple[str, ...]
    ops: tuple[str, ...]
    devices: tuple[str, ...]
    outputs: tuple[tuple[str, ...], ...]
    data: Ints
    control: Ints
    stateful_ops: frozenset[str] = frozenset()
    shared_names: Mapping[int, str] = dataclasses.field(default_factory=dict)
    shapes: Mapping[int, tuple[Shape, ...]] = dataclasses.field(default_factory=dict)
    functions: Mapping[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    library: Mapping[str, GraphView] = dataclasses.field(default_factory=dict)
    captures: Mapping[int, str] = dataclasses.field(default_factory=dict)
    captured_shapes: Mapping[int, Shape] = dataclasses.field(default_factory=dict)
    stages: Mapping[int, SeenStage] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"GraphView({len(self)} nodes, {len(self.data)} data edges)"

    @functools.cached_property
    def index(self) -> Mapping[str, int]:
        """Number of each node by name."""
        return {name: i for i, name in enumerate(self.names)}

    def number(self, name: str) -> int:
        """Number of the node of that name; "x:0" and "^x" name the node "x".

        Raises:
          PlanError: there is no such node.
        """
        found = self.index.get(node_name(name))
        if found is None:
            raise PlanError(
                f"the graph has no node {cut(node_name(name), 200)!r}; expected one of its "
                f"{len(self)} nodes"
            )
        return found

    def output_shapes(self, node: int) -> tuple[Shape, ...]:
        """Static shapes of a node's outputs, as far as they are known."""
        return self.shapes.get(node, (None,) * len(self.outputs[node]))

    @functools.cached_property
    def arguments(self) -> tuple[int, ...]:
        """Of the graph of a function that captures something: the nodes that are its arguments."""
        if not self.captures:
            return ()
        given = (node for node, op in enumerate(self.ops) if op == "Placeholder")
        return tuple(node for node in given if node not in self.captures)

    @functools.cached_property
    def consumers(self) -> Adjacency:
        """Edges out of each node, data and control, as node numbers."""
        source = np.concatenate([self.data[:, 0], self.control[:, 0]])
        return _adjacency(source, np.concatenate([self.data[:, 2], self.control[:, 1]]), len(self))

    @functools.cached_property
    def producers(self) -> Adjacency:
        """Edges into each node, data and control, as node numbers."""
        source = np.concatenate([self.data[:, 0], self.control[:, 0]])
        return _adjacency(np.concatenate([self.data[:, 2], self.control[:, 1]]), source, len(self))

    def mask(self, nodes: Iterable[int]) -> Bools:
        """These nodes as a bool array."""
        chosen = np.zeros(len(self), bool)
        chosen[list(nodes)] = True
        return chosen

    def reached(self, start: Bools, *, within: Bools | None = None) -> Bools:
        """`start` and all that depends on it, by data or control edges, not leaving `within`."""
        return _closure(self.consumers, start, within)

    def ancestors(self, start: Bools, *, within: Bools | None = None) -> Bools:
        """`start` and all that it depends on, not leaving `within`."""
        return _closure(self.producers, start, within)

    @functools.cached_property
    def puts_to_takes(self) -> tuple[tuple[int, int], ...]:
        """From each put of a stage of the graph to the takes of the same one."""
        takes: dict[str, list[int]] = {}
        for node, op in enumerate(self.ops):
            if op == STAGE_TAKE:
                takes.setdefault(self.shared_names[node], []).append(node)
        return tuple(
            (node, take)
            for node, op in enumerate(self.ops)
            if op == STAGE_PUT
            for take in takes.get(self.shared_names[node], ())
        )

    def nearest(self, start: Bools) -> Ints:
        """For each node the next node on a shortest path back to `start`.

        Returns:
          int32 [nodes]: the node itself for those in `start`, -1 for nodes not reached from it.
        """
        next_hop = np.full(len(self), -1, np.int32)
        first = np.flatnonzero(start)
        next_hop[first] = first
        begin, nodes = self.consumers.lists
        level, seen = first.tolist(), next_hop.tolist()
        while level:
            after = []
            for node in level:
                for consumer in nodes[begin[node] : begin[node + 1]]:
                    if seen[consumer] < 0:
                        seen[consumer] = node
                        after.append(consumer)
            level = after
        return np.asarray(seen, np.int32)

    def ordered(self, chosen: Bools) -> list[int]:
        """The chosen nodes so that each comes after those it depends on.

        Raises:
          PlanError: they hang together in a cycle.
        """
        begin, nodes = self.consumers.lists
        inside = chosen.tolist()
        picked = np.flatnonzero(chosen)
        waiting = np.zeros(len(self), np.int64)
        for source, target in ((self.data[:, 0], self.data[:, 2]), self.control.T):
            between = chosen[source] & chosen[target]
            waiting += np.bincount(target[between], minlength=len(self))
        left = waiting.tolist()
        ready = [node for node in picked.tolist() if not left[node]]
        for node in ready:
            for consumer in nodes[begin[node] : begin[node + 1]]:
                if inside[consumer]:
                    left[consumer] -= 1
                    if not left[consumer]:
                        ready.append(consumer)
        if len(ready) < len(picked):
            stuck = next(node for node in picked.tolist() if left[node] > 0)
            raise PlanError(f"node {self.names[stuck]!r} is in a cycle; expected a graph without")
        return ready

    def without_data(self, rows: Sequence[int]) -> GraphView:
        """The graph without some of its data edges, by their rows; itself where there are none."""
        if not len(rows):
            return self
        return dataclasses.replace(self, data=np.delete(self.data, rows, axis=0))

    def tensor(self, node: int, output: int) -> str:
        """Name of one output of a node."""
        return f"{self.names[node]}:{output}"

    def inputs(self, node: int) -> list[tuple[int, int]]:
        """(node, output) of each data input, in order."""
        begin = self._data_begin
        return [(int(row[0]), int(row[1])) for row in self._by_input[begin[node] : begin[node + 1]]]

    def control_inputs(self, node: int) -> list[int]:
        """The nodes that run before it by a control edge."""
        return [int(source) for source in self.control[self.control[:, 1] == node, 0]]

    @functools.cached_property
    def _by_input(self) -> Ints:
        return self.data[np.lexsort((self.data[:, 3], self.data[:, 2]))]

    @functools.cached_property
    def _data_begin(self) -> Ints:
        return np.searchsorted(self._by_input[:, 2], np.arange(len(self) + 1))

    def fingerprint(self, region: Bools) -> str:
        """Tells the nodes of `region`, with all edges among them, from any other, as 32 hex digits.

        The order of the nodes in the graph and everything outside `region` do not matter.
        """
        chosen = np.flatnonzero(region).tolist()
        rows = {node: [self.names[node], self.ops[node]] for node in chosen}
        kept = self._by_input[region[self._by_input[:, 0]] & region[self._by_input[:, 2]]]
        for source, output, target, place in kept.tolist():
            rows[target].append(f"{place}={self.names[source]}:{output}")
        pairs = self.control[region[self.control[:, 0]] & region[self.control[:, 1]]]
        before: dict[int, list[str]] = {}
        for source, target in pairs.tolist():
            before.setdefault(target, []).append(f"^{self.names[source]}")
        for target, names in before.items():
            rows[target].extend(sorted(names))
        lines = sorted("\t".join(row) for row in rows.values())
        return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:32]


@dataclasses.dataclass(frozen=True)
class Adjacency:
    """Neighbors of node i: nodes[begin[i] : begin[i + 1]]."""

    begin: Ints
    nodes: Ints

    @functools.cached_property
    def lists(self) -> tuple[list[int], list[int]]:
        """Both as lists, which Python walks several times faster."""
        return self.begin.tolist(), self.nodes.tolist()

    def of(self, node: int) -> Ints:
        """Neighbors of one node."""
        return self.nodes[self.begin[node] : self.begin[node + 1]]


def node_name(name: str) -> str:
    """Name of the node in "node", "node:output" or "^node"."""
    return name.removeprefix("^").partition(":")[0]


def edges(pairs: Sequence[Sequence[int]] | np.ndarray, width: int) -> Ints:
    """Rows of an edge array, also when there are none."""
    return np.asarray(pairs, np.int32).reshape(-1, width)


def _adjacency(of: Ints, nodes: Ints, count: int) -> Adjacency:
    order = np.argsort(of, kind="stable")
    return Adjacency(np.searchsorted(of[order], np.arange(count + 1)), nodes[order])


def _closure(neighbors: Adjacency, start: Bools, within: Bools | None) -> Bools:
    begin, nodes = neighbors.lists
    seen = start.copy() if within is None else start & within
    reached = seen.tolist()
    allowed = [True] * len(reached) if within is None else within.tolist()
    waiting = np.flatnonzero(seen).tolist()
    while waiting:
        node = waiting.pop()
        for other in nodes[begin[node] : begin[node + 1]]:
            if not reached[other] and allowed[other]:
                reached[other] = True
                waiting.append(other)
    return np.asarray(reached, bool)
